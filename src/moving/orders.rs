//! Receives the signals that control a running import.

use crate::tasks;
use std::io;
use std::sync::mpsc::{self, Receiver, Sender};

use tokio::signal::unix::{SignalKind, signal};

/// An instruction to an import.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Take over: no client writes to the server any more.
    TakeOver,
    /// Stop, so that the same command can continue later.
    Leave,
}

/// The instructions so far.
#[derive(Debug)]
pub(super) struct Orders {
    received: Receiver<Order>,
    take_over: bool,
}

impl Orders {
    /// Receives signals from now on. `take_over` sets that instruction at once.
    pub(super) fn listen(take_over: bool) -> io::Result<Self> {
        let (teller, received) = mpsc::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        let (ready, started) = mpsc::channel();
        let listen = move || {
            let listening = tell(teller, &ready);
            // Without signals there are no instructions. An error was already reported at the start.
            let _ = runtime.block_on(listening);
        };
        tasks::thread("signals", None, listen)?;
        started.recv().map_err(|_| io::Error::other("cannot receive signals"))?;
        Ok(Self { received, take_over })
    }

    /// Returns whether to stop. Remembers an instruction to take over.
    pub(super) fn must_leave(&mut self) -> bool {
        while let Ok(order) = self.received.try_recv() {
            match order {
                Order::TakeOver => self.take_over = true,
                Order::Leave => return true,
            }
        }
        false
    }

    /// Returns whether [`Orders::must_leave`] has found an instruction to take over.
    pub(super) fn must_take_over(&self) -> bool {
        self.take_over
    }
}

/// Forwards signals as instructions. The second signal to stop ends the process, which is as safe as killing it.
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
        // If the receiver was dropped, the import is ending anyway.
        let _ = teller.send(order);
    }
}
