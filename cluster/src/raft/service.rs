//! Answers the calls of the group's other replicas.

use std::cmp::Ordering;
use std::io;
use std::sync::Arc;

use flotilla_proto::replication as message;
use openraft::raft::AppendEntriesRequest;

use super::exclusion::Exclusion;
use super::log_store::LogStore;
use super::mandate::Mandates;
use super::resting::Resting;
use super::snapshot_receiving::Receiver;
use super::state_machine::GroupRaft;
use super::types::TypeConfig;
use super::{types, wire};
use crate::clock::GroupClock;

/// The reason why a replica stops if it contradicts its leader about committed entries.
const CONTRADICTED: &str = "a leader has other entries than this replica where these were committed: \
    a majority of the members runs on older copies of data, or on parts of it";

/// Answers the calls of the group's other replicas.
pub(crate) struct Service {
    pub(super) own: u64,
    pub(super) raft: GroupRaft,
    pub(super) log: LogStore,
    /// The clock with the closed revision of the group.
    pub(super) clock: Arc<GroupClock>,
    pub(super) exclusion: Exclusion,
    pub(super) resting: Resting,
    pub(super) mandates: Mandates,
    /// Receives the snapshots that the leader sends.
    pub(super) receiver: Receiver,
    pub(super) on_fatal: Arc<dyn Fn(&str) + Send + Sync>,
    pub(super) on_lost: Arc<dyn Fn() + Send + Sync>,
}

impl Service {
    /// Appends entries that the leader sent.
    pub(crate) async fn append(&self, request: &message::Append) -> io::Result<message::AppendAnswer> {
        self.resting.rest().wake();
        if self.has_forgotten(request) {
            (self.on_lost)();
            return Err(io::Error::other("this replica has lost entries that it had acknowledged"));
        }
        let ballot = (request.ballot.term, request.ballot.node);
        let request = wire::append(request).ok_or_else(|| io::Error::other("an entry cannot be read"))?;
        if self.is_contradicted(ballot, &request) {
            (self.on_fatal)(CONTRADICTED);
            return Err(io::Error::other(CONTRADICTED));
        }
        // Before it is committed: a client that learns of this revision may ask this replica for everything up to it.
        request.entries.iter().filter_map(types::last_revision).for_each(|last| self.clock.hybrid().learn(last));
        let response = self.raft.append_entries(request).await.map_err(io::Error::other)?;
        Ok(wire::put_append_answer(&response))
    }

    /// Returns whether this replica lacks an entry that it acknowledged to the leader: it runs on an older copy of its
    /// data, or on a part of it, and has forgotten votes as well.
    fn has_forgotten(&self, request: &message::Append) -> bool {
        let state = self.log.state();
        let (vote, last) = (state.vote.map(|ballot| (ballot.term, ballot.node)), state.last.map(|last| last.index));
        let of = (request.ballot.term, request.ballot.node);
        match vote.cmp(&Some(of)) {
            _ if request.acknowledged == 0 => false,
            Ordering::Less => true,
            Ordering::Equal => last < Some(request.acknowledged),
            Ordering::Greater => false, // a later leader may have truncated its log since
        }
    }

    /// Returns whether a leader has a different entry at an index that this replica knows to be committed. Clients may
    /// have been told of the committed entry, and every voter of such a leader has lost it. The log of a deposed leader
    /// may differ.
    fn is_contradicted(&self, leader: (u64, u64), request: &AppendEntriesRequest<TypeConfig>) -> bool {
        let state = self.log.state();
        let is_deposed = state.vote.is_some_and(|vote| (vote.term, vote.node) > leader);
        let Some(committed) = state.committed.filter(|_| !is_deposed).map(|committed| committed.index) else {
            return false;
        };
        let entries = request.entries.iter().map(|entry| &entry.log_id);
        let mut ids = request.prev_log_id.iter().chain(&request.leader_commit).chain(entries);
        ids.any(|id| id.index() <= committed && self.log.differs(types::log_ref(id)))
    }

    /// Answers a candidate that asks for a vote, or for a pre-vote if this is a rehearsal.
    pub(crate) async fn vote(
        &self,
        from: u64,
        request: &message::VoteCall,
        rehearsal: bool,
    ) -> io::Result<message::VoteAnswer> {
        if rehearsal && request.transfer {
            return self.mandates.judge(request).await;
        }
        let excluded = self.exclusion.excludes(from, request.last.as_ref().map(wire::log_id)).await;
        let excluded = excluded.as_ref().map(wire::log_place);
        if rehearsal && let Some(answer) = self.resting.refuse_while_resting(request, excluded.is_none()) {
            return Ok(message::VoteAnswer { excluded, ..answer });
        }
        self.resting.rest().wake();
        let request = wire::vote_call(request);
        let response = match rehearsal {
            true => self.raft.pre_vote(request).await,
            false => self.raft.vote(request).await,
        };
        let answer = wire::put_vote_answer(&response.map_err(io::Error::other)?);
        Ok(message::VoteAnswer { excluded, ..answer })
    }

    /// Takes over the leadership that the leader hands over.
    pub(crate) async fn take_over(&self, request: &message::Transfer) -> io::Result<message::TransferAnswer> {
        self.resting.rest().note_event();
        if request.to == self.own && !self.mandates.is_last(&request.ballot).await {
            return Err(io::Error::other("no majority says that nobody has taken over since"));
        }
        let response = self.raft.handle_transfer_leader(wire::transfer(request)).await.map_err(io::Error::other)?;
        Ok(wire::put_transfer_answer(&response))
    }

    /// Receives a piece of a snapshot.
    pub(crate) async fn snapshot_piece(
        &self,
        piece: message::SnapshotPiece,
    ) -> io::Result<message::SnapshotPieceAnswer> {
        self.receiver.piece(piece).await
    }

    /// Installs the snapshot that was received.
    pub(crate) async fn snapshot_install(
        &self,
        install: message::SnapshotInstall,
    ) -> io::Result<message::SnapshotInstallAnswer> {
        self.receiver.install(&self.raft, install).await
    }
}
