//! The end of a server: it is announced, then it begins, and watches and streams end.

use flotilla_cluster::Standing;
use tokio::sync::watch;

/// How far a server is with stopping.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Serving,
    Announced,
    Begun,
}

/// Tells everybody when the server is to stop. Clones tell the same.
#[derive(Debug, Clone)]
pub struct Drain(watch::Receiver<Stage>);

/// Begins a [`Drain`].
#[derive(Debug)]
pub struct DrainBegin(watch::Sender<Stage>);

impl Drain {
    /// A drain that has not begun, and what begins it. It also begins when that is dropped.
    pub fn new() -> (DrainBegin, Self) {
        let (sender, receiver) = watch::channel(Stage::Serving);
        (DrainBegin(sender), Self(receiver))
    }

    /// Whether the server will stop: `/readyz` says no, so that no new clients are sent here.
    pub fn is_announced(&self) -> bool {
        *self.0.borrow() >= Stage::Announced || self.0.has_changed().is_err()
    }

    /// Whether the server is to stop: watches end.
    pub fn has_begun(&self) -> bool {
        *self.0.borrow() == Stage::Begun || self.0.has_changed().is_err()
    }

    /// One that has also begun while this replica is no member of its cluster any more. Must be called where tasks can
    /// be spawned.
    pub fn or_removed(&self, mut standing: watch::Receiver<Standing>) -> Self {
        let (begin, either) = watch::channel(*self.0.borrow());
        let mut stage = self.0.clone();
        actix_web::rt::spawn(async move {
            // Of a server that is alone nobody tells anything any more once it is a member.
            let mut told = true;
            loop {
                let removed = *standing.borrow_and_update() == Standing::Removed;
                begin.send_replace(if removed { Stage::Begun } else { *stage.borrow_and_update() });
                tokio::select! {
                    changed = stage.changed() => if changed.is_err() { break },
                    changed = standing.changed(), if told => told = changed.is_ok(),
                }
            }
        });
        Self(either)
    }

    /// Waits until the server is to stop.
    pub async fn begun(mut self) {
        // That nobody can begin it any more means the same.
        let _ = self.0.wait_for(|stage| *stage == Stage::Begun).await;
    }
}

impl DrainBegin {
    /// The server will stop.
    pub fn announce(&self) {
        self.0.send_replace(Stage::Announced);
    }

    /// The server is to stop.
    pub fn begin(&self) {
        self.0.send_replace(Stage::Begun);
    }
}
