//! How far this replica must have applied the log before it can be read.

use openraft::async_runtime::WatchReceiver;
use openraft::errors::{LinearizableReadError, RaftError};
use openraft::raft::ReadPolicy;
use tokio::sync::watch;

use super::log_store::LogStore;
use super::roster::Roster;
use super::state_machine::GroupRaft;
use crate::ReadError;
use crate::limits::OPENING_PROGRESS_INTERVAL;
use crate::progress::Progress;

/// How far this replica must have applied the log of a group before the group can be read here.
pub(crate) struct Reading {
    raft: GroupRaft,
    roster: Roster,
    log: LogStore,
    /// The index of the last entry that is applied.
    applied: watch::Receiver<u64>,
}

impl Reading {
    pub(super) fn new(raft: GroupRaft, roster: Roster, log: LogStore, applied: watch::Receiver<u64>) -> Reading {
        Reading { raft, roster, log, applied }
    }

    /// Returns the index up to which a replica must have applied the log for its reads to be linearizable, after a
    /// quorum has confirmed that this replica leads.
    pub(crate) async fn read_index(&self) -> Result<u64, ReadError> {
        self.log.rest().note_event();
        if seeded!(LeaseRead) && self.roster.leader() == Some(self.roster.own()) {
            return Ok(*self.applied.borrow());
        }
        match self.raft.get_read_linearizer(ReadPolicy::ReadIndex).await {
            Ok(linearizer) => Ok(linearizer.read_log_id().index()),
            Err(RaftError::APIError(LinearizableReadError::ForwardToLeader(forward))) => {
                Err(ReadError::NotLeader { leader: forward.leader_id })
            }
            Err(RaftError::APIError(_)) => Err(ReadError::Unavailable),
            Err(RaftError::Fatal(_)) => Err(ReadError::Closed),
        }
    }

    /// Waits until the log is applied here up to an index. Fails when the group is shut down.
    pub(crate) async fn reached(&self, index: u64) -> Result<(), ReadError> {
        match self.applied.clone().wait_for(|applied| *applied >= index).await {
            Ok(_) => Ok(()),
            Err(_) => Err(ReadError::Closed),
        }
    }

    /// Waits until the membership in the log is applied here, and with it everything before: a replica may get its vote
    /// in the log before it learns which entries are committed. Also returns when the group is shut down.
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

    /// Waits until everything is applied that was known to be committed when the log was opened.
    pub(crate) async fn recovered(&self) {
        let committed = self.log.committed().unwrap_or_default();
        let what = "applying the entries of the write-ahead log";
        let mut progress = Progress::of(what, committed, OPENING_PROGRESS_INTERVAL);
        while tokio::time::timeout(OPENING_PROGRESS_INTERVAL, self.reached(committed)).await.is_err() {
            progress.at(*self.applied.borrow());
        }
    }
}
