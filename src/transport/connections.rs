//! The open connections of a server, and how it leaves them.

use std::io;
use std::net::{Shutdown, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use socket2::Socket;
use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;

/// What the connections of a server share. Clones are the same.
#[derive(Debug, Clone)]
pub struct Connections(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    listener: Socket,
    /// How many that speak HTTP/2 are open.
    open: AtomicUsize,
    is_leaving: AtomicBool,
    left: Arc<Notify>,
}

impl Connections {
    /// Those that will come in by a listener.
    ///
    /// # Errors
    /// When the process cannot have another handle of it.
    pub fn of(listener: &TcpListener) -> io::Result<Self> {
        let (listener, left) = (listener.try_clone()?.into(), Arc::default());
        let (open, is_leaving) = (AtomicUsize::new(0), AtomicBool::new(false));
        Ok(Self(Arc::new(Shared { listener, open, is_leaving, left })))
    }

    /// Refuses new connections, and asks the clients of those that speak HTTP/2 for no more requests: each is closed
    /// when the ones that are in progress are done. Nobody may accept connections any more.
    pub fn leave(&self) {
        // Who connects is refused at once and goes elsewhere, rather than to wait for a server that will not accept.
        // Not every system can do this; there they wait until the socket is closed.
        let _ = self.0.listener.shutdown(Shutdown::Both);
        self.0.is_leaving.store(true, Ordering::SeqCst);
        self.0.left.notify_waiters();
    }

    /// Whether no connection is open that speaks HTTP/2.
    pub fn are_closed(&self) -> bool {
        self.0.open.load(Ordering::Acquire) == 0
    }

    /// Counts another one.
    pub(super) fn open(&self) -> Open {
        self.0.open.fetch_add(1, Ordering::Relaxed);
        Open(self.clone())
    }
}

/// A connection that speaks HTTP/2, counted while this lives.
#[derive(Debug)]
pub(super) struct Open(Connections);

impl Open {
    /// Whether the server leaves its connections.
    pub(super) fn is_left(&self) -> bool {
        self.0.0.is_leaving.load(Ordering::SeqCst)
    }

    /// Wakes who polls it when the server begins to leave; only if it did not before this was made.
    pub(super) fn left(&self) -> OwnedNotified {
        Arc::clone(&self.0.0.left).notified_owned()
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.0.open.fetch_sub(1, Ordering::Release);
    }
}
