//! The term in which this replica leads a group.

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use actix::Addr;
use openraft::async_runtime::WatchReceiver;
use tokio::sync::watch;

use super::addresses::Addresses;
use super::proposals::Proposals;
use super::roster::leads;
use super::state_machine::GroupRaft;
use super::types::Metrics;
use crate::Revision;
use crate::entry::Batch;
use crate::group::{Lead, Proposer};
use crate::limits::{LEADER_BEGIN_INTERVAL, LEADER_TIMEOUT};

/// The term in which this replica leads a group.
pub(super) struct Tenure {
    own: u64,
    raft: GroupRaft,
    addresses: Addresses,
    /// The term in which this replica leads and has applied everything before its election; zero when there is none.
    term: AtomicU64,
}

impl Tenure {
    pub(super) fn new(own: u64, raft: GroupRaft, addresses: Addresses) -> Tenure {
        Tenure { own, raft, addresses, term: AtomicU64::default() }
    }

    /// Tells the proposer whenever this replica starts or stops leading, until the group is shut down. A leader of a
    /// group without history lets it begin at `genesis`.
    pub(super) async fn follow(
        &self,
        proposer: Addr<Proposer<Proposals>>,
        leads: watch::Sender<bool>,
        genesis: Revision,
    ) {
        let mut server = self.raft.server_metrics();
        let mut term = None;
        loop {
            let (leader, current) = {
                let metrics = server.borrow_watched();
                self.addresses.learn(metrics.membership_config.membership().nodes());
                (metrics.current_leader, metrics.vote.leader_id.term)
            };
            if leader == Some(self.own) && term != Some(current) {
                term = None;
                self.term.store(0, Ordering::Release);
                if let Some((above, begun)) = self.begin_to_lead(genesis).await {
                    term = Some(begun);
                    let _ = proposer.send(Lead { above: Some(above), leader, term: begun }).await;
                    self.term.store(begun, Ordering::Release);
                    leads.send_replace(true);
                }
            } else if leader != Some(self.own) {
                term = None;
                self.term.store(0, Ordering::Release);
                leads.send_replace(false);
                let _ = proposer.send(Lead { above: None, leader, term: 0 }).await;
            }
            // These metrics do not change when the leader has applied its first entry, so they are read again after a
            // pause.
            let is_beginning = leader == Some(self.own) && term.is_none();
            let pause = if is_beginning { LEADER_BEGIN_INTERVAL } else { Duration::MAX };
            if let Ok(Err(_)) = tokio::time::timeout(pause, server.changed()).await {
                break;
            }
        }
    }

    /// Returns the term in which this replica leads, as far as it knows, and has applied everything acknowledged before
    /// its election. `None` otherwise.
    pub(super) fn current(&self) -> Option<NonZeroU64> {
        NonZeroU64::new(self.term.load(Ordering::Acquire))
    }

    /// Waits until everything before this replica's election is applied. Returns the largest revision until then, and
    /// the term. Returns `None` when this replica does not lead after all.
    async fn begin_to_lead(&self, genesis: Revision) -> Option<(Revision, u64)> {
        let own = self.own;
        let decided =
            move |metrics: &Metrics| leads(metrics, own) || metrics.current_leader != Some(own) || seeded!(HastyLeader);
        let wait = self.raft.wait(Some(LEADER_TIMEOUT));
        let metrics = wait.metrics(decided, "applied its own entry").await.ok()?;
        if !leads(&metrics, own) && !seeded!(HastyLeader) {
            return None;
        }
        let base = self.raft.with_state_machine(|machine| Box::pin(async { machine.applier().base() })).await;
        if base.ok()? <= Revision::FIRST {
            self.raft.client_write(Batch::closing(genesis)).await.ok()?;
        }
        let last = self.raft.with_state_machine(|machine| Box::pin(async { machine.applier().last() })).await;
        Some((last.ok()?, metrics.current_term))
    }
}
