//! Signals the stop of a server: first it is announced, then it begins, and watches and streams end.

use crate::tasks;
use flotilla_cluster::Standing;
use tokio::sync::watch;

/// How far the stop of a server has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum DrainStage {
    Serving,
    Announced,
    Begun,
}

/// Tells its holders when the server stops. Clones share the state.
#[derive(Debug, Clone)]
pub struct Drain(watch::Receiver<DrainStage>);

/// Begins a [`Drain`].
#[derive(Debug)]
pub struct DrainBegin(watch::Sender<DrainStage>);

impl Drain {
    /// Creates a drain that has not begun, and the handle that begins it. Dropping the handle also begins it.
    pub fn new() -> (DrainBegin, Self) {
        let (sender, receiver) = watch::channel(DrainStage::Serving);
        (DrainBegin(sender), Self(receiver))
    }

    /// Returns whether the stop is announced. Then `/readyz` fails, so that load balancers send no new clients.
    pub fn is_announced(&self) -> bool {
        *self.0.borrow() >= DrainStage::Announced || self.0.has_changed().is_err()
    }

    /// Returns whether the stop has begun, so that watches end.
    pub fn has_begun(&self) -> bool {
        *self.0.borrow() == DrainStage::Begun || self.0.has_changed().is_err()
    }

    /// Returns a drain that follows this one, and that has also begun as long as this replica is removed from its
    /// cluster. Must be called in a runtime that can spawn tasks.
    pub fn or_removed(&self, mut standing: watch::Receiver<Standing>) -> Self {
        let (begin, either) = watch::channel(*self.0.borrow());
        let mut stage = self.0.clone();
        tasks::detached_here("drain", async move {
            // A member of a cluster of one gets no news of its standing: the sender may be gone.
            let mut follows = true;
            loop {
                let removed = *standing.borrow_and_update() == Standing::Removed;
                begin.send_replace(if removed { DrainStage::Begun } else { *stage.borrow_and_update() });
                tokio::select! {
                    changed = stage.changed() => if changed.is_err() { break },
                    changed = standing.changed(), if follows => follows = changed.is_ok(),
                }
            }
        });
        Self(either)
    }

    /// Waits until the stop has begun.
    pub async fn begun(mut self) {
        // An error means that the handle was dropped, which also begins the stop.
        let _ = self.0.wait_for(|stage| *stage == DrainStage::Begun).await;
    }
}

impl DrainBegin {
    /// Announces the stop.
    pub fn announce(&self) {
        self.0.send_replace(DrainStage::Announced);
    }

    /// Begins the stop.
    pub fn begin(&self) {
        self.0.send_replace(DrainStage::Begun);
    }
}
