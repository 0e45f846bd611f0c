//! The open connections of a server, and how they are closed when it stops.

use std::io;
use std::net::{Shutdown, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use socket2::Socket;
use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;

/// The state that the connections of a server share. Clones share it too.
#[derive(Debug, Clone)]
pub struct Connections(Arc<SharedListener>);

#[derive(Debug)]
struct SharedListener {
    listener: Socket,
    /// The number of open HTTP/2 connections.
    open: AtomicUsize,
    is_leaving: AtomicBool,
    left: Arc<Notify>,
}

impl Connections {
    /// Creates the state for connections that a listener will accept.
    ///
    /// # Errors
    /// The listener cannot be duplicated.
    pub fn of(listener: &TcpListener) -> io::Result<Self> {
        let (listener, left) = (listener.try_clone()?.into(), Arc::default());
        let (open, is_leaving) = (AtomicUsize::new(0), AtomicBool::new(false));
        Ok(Self(Arc::new(SharedListener { listener, open, is_leaving, left })))
    }

    /// Refuses new connections, and asks HTTP/2 clients to send no more requests. Each of their connections closes once
    /// its requests in progress have ended. Call this only when no thread accepts connections any more.
    pub fn leave(&self) {
        // New clients are refused at once and can connect to another server. Otherwise they would wait in a queue from
        // which no thread accepts. Where the system cannot refuse them, they wait until the socket is closed.
        let _ = self.0.listener.shutdown(Shutdown::Both);
        self.0.is_leaving.store(true, Ordering::SeqCst);
        self.0.left.notify_waiters();
    }

    /// Returns whether all HTTP/2 connections are closed.
    pub fn are_closed(&self) -> bool {
        self.0.open.load(Ordering::Acquire) == 0
    }

    /// Counts a new connection.
    pub(super) fn open(&self) -> Open {
        self.0.open.fetch_add(1, Ordering::Relaxed);
        Open(self.clone())
    }
}

/// An HTTP/2 connection, counted until this is dropped.
#[derive(Debug)]
pub(super) struct Open(Connections);

impl Open {
    /// Returns whether the server closes its connections.
    pub(super) fn is_left(&self) -> bool {
        self.0.0.is_leaving.load(Ordering::SeqCst)
    }

    /// Returns a future that ends when the server begins to close its connections. It never ends if the server has
    /// begun before.
    pub(super) fn left(&self) -> OwnedNotified {
        Arc::clone(&self.0.0.left).notified_owned()
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.0.open.fetch_sub(1, Ordering::Release);
    }
}
