//! The leader of a group, wherever it is: what only it can do, asked of it from any replica.

use std::sync::Arc;
use std::time::Duration;

use actix::Addr;
use bytes::Bytes;
use flotilla_proto::replication::{self as message, Method, write_result};
use prost::Message;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::repeats::Repeats;
use super::write_messages::{put_write, write_error};
use crate::clock::{Close, GroupClock};
use crate::entry::Step;
use crate::group::{Admission, Advance, Propose, Proposer};
use crate::limits::{LEADER_CALL_TIMEOUT, LEADER_RETRY_INTERVAL, LEADER_WAIT, WRITE_TIMEOUT};
use crate::object::Attempt;
use crate::peer::{Lane, PeerError, Peers, Target};
use crate::raft::{Node, Proposals};
use crate::shard_map::Epoch;
use crate::{Outcome, ReadError, Revision, Tenure, Write, WriteError};

/// The leader of one group. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Leader {
    node: Node,
    id: u64,
    clock: Arc<GroupClock>,
    admission: Arc<Admission>,
    repeats: Arc<Repeats>,
    proposer: Addr<Proposer<Proposals>>,
    peers: Option<Arc<dyn Peers>>,
}

/// A write as it is asked for.
pub(crate) struct Asked<'a> {
    pub(crate) write: &'a Write,
    /// How it is named.
    pub(crate) attempt: Attempt,
    /// How often it was asked for before without an answer.
    pub(crate) repeated: u32,
    /// The division of its table, and its shard there.
    pub(crate) shard: (Epoch, u16),
}

/// What a write came to on the leader.
pub(crate) enum Decided {
    /// Here: this is the outcome.
    Here(Outcome),
    /// Elsewhere: what this replica shows once it is closed up to a revision.
    Elsewhere {
        /// The revision of the write; none when its expectation did not hold.
        committed: Option<Revision>,
        /// Up to where this replica's group must be closed.
        closed: Revision,
    },
}

/// Who can be asked.
pub(super) enum Place {
    Here,
    /// Elsewhere, in this term.
    There(Target, u64),
}

/// A search for whoever leads.
pub(super) struct Search<'a> {
    leader: &'a Leader,
    deadline: Instant,
}

impl Search<'_> {
    /// Who is to be asked; none when nobody is known to lead for too long.
    pub(super) async fn place(&self) -> Option<Place> {
        self.leader.place(self.deadline).await
    }

    /// Whether to ask again, since who was asked was elected a moment ago, or is about to learn that another was.
    pub(super) async fn goes_on(&self, is_elsewhere: bool) -> bool {
        let goes_on = is_elsewhere && Instant::now() < self.deadline;
        if goes_on {
            tokio::time::sleep(LEADER_RETRY_INTERVAL).await;
        }
        goes_on
    }
}

impl Leader {
    pub(crate) fn new(
        node: Node,
        id: u64,
        clock: Arc<GroupClock>,
        proposer: Addr<Proposer<Proposals>>,
        peers: Option<Arc<dyn Peers>>,
    ) -> Leader {
        Leader { node, id, clock, admission: Arc::default(), repeats: Arc::default(), proposer, peers }
    }

    /// The group on this replica.
    pub(crate) fn node(&self) -> &Node {
        &self.node
    }

    /// The clock of the group on this replica.
    pub(crate) fn clock(&self) -> &Arc<GroupClock> {
        &self.clock
    }

    /// The writes of this replica that wait for the group.
    pub(crate) fn admission(&self) -> &Arc<Admission> {
        &self.admission
    }

    /// The writes that this replica was asked for again.
    pub(crate) fn repeats(&self) -> &Repeats {
        &self.repeats
    }

    pub(super) fn search(&self) -> Search<'_> {
        Search { leader: self, deadline: Instant::now() + LEADER_WAIT }
    }

    /// Where the leader is, when anyone is known to lead before the deadline.
    async fn place(&self, deadline: Instant) -> Option<Place> {
        let (leader, term, address) = tokio::time::timeout_at(deadline, self.node.leader_located()).await.ok()??;
        Some(match leader == self.id {
            true => Place::Here,
            false => Place::There(Target { address, member: Some(leader) }, term),
        })
    }

    /// What the leader answers, or this error as soon as another leads: a leader that is frozen or cut off does not
    /// say so.
    async fn unless_succeeded<T, E>(&self, asked: impl Future<Output = Result<T, E>>, otherwise: E) -> Result<T, E> {
        let succeeded = self.node.leader_changed();
        tokio::select! {
            biased;
            answer = asked => answer,
            _ = succeeded => Err(otherwise),
        }
    }

    pub(super) async fn call<A: Message + Default>(
        &self,
        target: &Target,
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

    /// Whether there may be other replicas.
    pub(crate) fn has_others(&self) -> bool {
        self.peers.is_some()
    }

    /// Makes a write on the leader, whoever that is; only here and in that term where it was decided by a tenure.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub(crate) async fn write(&self, asked: &Asked<'_>, tenure: Option<Tenure>) -> Result<Decided, WriteError> {
        let here = |tenure| self.propose(asked.write.clone(), Some(asked.attempt), asked.shard, 0, tenure);
        if tenure.is_some() {
            return match here(tenure).await.map(Decided::Here) {
                Err(WriteError::NoSpace) if self.has_room_elsewhere() => {
                    let _ = tokio::time::timeout(LEADER_WAIT, self.node.leader_changed()).await;
                    Err(WriteError::NotLeader { leader: None })
                }
                made => made,
            };
        }
        let search = self.search();
        loop {
            let decided = match search.place().await.ok_or(WriteError::Unavailable)? {
                Place::Here => here(None).await.map(Decided::Here),
                Place::There(target, term) => {
                    self.unless_succeeded(self.write_there(&target, term, asked), WriteError::Unknown).await
                }
            };
            let is_elsewhere = match &decided {
                Err(WriteError::NotLeader { .. } | WriteError::Unavailable) => true,
                Err(WriteError::NoSpace) => self.has_room_elsewhere(), // who leads hands over
                _ => false,
            };
            if !search.goes_on(is_elsewhere).await {
                return decided.map_err(|error| match error {
                    WriteError::NotLeader { .. } => WriteError::Unavailable,
                    error => error,
                });
            }
        }
    }

    /// Whether another than the leader can lead, and has room for what that writes.
    fn has_room_elsewhere(&self) -> bool {
        let leader = self.node.leader();
        let can_lead = |member: u64| match member == self.id {
            true => self.node.has_room(),
            false => self.node.may_lead(member),
        };
        self.node.voters().into_iter().any(|member| Some(member) != leader && can_lead(member))
    }

    /// Makes a write, if this replica leads.
    pub(crate) async fn propose(
        &self,
        write: Write,
        attempt: Option<Attempt>,
        shard: (Epoch, u16),
        bytes: usize,
        tenure: Option<Tenure>,
    ) -> Result<Outcome, WriteError> {
        let permit = self.admission.admit(bytes).ok_or(WriteError::QueueFull)?;
        let (reply, outcome) = oneshot::channel();
        self.proposer.try_send(Propose { write, attempt, shard, tenure, reply, permit }).map_err(|refused| {
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

    /// Has a shard of the group take a step, if this replica leads, and waits until it is applied here.
    pub(crate) async fn advance(&self, step: Step) -> Result<(), WriteError> {
        let (reply, taken) = oneshot::channel();
        self.proposer.send(Advance { step, reply }).await.map_err(|_| WriteError::Closed)?;
        taken.await.unwrap_or(Err(WriteError::Unknown))
    }

    async fn write_there(&self, target: &Target, term: u64, asked: &Asked<'_>) -> Result<Decided, WriteError> {
        let request = Bytes::from(put_write(self.clock.name(), term, asked).encode_to_vec());
        let answer: Result<message::WriteOutcome, PeerError> =
            self.call(target, Lane::Bulk, Method::Write, request, WRITE_TIMEOUT).await;
        let answer = answer.map_err(|error| unanswered(&error))?;
        let (revision, closed) = (Revision::new(answer.revision), Revision::new(answer.closed));
        match answer.result {
            write_result::COMMITTED => Ok(Decided::Elsewhere { committed: Some(revision), closed }),
            write_result::CONFLICT => Ok(Decided::Elsewhere { committed: None, closed }),
            _ => Err(write_error(&answer)),
        }
    }

    /// The index up to which this replica must have applied the log for its reads to be linearizable.
    ///
    /// # Errors
    /// No leader could be found, or it could not confirm that it leads.
    pub(crate) async fn read_index(&self) -> Result<u64, ReadError> {
        let search = self.search();
        loop {
            let index = match search.place().await.ok_or(ReadError::Unavailable)? {
                Place::Here => self.node.read_index().await,
                Place::There(target, _) => {
                    self.unless_succeeded(self.read_index_there(&target), ReadError::Unavailable).await
                }
            };
            if !search.goes_on(is_elsewhere(&index)).await {
                return index.map_err(unavailable);
            }
        }
    }

    async fn read_index_there(&self, target: &Target) -> Result<u64, ReadError> {
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

impl Leader {
    /// Has the leader commit that the group gives no revision up to this one any more.
    ///
    /// # Errors
    /// No leader could be found, or it could not commit it.
    pub(crate) async fn close_to(&self, revision: Revision) -> Result<(), ReadError> {
        let search = self.search();
        loop {
            let closed = match search.place().await.ok_or(ReadError::Unavailable)? {
                Place::Here => self.close_here(revision).await,
                Place::There(target, _) => {
                    self.unless_succeeded(self.close_there(&target, revision), ReadError::Unavailable).await
                }
            };
            if !search.goes_on(is_elsewhere(&closed)).await {
                return closed.map_err(unavailable);
            }
        }
    }

    /// Commits that, if this replica leads.
    pub(crate) async fn close_here(&self, revision: Revision) -> Result<(), ReadError> {
        let (reply, closed) = oneshot::channel();
        self.proposer.try_send(Close { revision, reply }).map_err(|_| ReadError::Unavailable)?;
        closed.await.map_err(|_| ReadError::Unavailable)?
    }

    async fn close_there(&self, target: &Target, revision: Revision) -> Result<(), ReadError> {
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

/// Whether who was asked does not lead, or not yet.
fn is_elsewhere<T>(answer: &Result<T, ReadError>) -> bool {
    matches!(answer, Err(ReadError::NotLeader { .. } | ReadError::Unavailable))
}

/// What is told when nobody who was asked leads.
fn unavailable(error: ReadError) -> ReadError {
    match error {
        ReadError::NotLeader { .. } => ReadError::Unavailable,
        error => error,
    }
}

/// What is known of a write that the leader was asked for and has not answered. A refusal says nothing: a leader that
/// stops drops what it has taken in already, and that is told as one.
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
    fn a_write_did_not_happen_only_if_it_was_not_sent() {
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
