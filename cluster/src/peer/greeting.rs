//! Connections that have not identified themselves yet.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::limits::PEER_GREETINGS_MAX;

/// The connections that have not sent a hello yet. When there are too many, the oldest is dropped: anyone can make a
/// connection, and a real peer sends its hello at once.
#[derive(Clone, Default)]
pub(super) struct Greetings(Arc<Mutex<Under>>);

#[derive(Default)]
struct Under {
    begun: u64,
    /// By number. Removing one drops its connection.
    way: VecDeque<(u64, oneshot::Sender<()>)>,
}

/// A connection that has not sent a hello yet, while this exists.
pub(super) struct Greeting {
    greetings: Greetings,
    number: u64,
    dropped: oneshot::Receiver<()>,
}

impl Greetings {
    /// Registers a new connection.
    pub(super) fn begin(&self) -> Greeting {
        let mut under = self.0.lock();
        let (number, (stays, dropped)) = (under.begun, oneshot::channel());
        under.begun += 1;
        under.way.push_back((number, stays));
        if under.way.len() > PEER_GREETINGS_MAX {
            under.way.pop_front();
        }
        Greeting { greetings: self.clone(), number, dropped }
    }
}

impl Greeting {
    /// Waits until the connection must be dropped.
    pub(super) async fn must_be_dropped(&mut self) {
        let _ = (&mut self.dropped).await; // ends when the sender is dropped; nothing is sent
    }
}

impl Drop for Greeting {
    fn drop(&mut self) {
        self.greetings.0.lock().way.retain(|(number, _)| *number != self.number);
    }
}
