//! Connections of which nobody knows yet whose they are.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::limits::PEER_GREETINGS_MAX;

/// The connections that have yet to say whose they are. When there are too many, the one that has taken longest goes:
/// anybody can make one, and a peer says who it is at once.
#[derive(Clone, Default)]
pub(super) struct Greetings(Arc<Mutex<Under>>);

#[derive(Default)]
struct Under {
    begun: u64,
    /// By number; those that are dropped go.
    way: VecDeque<(u64, oneshot::Sender<()>)>,
}

/// A connection that has yet to say whose it is, as long as this lasts.
pub(super) struct Greeting {
    greetings: Greetings,
    number: u64,
    dropped: oneshot::Receiver<()>,
}

impl Greetings {
    /// A connection was made.
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
    /// Ends when it has to go.
    pub(super) async fn outlasted(&mut self) {
        let _ = (&mut self.dropped).await; // nothing is ever sent
    }
}

impl Drop for Greeting {
    fn drop(&mut self) {
        self.greetings.0.lock().way.retain(|(number, _)| *number != self.number);
    }
}
