//! The closed revision of a group, and requests to close further.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use actix::{Message, Recipient};
use tokio::sync::{Notify, oneshot};

use super::HybridClock;
use crate::limits::{CLOSED_AGE_MAX_DIVISOR, CLOSING_TIMEOUT};
use crate::shard_map::GroupNumber;
use crate::{ReadError, Revision};

/// The closed revision of one group on this replica: no later entry of its log assigns a revision at or below it, and
/// everything up to it is visible in all of its shards.
///
/// Revisions rise through the log of a group, so each entry closes the group up to its last revision. Only the applier
/// raises the closed revision, after all shards have applied an entry and before any caller is answered, so that a
/// reader that sees it sees everything up to it.
pub(crate) struct GroupClock {
    name: Arc<str>,
    group_number: GroupNumber,
    closed: AtomicU64,
    hybrid: HybridClock,
    /// The history window.
    history: Duration,
    /// The largest revision that this replica has assigned as the leader of the group.
    assigned: AtomicU64,
    /// The first closed revision that was known here; zero before.
    begun: AtomicU64,
    /// Notified whenever the closed revision rises.
    closing: Notify,
    /// Where requests to close the group are sent: the proposer if the group has no other replica, else the actor that
    /// asks the leader. Empty until the group has started.
    closer: OnceLock<Recipient<Close>>,
    /// The largest revision up to which subscribers want the group to be closed.
    wanted: AtomicU64,
    /// Notified whenever `wanted` rises; shared by all groups.
    demands: Arc<Notify>,
}

impl GroupClock {
    pub(crate) fn new(
        name: Arc<str>,
        group_number: GroupNumber,
        demands: Arc<Notify>,
        hybrid: HybridClock,
        history: Duration,
    ) -> GroupClock {
        hybrid.serve();
        let (closed, begun, wanted) = (AtomicU64::new(Revision::FIRST.get()), AtomicU64::new(0), AtomicU64::default());
        let (assigned, closing, closer) = (AtomicU64::default(), Notify::new(), OnceLock::new());
        GroupClock { name, group_number, closed, hybrid, history, assigned, begun, closing, closer, wanted, demands }
    }

    /// Returns the name of the group.
    pub(crate) fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Returns the number of the group.
    pub(crate) fn group_number(&self) -> GroupNumber {
        self.group_number
    }

    /// Returns the closed revision.
    pub(crate) fn closed(&self) -> Revision {
        Revision::new(self.closed.load(Ordering::Acquire))
    }

    /// Returns whether the closed revision is older than a tenth of the history window. A client that received it could
    /// use it only for the rest of the window.
    pub(crate) fn is_stale(&self) -> bool {
        let age = self.hybrid.now().get().saturating_sub(self.closed().get());
        age > Revision::span(self.history / CLOSED_AGE_MAX_DIVISOR)
    }

    /// Returns the clock by which all groups assign revisions.
    pub(crate) fn hybrid(&self) -> &HybridClock {
        &self.hybrid
    }

    /// Records that this replica has assigned a revision as the leader.
    pub(crate) fn assign(&self, revision: Revision) {
        self.assigned.fetch_max(revision.get(), Ordering::AcqRel);
        self.hybrid.learn(revision);
    }

    /// Returns the largest revision that this replica has assigned.
    pub(crate) fn assigned(&self) -> Revision {
        Revision::new(self.assigned.load(Ordering::Acquire))
    }

    /// Returns the revision at which the log of the group began. A table without any entries was empty then and has
    /// been ever since, no matter when it is first asked for.
    pub(crate) fn begun(&self) -> Revision {
        match self.begun.load(Ordering::Acquire) {
            0 => self.closed(),
            begun => Revision::new(begun),
        }
    }

    /// Returns whether it is known where the log of the group began.
    pub(crate) fn is_begun(&self) -> bool {
        self.begun.load(Ordering::Acquire) > 0
    }

    /// Sets the revision at which the log of the group began, unless it is known already. A snapshot that replaces the
    /// beginning of the log contains this revision.
    pub(crate) fn begin(&self, revision: Revision) {
        let _ = self.begun.compare_exchange(0, revision.get(), Ordering::AcqRel, Ordering::Acquire);
    }

    /// Raises the closed revision: everything up to `revision` has been applied.
    pub(crate) fn raise(&self, revision: Revision) {
        self.begin(revision);
        self.hybrid.learn(revision);
        if self.closed.fetch_max(revision.get(), Ordering::AcqRel) < revision.get() {
            self.closing.notify_waiters();
        }
    }

    /// Waits until the group is closed up to a revision on this replica.
    pub(crate) async fn reached(&self, revision: Revision) {
        loop {
            let closing = self.closing.notified();
            tokio::pin!(closing);
            closing.as_mut().enable(); // before looking, so that no rise is missed
            if self.closed() >= revision {
                return;
            }
            closing.await;
        }
    }

    /// Sets where requests to close the group are sent.
    pub(crate) fn serve(&self, closer: Recipient<Close>) {
        let _ = self.closer.set(closer); // a group starts once while the store is open
    }

    /// Makes the group commit an entry after which it assigns no revision up to `revision`, and waits until this
    /// replica has applied that entry. Does nothing if the group is closed up to `revision` already.
    ///
    /// # Errors
    /// Fails when the group cannot commit the entry in time, and when the store is closed.
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

    /// Returns the largest revision up to which anybody wants this group to be closed: see [`GroupClock::demand`].
    pub(crate) fn wanted(&self) -> Revision {
        Revision::new(self.wanted.load(Ordering::Acquire))
    }

    /// Repeats the demand if the group is not closed up to [`GroupClock::wanted`] by now.
    pub(crate) fn demand_again(&self) {
        if self.wanted() > self.closed() {
            self.demands.notify_one();
        }
    }

    /// Asks for the group to be closed up to a revision soon, without waiting for it.
    pub(crate) fn demand(&self, revision: Revision) {
        if self.closed() < revision && self.wanted.fetch_max(revision.get(), Ordering::AcqRel) < revision.get() {
            self.demands.notify_one();
        }
    }
}

/// Asks the leader to close a group: it commits that no later write gets `revision` or a smaller one.
pub(crate) struct Close {
    /// The revision up to which the group must be closed.
    pub(crate) revision: Revision,
    /// Answered when that is applied on the leader.
    pub(crate) reply: oneshot::Sender<Result<(), ReadError>>,
}

impl Message for Close {
    type Result = ();
}
