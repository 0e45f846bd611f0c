//! What an import that goes on is told by signals.

use std::io;
use std::sync::mpsc::{self, Receiver, Sender};

use tokio::signal::unix::{SignalKind, signal};

/// Something that an import is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Nobody writes to the server any more.
    TakeOver,
    /// Stop, so that the same command can go on.
    Leave,
}

/// What has been told.
#[derive(Debug)]
pub(super) struct Orders {
    told: Receiver<Order>,
    take_over: bool,
}

impl Orders {
    /// Listens for signals from now on. `take_over` says that it is told already to take over.
    pub(super) fn listen(take_over: bool) -> io::Result<Self> {
        let (teller, told) = mpsc::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        let (ready, started) = mpsc::channel();
        let listen = move || {
            let listening = tell(teller, &ready);
            // Without signals nothing can be told; that was said at the start.
            let _ = runtime.block_on(listening);
        };
        std::thread::Builder::new().name("signals".into()).spawn(listen)?;
        started.recv().map_err(|_| io::Error::other("signals cannot be listened for"))?;
        Ok(Self { told, take_over })
    }

    /// Whether to leave; what else is told is kept.
    pub(super) fn is_to_leave(&mut self) -> bool {
        while let Ok(order) = self.told.try_recv() {
            match order {
                Order::TakeOver => self.take_over = true,
                Order::Leave => return true,
            }
        }
        false
    }

    /// Whether to take over, as far as was seen by [`Orders::is_to_leave`].
    pub(super) fn is_to_take_over(&self) -> bool {
        self.take_over
    }
}

/// Passes on what signals say; the second one to leave ends the process, which is as safe as to kill it.
async fn tell(teller: Sender<Order>, ready: &Sender<()>) -> io::Result<()> {
    let mut take_over = signal(SignalKind::user_defined1())?;
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let _ = ready.send(());
    let mut left = false;
    loop {
        let order = tokio::select! {
            _ = take_over.recv() => Order::TakeOver,
            _ = terminate.recv() => Order::Leave,
            _ = interrupt.recv() => Order::Leave,
        };
        if order == Order::Leave && std::mem::replace(&mut left, true) {
            std::process::exit(1);
        }
        // Who does not listen any more is about to end.
        let _ = teller.send(order);
    }
}
