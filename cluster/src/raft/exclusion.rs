//! Tells a replica that it is not a member of a group any more.
//!
//! A member that is removed gets no more entries, perhaps not even the last entry of the change. When it hears from no
//! leader it stands for election, and the voters then tell it that it was removed. From then on it rarely stands again.

use openraft::alias::WatchReceiverOf;
use openraft::async_runtime::WatchReceiver;
use openraft::metrics::RaftServerMetrics;
use tokio::sync::watch;

use super::node::Node;
use super::types::{LogIdentity, TypeConfig};

/// The log entry that sets members without this replica. `None` until this replica has been told of one.
pub(super) type Excluded = watch::Sender<Option<LogIdentity>>;

impl Node {
    /// Returns whether this replica has a vote, as far as it knows.
    pub(crate) fn has_vote(&self) -> bool {
        let metrics = self.raft.server_metrics();
        let metrics = metrics.borrow_watched();
        metrics.membership_config.voter_ids().any(|voter| voter == self.id()) && !self.excludes_own(&metrics)
    }

    /// Returns whether this replica was told that it is not a member, and knows of no later membership.
    pub(crate) fn is_excluded(&self) -> bool {
        self.excludes_own(&self.raft.server_metrics().borrow_watched())
    }

    fn excludes_own(&self, metrics: &RaftServerMetrics<TypeConfig>) -> bool {
        self.excluded.borrow().is_some_and(|at| metrics.membership_config.log_id() < &Some(at))
    }

    /// Waits until the membership in the log is applied here, and with it everything before: a replica may get its vote
    /// in the log before it learns what is committed. Also returns when the group is shut down.
    pub(crate) async fn applied_membership(&self) {
        let server = self.raft.server_metrics();
        let at = server.borrow_watched().membership_config.log_id().as_ref().map_or(0, |at| at.index());
        let _ = self.reached(at).await;
    }

    /// Applies nothing until the given future ends.
    #[cfg(test)]
    pub(crate) async fn hold_applying(&self, until: impl Future<Output = ()> + Send + 'static) {
        self.raft.external_state_machine_request(|_| Box::pin(until)).await.expect("a group that runs");
    }

    /// Returns the log entry that sets the members, if replica `member`, whose log ends at `last`, is not among them
    /// and does not have that entry.
    pub(super) async fn excludes(&self, member: u64, last: Option<LogIdentity>) -> Option<LogIdentity> {
        let committed = self.raft.with_raft_state(move |state| {
            let members = state.membership_state.committed();
            let is_member = members.membership().get_node(&member).is_some();
            members.log_id().filter(|at| !is_member && last < Some(*at))
        });
        committed.await.ok().flatten()
    }

    /// Returns a receiver of possible changes of [`Node::has_vote`].
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
