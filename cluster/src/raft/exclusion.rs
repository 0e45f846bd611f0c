//! Tells a replica that it is not a member of a group any more.
//!
//! A member that is removed gets no more entries, perhaps not even the last entry of the change. When it hears from no
//! leader it stands for election, and the voters then tell it that it was removed. From then on it rarely stands again.

use openraft::alias::WatchReceiverOf;
use openraft::async_runtime::WatchReceiver;
use openraft::metrics::RaftServerMetrics;
use tokio::sync::watch;

use super::state_machine::GroupRaft;
use super::types::{LogIdentity, TypeConfig};

/// The log entry that sets members without this replica. `None` until this replica has been told of one.
pub(super) type Excluded = watch::Sender<Option<LogIdentity>>;

/// Whether this replica was told that it is not a member of a group any more. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Exclusion {
    own: u64,
    raft: GroupRaft,
    excluded: Excluded,
}

impl Exclusion {
    pub(super) fn new(own: u64, raft: GroupRaft, excluded: Excluded) -> Exclusion {
        Exclusion { own, raft, excluded }
    }

    /// Returns a receiver of the messages that exclude this replica.
    pub(super) fn told(&self) -> watch::Receiver<Option<LogIdentity>> {
        self.excluded.subscribe()
    }

    /// Returns whether this replica has a vote, as far as it knows.
    pub(crate) fn has_vote(&self) -> bool {
        let metrics = self.raft.server_metrics();
        let metrics = metrics.borrow_watched();
        metrics.membership_config.voter_ids().any(|voter| voter == self.own) && !self.excludes_own(&metrics)
    }

    /// Returns whether this replica was told that it is not a member, and knows of no later membership.
    pub(crate) fn is_excluded(&self) -> bool {
        self.excludes_own(&self.raft.server_metrics().borrow_watched())
    }

    fn excludes_own(&self, metrics: &RaftServerMetrics<TypeConfig>) -> bool {
        self.excluded.borrow().is_some_and(|at| metrics.membership_config.log_id() < &Some(at))
    }

    /// Returns the log entry that sets the members, if replica `member` is not among them and lacks that entry. `last`
    /// is the end of the replica's log.
    pub(super) async fn excludes(&self, member: u64, last: Option<LogIdentity>) -> Option<LogIdentity> {
        let committed = self.raft.with_raft_state(move |state| {
            let members = state.membership_state.committed();
            let is_member = members.membership().get_node(&member).is_some();
            members.log_id().filter(|at| !is_member && last < Some(*at))
        });
        committed.await.ok().flatten()
    }

    /// Returns a receiver of possible changes of [`Exclusion::has_vote`].
    pub(crate) fn votes(&self) -> Votes {
        Votes { server: self.raft.server_metrics(), excluded: self.excluded.subscribe() }
    }
}

/// The state on which a replica's vote in a group depends.
pub(crate) struct Votes {
    server: WatchReceiverOf<TypeConfig, RaftServerMetrics<TypeConfig>>,
    excluded: watch::Receiver<Option<LogIdentity>>,
}

impl Votes {
    /// Waits until some of it has changed. Waits for ever once the group is shut down.
    pub(crate) async fn changed(&mut self) {
        let changed = tokio::select! {
        biased;
                    changed = self.server.changed() => changed.is_ok(),
                    changed = self.excluded.changed() => changed.is_ok(),
                };
        if !changed {
            std::future::pending::<()>().await;
        }
    }
}
