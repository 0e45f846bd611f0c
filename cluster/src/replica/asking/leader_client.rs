//! A client of a group's leader: any replica can make requests to it, wherever it is.

use std::sync::Arc;
use std::time::Duration;

use actix::Addr;
use bytes::Bytes;
use flotilla_proto::replication::{self as message, Method, write_result};
use prost::Message;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::latest_attempts::LatestAttempts;
use super::write_messages::{WriteRequest, put_write, write_error};
use crate::clock::{Close, GroupClock};
use crate::entry::ShardStep;
use crate::group::{Advance, Propose, Proposer, WaitingWrites};
use crate::limits::{LEADER_CALL_TIMEOUT, LEADER_RETRY_INTERVAL, LEADER_WAIT, WRITE_TIMEOUT};
use crate::object::WriteId;
use crate::peer::{Callee, Lane, PeerError, Peers};
use crate::raft::{Node, Proposals};
use crate::shard_map::Epoch;
use crate::{Outcome, ReadError, Revision, Tenure, Write, WriteError};

/// A client of the leader of one group. Cheap to clone.
#[derive(Clone)]
pub(crate) struct LeaderClient {
    node: Node,
    id: u64,
    clock: Arc<GroupClock>,
    waiting_writes: Arc<WaitingWrites>,
    latest_attempts: Arc<LatestAttempts>,
    proposer: Addr<Proposer<Proposals>>,
    peers: Option<Arc<dyn Peers>>,
}

/// A write that the leader has decided.
pub(crate) enum WriteDecision {
    /// This replica leads: the outcome.
    Here(Outcome),
    /// Another replica leads: the outcome becomes visible here once this replica has closed up to a revision.
    Elsewhere {
        /// The revision of the write; `None` when its expectation did not hold.
        committed: Option<Revision>,
        /// The revision up to which the group must be closed here.
        closed: Revision,
    },
}

/// Where the leader is.
pub(super) enum LeaderLocation {
    Here,
    /// On another replica, in this term.
    There(Callee, u64),
}

/// A search for the leader, up to a deadline.
pub(super) struct Search<'a> {
    client: &'a LeaderClient,
    deadline: Instant,
}

impl Search<'_> {
    /// Returns where the leader is. `None` when none becomes known before the deadline.
    pub(super) async fn locate(&self) -> Option<LeaderLocation> {
        self.client.locate(self.deadline).await
    }

    /// Waits a moment and returns true when the leader should be asked again: the replica that was asked may have just
    /// been elected, or may be about to learn that another one was. Returns false after the deadline.
    pub(super) async fn goes_on(&self, is_elsewhere: bool) -> bool {
        let goes_on = is_elsewhere && Instant::now() < self.deadline;
        if goes_on {
            tokio::time::sleep(LEADER_RETRY_INTERVAL).await;
        }
        goes_on
    }
}

impl LeaderClient {
    pub(crate) fn new(
        node: Node,
        id: u64,
        clock: Arc<GroupClock>,
        proposer: Addr<Proposer<Proposals>>,
        peers: Option<Arc<dyn Peers>>,
    ) -> LeaderClient {
        LeaderClient {
            node,
            id,
            clock,
            waiting_writes: Arc::default(),
            latest_attempts: Arc::default(),
            proposer,
            peers,
        }
    }

    /// Returns this replica's node in the group.
    pub(crate) fn node(&self) -> &Node {
        &self.node
    }

    /// Returns the clock of the group on this replica.
    pub(crate) fn clock(&self) -> &Arc<GroupClock> {
        &self.clock
    }

    /// Returns the count of this replica's writes that wait for the group.
    pub(crate) fn waiting_writes(&self) -> &Arc<WaitingWrites> {
        &self.waiting_writes
    }

    /// Returns the latest attempts of repeated writes that this replica was asked to make as the leader.
    pub(crate) fn latest_attempts(&self) -> &LatestAttempts {
        &self.latest_attempts
    }

    pub(super) fn search(&self) -> Search<'_> {
        Search { client: self, deadline: Instant::now() + LEADER_WAIT }
    }

    /// Returns where the leader is. `None` when none is known before the deadline.
    async fn locate(&self, deadline: Instant) -> Option<LeaderLocation> {
        let (leader, term, address) =
            tokio::time::timeout_at(deadline, self.node.roster().leader_located()).await.ok()??;
        Some(match leader == self.id {
            true => LeaderLocation::Here,
            false => LeaderLocation::There(Callee { address, member: Some(leader) }, term),
        })
    }

    /// Returns the leader's answer, or the error `otherwise` as soon as another replica leads: a leader that is frozen
    /// or cut off does not answer.
    async fn unless_succeeded<T, E>(&self, answer: impl Future<Output = Result<T, E>>, otherwise: E) -> Result<T, E> {
        let succeeded = self.node.roster().leader_changed();
        tokio::select! {
            biased;
            answered = answer => answered,
            _ = succeeded => Err(otherwise),
        }
    }

    pub(super) async fn call<A: Message + Default>(
        &self,
        target: &Callee,
        lane: Lane,
        method: Method,
        request: Bytes,
        timeout: Duration,
    ) -> Result<A, PeerError> {
        let unreachable = || PeerError::Unreachable("this store has no other replicas".into());
        let peers = self.peers.as_ref().ok_or_else(unreachable)?;
        let answer = peers.call(target, lane, method as u32, request, timeout).await?;
        A::decode(answer).map_err(|error| PeerError::Refused(error.to_string()))
    }

    /// Returns whether there may be other replicas.
    pub(crate) fn has_others(&self) -> bool {
        self.peers.is_some()
    }

    /// Makes a write on the leader, wherever it is. With a tenure it is made on this replica and in that term only.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub(crate) async fn write(
        &self,
        request: &WriteRequest<'_>,
        tenure: Option<Tenure>,
    ) -> Result<WriteDecision, WriteError> {
        let here = |tenure| self.propose(request.write.clone(), Some(request.write_id), request.shard, 0, tenure);
        if tenure.is_some() {
            return match here(tenure).await.map(WriteDecision::Here) {
                Err(WriteError::NoSpace) if self.has_room_elsewhere() => {
                    let _ = tokio::time::timeout(LEADER_WAIT, self.node.roster().leader_changed()).await;
                    Err(WriteError::NotLeader { leader: None })
                }
                made => made,
            };
        }
        let search = self.search();
        loop {
            let decision = match search.locate().await.ok_or(WriteError::Unavailable)? {
                LeaderLocation::Here => here(None).await.map(WriteDecision::Here),
                LeaderLocation::There(target, term) => {
                    self.unless_succeeded(self.write_there(&target, term, request), WriteError::Unknown).await
                }
            };
            let is_elsewhere = match &decision {
                Err(WriteError::NotLeader { .. } | WriteError::Unavailable) => true,
                Err(WriteError::NoSpace) => self.has_room_elsewhere(), // the leader will hand over
                _ => false,
            };
            if !search.goes_on(is_elsewhere).await {
                return decision.map_err(|error| match error {
                    WriteError::NotLeader { .. } => WriteError::Unavailable,
                    error => error,
                });
            }
        }
    }

    /// Returns whether another member than the leader can lead and has room on its disk.
    fn has_room_elsewhere(&self) -> bool {
        let leader = self.node.roster().leader();
        let can_lead = |member: u64| match member == self.id {
            true => self.node.has_room(),
            false => self.node.connections().may_lead(member),
        };
        self.node.roster().voters().into_iter().any(|member| Some(member) != leader && can_lead(member))
    }

    /// Makes a write, if this replica leads.
    pub(crate) async fn propose(
        &self,
        write: Write,
        write_id: Option<WriteId>,
        shard: (Epoch, u16),
        bytes: usize,
        tenure: Option<Tenure>,
    ) -> Result<Outcome, WriteError> {
        let permit = self.waiting_writes.add(bytes).ok_or(WriteError::QueueFull)?;
        let (reply, outcome) = oneshot::channel();
        self.proposer.try_send(Propose { write, write_id, shard, tenure, reply, permit }).map_err(|refused| {
            match refused {
                actix::dev::SendError::Full(_) => WriteError::QueueFull,
                actix::dev::SendError::Closed(_) => WriteError::Closed,
            }
        })?;
        match tokio::time::timeout(WRITE_TIMEOUT, outcome).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) | Err(_) => Err(WriteError::Unknown),
        }
    }

    /// Makes a shard of the group take a step, if this replica leads, and waits until it is applied here.
    pub(crate) async fn advance(&self, step: ShardStep) -> Result<(), WriteError> {
        let (reply, taken) = oneshot::channel();
        self.proposer.send(Advance { step, reply }).await.map_err(|_| WriteError::Closed)?;
        taken.await.unwrap_or(Err(WriteError::Unknown))
    }

    async fn write_there(
        &self,
        target: &Callee,
        term: u64,
        request: &WriteRequest<'_>,
    ) -> Result<WriteDecision, WriteError> {
        let request = Bytes::from(put_write(self.clock.name(), term, request).encode_to_vec());
        let answer: Result<message::WriteOutcome, PeerError> =
            self.call(target, Lane::Bulk, Method::Write, request, WRITE_TIMEOUT).await;
        let answer = answer.map_err(|error| unanswered(&error))?;
        let (revision, closed) = (Revision::new(answer.revision), Revision::new(answer.closed));
        match answer.result {
            write_result::COMMITTED => Ok(WriteDecision::Elsewhere { committed: Some(revision), closed }),
            write_result::CONFLICT => Ok(WriteDecision::Elsewhere { committed: None, closed }),
            _ => Err(write_error(&answer)),
        }
    }

    /// Returns the index up to which this replica must have applied the log for its reads to be linearizable (Raft's
    /// ReadIndex).
    ///
    /// # Errors
    /// Fails when no leader can be found, or it cannot confirm that it leads.
    pub(crate) async fn read_index(&self) -> Result<u64, ReadError> {
        let search = self.search();
        loop {
            let index = match search.locate().await.ok_or(ReadError::Unavailable)? {
                LeaderLocation::Here => self.node.reading().read_index().await,
                LeaderLocation::There(target, _) => {
                    self.unless_succeeded(self.read_index_there(&target), ReadError::Unavailable).await
                }
            };
            if !search.goes_on(is_elsewhere(&index)).await {
                return index.map_err(unavailable);
            }
        }
    }

    async fn read_index_there(&self, target: &Callee) -> Result<u64, ReadError> {
        let request = Bytes::from(message::ReadIndex { group: self.clock.name().to_string() }.encode_to_vec());
        let answer: Result<message::ReadIndexAnswer, PeerError> =
            self.call(target, Lane::Control, Method::ReadIndex, request, LEADER_CALL_TIMEOUT).await;
        match answer {
            Ok(answer) if answer.index > 0 => Ok(answer.index),
            Ok(answer) => Err(ReadError::NotLeader { leader: (answer.leader > 0).then_some(answer.leader) }),
            Err(PeerError::Closed) => Err(ReadError::Closed),
            Err(_) => Err(ReadError::Unavailable),
        }
    }
}

impl LeaderClient {
    /// Makes the leader commit that the group assigns no revision up to this one any more.
    ///
    /// # Errors
    /// Fails when no leader can be found, or it cannot commit this.
    pub(crate) async fn close_to(&self, revision: Revision) -> Result<(), ReadError> {
        let search = self.search();
        loop {
            let closed = match search.locate().await.ok_or(ReadError::Unavailable)? {
                LeaderLocation::Here => self.close_here(revision).await,
                LeaderLocation::There(target, _) => {
                    self.unless_succeeded(self.close_there(&target, revision), ReadError::Unavailable).await
                }
            };
            if !search.goes_on(is_elsewhere(&closed)).await {
                return closed.map_err(unavailable);
            }
        }
    }

    /// Commits that the group assigns no revision up to this one any more, if this replica leads.
    pub(crate) async fn close_here(&self, revision: Revision) -> Result<(), ReadError> {
        let (reply, closed) = oneshot::channel();
        self.proposer.try_send(Close { revision, reply }).map_err(|_| ReadError::Unavailable)?;
        closed.await.map_err(|_| ReadError::Unavailable)?
    }

    async fn close_there(&self, target: &Callee, revision: Revision) -> Result<(), ReadError> {
        let request = message::Close { group: self.clock.name().to_string(), revision: revision.get() };
        let request = Bytes::from(request.encode_to_vec());
        let answer: Result<message::CloseAnswer, PeerError> =
            self.call(target, Lane::Bulk, Method::Close, request, LEADER_CALL_TIMEOUT).await;
        match answer {
            Ok(answer) if answer.closed => Ok(()),
            Ok(answer) => Err(ReadError::NotLeader { leader: (answer.leader > 0).then_some(answer.leader) }),
            Err(PeerError::Closed) => Err(ReadError::Closed),
            Err(_) => Err(ReadError::Unavailable),
        }
    }
}

/// Returns whether the replica that was asked does not lead, or does not lead yet.
fn is_elsewhere<T>(answer: &Result<T, ReadError>) -> bool {
    matches!(answer, Err(ReadError::NotLeader { .. } | ReadError::Unavailable))
}

/// Converts the error for a caller that has asked every leader: a replica that does not lead is of no use to it.
fn unavailable(error: ReadError) -> ReadError {
    match error {
        ReadError::NotLeader { .. } => ReadError::Unavailable,
        error => error,
    }
}

/// Converts a failed call into the error of the write. A refusal says nothing about the outcome of the write: a leader
/// that stops drops requests that it has already taken in, and these are reported as refused.
fn unanswered(error: &PeerError) -> WriteError {
    match error {
        PeerError::QueueFull | PeerError::TooLarge { .. } => WriteError::QueueFull,
        PeerError::Identity { .. } => WriteError::Unavailable,
        PeerError::Refused(_) | PeerError::Unreachable(_) | PeerError::Timeout | PeerError::Closed => {
            WriteError::Unknown
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_outcome_of_a_write_is_unknown_once_it_was_sent() {
        let sent = [
            PeerError::Refused(String::new()),
            PeerError::Unreachable("".into()),
            PeerError::Timeout,
            PeerError::Closed,
        ];
        assert!(sent.iter().all(|error| !unanswered(error).is_definite()));
        let unsent = [PeerError::QueueFull, PeerError::TooLarge { bytes: 1 }, PeerError::Identity { found: 1 }];
        assert!(unsent.iter().all(|error| unanswered(error).is_definite()));
    }
}
