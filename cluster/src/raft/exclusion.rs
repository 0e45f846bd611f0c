//! Whether a replica is one of those that a group is replicated by, when nobody sends it the entry that says so.
//!
//! A member that is taken out is sent nothing any more, perhaps not even the last entry of the change. It stands for
//! election when it hears of no leader, and is told then. From then on it stands seldom.

use openraft::alias::WatchReceiverOf;
use openraft::async_runtime::WatchReceiver;
use openraft::metrics::RaftServerMetrics;
use tokio::sync::watch;

use super::node::Node;
use super::types::{LogIdentity, TypeConfig};

/// The members of which a replica was told that it is not among them: where the log of the group says so.
pub(super) type Excluded = watch::Sender<Option<LogIdentity>>;

impl Node {
    /// Whether this replica has a vote, as far as it knows.
    pub(crate) fn has_vote(&self) -> bool {
        let metrics = self.raft.server_metrics();
        let metrics = metrics.borrow_watched();
        metrics.membership_config.voter_ids().any(|voter| voter == self.id()) && !self.excludes_own(&metrics)
    }

    /// Whether this replica was told that it is no member, and knows of nothing later.
    pub(crate) fn is_excluded(&self) -> bool {
        self.excludes_own(&self.raft.server_metrics().borrow_watched())
    }

    fn excludes_own(&self, metrics: &RaftServerMetrics<TypeConfig>) -> bool {
        self.excluded.borrow().is_some_and(|at| metrics.membership_config.log_id() < &Some(at))
    }

    /// Waits until what the log says of the members is applied here, and with it everything before: a replica may be
    /// given a vote in the log before it is told how much of that counts. Or until the group is shut down.
    pub(crate) async fn applied_membership(&self) {
        let server = self.raft.server_metrics();
        let at = server.borrow_watched().membership_config.log_id().as_ref().map_or(0, |at| at.index());
        let _ = self.reached(at).await;
    }

    /// Applies nothing more until this ends.
    #[cfg(test)]
    pub(crate) async fn hold_applying(&self, until: impl Future<Output = ()> + Send + 'static) {
        self.raft.external_state_machine_request(|_| Box::pin(until)).await.expect("a group that runs");
    }

    /// Where the log says who the members are, if a replica whose log ends at `last` is not among them and does not
    /// have that entry.
    pub(super) async fn excludes(&self, member: u64, last: Option<LogIdentity>) -> Option<LogIdentity> {
        let committed = self.raft.with_raft_state(move |state| {
            let members = state.membership_state.committed();
            let is_member = members.membership().get_node(&member).is_some();
            members.log_id().filter(|at| !is_member && last < Some(*at))
        });
        committed.await.ok().flatten()
    }

    /// Tells when [`Node::has_vote`] may have changed.
    pub(crate) fn votes(&self) -> Votes {
        Votes { server: self.raft.server_metrics(), excluded: self.excluded.subscribe() }
    }
}

/// What decides about the vote of a replica in a group.
pub(crate) struct Votes {
    server: WatchReceiverOf<TypeConfig, RaftServerMetrics<TypeConfig>>,
    excluded: watch::Receiver<Option<LogIdentity>>,
}

impl Votes {
    /// Waits until something has changed; for ever once the group is shut down.
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
