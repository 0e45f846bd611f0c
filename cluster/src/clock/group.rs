//! How far a group is closed, and how it is made to close further.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use actix::{Message, Recipient};
use tokio::sync::{Notify, oneshot};

use super::HybridClock;
use crate::limits::{CLOSING_TIMEOUT, FRESHNESS_PARTS};
use crate::shard_map::Slot;
use crate::{ReadError, Revision};

/// How far one group is closed on this replica: no later entry of its log assigns a revision up to there, and
/// everything up to there is visible in all of its shards.
///
/// Revisions rise through the log of a group, so that each entry closes the group up to its last revision. Raised by
/// the applier alone, after all shards have taken what an entry says and before anybody is answered: who sees a closed
/// revision sees everything up to it.
pub(crate) struct GroupClock {
    name: Arc<str>,
    slot: Slot,
    closed: AtomicU64,
    hybrid: HybridClock,
    /// How long history is kept.
    history: Duration,
    /// The largest revision that this replica has assigned as its leader.
    assigned: AtomicU64,
    /// The first closed revision that was known here; zero before.
    begun: AtomicU64,
    /// Told whenever the closed revision rises.
    closing: Notify,
    /// Where the group is asked to close: the proposer here, once there is one.
    closer: OnceLock<Recipient<Close>>,
    /// Up to where subscribers wait for the group to close.
    wanted: AtomicU64,
    /// Told whenever the revision that subscribers wait for rises; shared by all groups.
    demands: Arc<Notify>,
}

impl GroupClock {
    pub(crate) fn new(
        name: Arc<str>,
        slot: Slot,
        demands: Arc<Notify>,
        hybrid: HybridClock,
        history: Duration,
    ) -> GroupClock {
        hybrid.serve();
        let (closed, begun, wanted) = (AtomicU64::new(Revision::FIRST.get()), AtomicU64::new(0), AtomicU64::default());
        let (assigned, closing, closer) = (AtomicU64::default(), Notify::new(), OnceLock::new());
        GroupClock { name, slot, closed, hybrid, history, assigned, begun, closing, closer, wanted, demands }
    }

    /// Name of the group.
    pub(crate) fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Number of the group.
    pub(crate) fn slot(&self) -> Slot {
        self.slot
    }

    /// The closed revision.
    pub(crate) fn closed(&self) -> Revision {
        Revision::new(self.closed.load(Ordering::Acquire))
    }

    /// Whether the closed revision is of a while ago: whoever is told of it would find it outdated before its time.
    pub(crate) fn is_stale(&self) -> bool {
        let age = self.hybrid.now().get().saturating_sub(self.closed().get());
        age > Revision::span(self.history / FRESHNESS_PARTS)
    }

    /// The clock by which revisions are assigned, of all groups alike.
    pub(crate) fn hybrid(&self) -> &HybridClock {
        &self.hybrid
    }

    /// This replica has assigned a revision, as the leader.
    pub(crate) fn assign(&self, revision: Revision) {
        self.assigned.fetch_max(revision.get(), Ordering::AcqRel);
        self.hybrid.learn(revision);
    }

    /// The largest revision that this replica has assigned.
    pub(crate) fn assigned(&self) -> Revision {
        Revision::new(self.assigned.load(Ordering::Acquire))
    }

    /// Where the log of the group began: a table that nothing here tells of was empty then and ever since, whenever it
    /// is asked for first.
    pub(crate) fn begun(&self) -> Revision {
        match self.begun.load(Ordering::Acquire) {
            0 => self.closed(),
            begun => Revision::new(begun),
        }
    }

    /// Whether it is known where the log of the group began.
    pub(crate) fn is_begun(&self) -> bool {
        self.begun.load(Ordering::Acquire) > 0
    }

    /// The log of the group began here, as a snapshot says that stands for its beginning.
    pub(crate) fn begin(&self, revision: Revision) {
        let _ = self.begun.compare_exchange(0, revision.get(), Ordering::AcqRel, Ordering::Acquire);
    }

    /// Everything up to `revision` is applied.
    pub(crate) fn raise(&self, revision: Revision) {
        self.begin(revision);
        self.hybrid.learn(revision);
        if self.closed.fetch_max(revision.get(), Ordering::AcqRel) < revision.get() {
            self.closing.notify_waiters();
        }
    }

    /// Waits until the group is closed up to a revision here.
    pub(crate) async fn reached(&self, revision: Revision) {
        loop {
            let closing = self.closing.notified();
            tokio::pin!(closing);
            closing.as_mut().enable(); // before looking, so that no rise in between goes unseen
            if self.closed() >= revision {
                return;
            }
            closing.await;
        }
    }

    /// Says where the group is to be asked to close.
    pub(crate) fn serve(&self, closer: Recipient<Close>) {
        let _ = self.closer.set(closer); // a group has one proposer as long as the store is open
    }

    /// Has the group commit that nothing is assigned up to `revision` any more, unless that is so already, and waits
    /// until it is closed up to there here.
    ///
    /// # Errors
    /// The group could not commit it in time.
    pub(crate) async fn close_to(&self, revision: Revision) -> Result<(), ReadError> {
        if self.closed() >= revision {
            return Ok(());
        }
        let closer = self.closer.get().ok_or(ReadError::Unavailable)?;
        let (reply, closed) = oneshot::channel();
        closer.try_send(Close { revision, reply }).map_err(|refused| match refused {
            actix::dev::SendError::Full(_) => ReadError::Unavailable,
            actix::dev::SendError::Closed(_) => ReadError::Closed,
        })?;
        let closing = async {
            closed.await.map_err(|_| ReadError::Unavailable)??;
            self.reached(revision).await;
            Ok(())
        };
        tokio::time::timeout(CLOSING_TIMEOUT, closing).await.unwrap_or(Err(ReadError::Unavailable))
    }

    /// The largest revision that somebody wants this group to be closed at.
    pub(crate) fn wanted(&self) -> Revision {
        Revision::new(self.wanted.load(Ordering::Acquire))
    }

    /// Asks once more for what is wanted, if it is not closed by now.
    pub(crate) fn demand_again(&self) {
        if self.wanted() > self.closed() {
            self.demands.notify_one();
        }
    }

    /// Wants the group to be closed up to a revision soon, without waiting for it.
    pub(crate) fn demand(&self, revision: Revision) {
        if self.closed() < revision && self.wanted.fetch_max(revision.get(), Ordering::AcqRel) < revision.get() {
            self.demands.notify_one();
        }
    }
}

/// Closes a group: the leader commits that no later write gets `revision` or a smaller one.
pub(crate) struct Close {
    /// Up to where.
    pub(crate) revision: Revision,
    /// Answered when that is applied on the leader.
    pub(crate) reply: oneshot::Sender<Result<(), ReadError>>,
}

impl Message for Close {
    type Result = ();
}
