//! The leader of a group, wherever it is: what only it can do, asked of it from any replica.

use std::sync::Arc;
use std::time::Duration;

use actix::Addr;
use bytes::Bytes;
use flotilla_proto::replication::{self as message, Method, write_result};
use prost::Message;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::group::{Admission, Advance, Close, GroupClock, Propose, Proposer, Step};
use crate::limits::{CATCH_UP_TIMEOUT, LEADER_CALL_TIMEOUT, LEADER_RETRY_INTERVAL, LEADER_WAIT, WRITE_TIMEOUT};
use crate::object::Term;
use crate::peer::{Lane, PeerError, Peers, Target};
use crate::raft::{Node, Proposals, Unchanged};
use crate::shard_map::Epoch;
use crate::{
    Draft, Expectation, Key, Layout, Mutation, Outcome, ReadError, Revision, TableId, Tenure, Terms, Write, WriteError,
};

/// The leader of one group. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Leader {
    node: Node,
    id: u64,
    clock: Arc<GroupClock>,
    admission: Arc<Admission>,
    proposer: Addr<Proposer<Proposals>>,
    peers: Option<Arc<dyn Peers>>,
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
enum Place {
    Here,
    There(Target),
}

impl Leader {
    pub(crate) fn new(
        node: Node,
        id: u64,
        clock: Arc<GroupClock>,
        proposer: Addr<Proposer<Proposals>>,
        peers: Option<Arc<dyn Peers>>,
    ) -> Leader {
        Leader { node, id, clock, admission: Arc::default(), proposer, peers }
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

    /// Where the leader is, when anyone is known to lead before the deadline.
    async fn place(&self, deadline: Instant) -> Option<Place> {
        loop {
            if let Some(leader) = self.node.leader() {
                if leader == self.id {
                    return Some(Place::Here);
                }
                if let Some(address) = self.node.address(leader) {
                    return Some(Place::There(Target { address, member: Some(leader) }));
                }
            }
            if tokio::time::timeout_at(deadline, self.node.leader_changed()).await != Ok(true) {
                return None;
            }
        }
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

    async fn call<A: Message + Default>(
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
    pub(crate) async fn write(
        &self,
        write: &Write,
        shard: (Epoch, u16),
        tenure: Option<Tenure>,
    ) -> Result<Decided, WriteError> {
        if tenure.is_some() {
            return self.propose(write.clone(), shard, 0, tenure).await.map(Decided::Here);
        }
        let deadline = Instant::now() + LEADER_WAIT;
        loop {
            let Some(place) = self.place(deadline).await else { return Err(WriteError::Unavailable) };
            let tried = match place {
                Place::Here => self.propose(write.clone(), shard, 0, None).await.map(Decided::Here),
                Place::There(target) => {
                    self.unless_succeeded(self.write_there(&target, write, shard), WriteError::Unknown).await
                }
            };
            match tried {
                Err(WriteError::NotLeader { .. } | WriteError::Unavailable) if Instant::now() < deadline => {
                    // It was elected a moment ago, or is about to learn that another was.
                    tokio::time::sleep(LEADER_RETRY_INTERVAL).await;
                }
                Err(WriteError::NotLeader { .. }) => return Err(WriteError::Unavailable),
                decided => return decided,
            }
        }
    }

    /// Makes a write, if this replica leads.
    pub(crate) async fn propose(
        &self,
        write: Write,
        shard: (Epoch, u16),
        bytes: usize,
        tenure: Option<Tenure>,
    ) -> Result<Outcome, WriteError> {
        let permit = self.admission.admit(bytes).ok_or(WriteError::QueueFull)?;
        let (reply, outcome) = oneshot::channel();
        self.proposer.try_send(Propose { write, shard, tenure, reply, permit }).map_err(|refused| match refused {
            actix::dev::SendError::Full(_) => WriteError::QueueFull,
            actix::dev::SendError::Closed(_) => WriteError::Closed,
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

    async fn write_there(&self, target: &Target, write: &Write, shard: (Epoch, u16)) -> Result<Decided, WriteError> {
        let request = Bytes::from(put_write(self.clock.name(), write, shard).encode_to_vec());
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
        let deadline = Instant::now() + LEADER_WAIT;
        loop {
            let Some(place) = self.place(deadline).await else { return Err(ReadError::Unavailable) };
            let index = match place {
                Place::Here => self.node.read_index().await,
                Place::There(target) => {
                    self.unless_succeeded(self.read_index_there(&target), ReadError::Unavailable).await
                }
            };
            match index {
                Err(ReadError::NotLeader { .. } | ReadError::Unavailable) if Instant::now() < deadline => {
                    tokio::time::sleep(LEADER_RETRY_INTERVAL).await;
                }
                Err(ReadError::NotLeader { .. }) => return Err(ReadError::Unavailable),
                index => return index,
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
        let deadline = Instant::now() + LEADER_WAIT;
        loop {
            let Some(place) = self.place(deadline).await else { return Err(ReadError::Unavailable) };
            let closed = match place {
                Place::Here => self.close_here(revision).await,
                Place::There(target) => {
                    self.unless_succeeded(self.close_there(&target, revision), ReadError::Unavailable).await
                }
            };
            match closed {
                Err(ReadError::NotLeader { .. } | ReadError::Unavailable) if Instant::now() < deadline => {
                    tokio::time::sleep(LEADER_RETRY_INTERVAL).await;
                }
                closed => return closed,
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

impl Leader {
    /// Has the leader change who is in the group or who leads it. Safe to repeat.
    ///
    /// # Errors
    /// It cannot be done, or nobody leads.
    pub(crate) async fn administer(&self, mut request: message::Administer) -> Result<(), Unchanged> {
        request.group = self.clock.name().to_string();
        let mut deadline = Instant::now() + LEADER_WAIT;
        loop {
            let nobody = || Unchanged::Refused("it has no leader that a majority follows".into());
            let leader = self.node.leader();
            let done = match self.place(deadline).await.ok_or_else(nobody)? {
                // Apart, because it is seldom needed and large.
                Place::Here => Box::pin(self.node.administer(&request)).await,
                Place::There(target) => self.administer_there(&target, &request).await,
            };
            let Err(Unchanged::NotLeader(_)) = done else { return done };
            if Instant::now() >= deadline {
                return Err(nobody());
            }
            if leader == Some(request.member) {
                deadline = Instant::now() + LEADER_WAIT; // it has handed over first, which takes its time
            }
            tokio::time::sleep(LEADER_RETRY_INTERVAL).await;
        }
    }

    async fn administer_there(&self, target: &Target, request: &message::Administer) -> Result<(), Unchanged> {
        let request = Bytes::from(request.encode_to_vec());
        let answer: Result<message::AdministerAnswer, PeerError> =
            self.call(target, Lane::Control, Method::Administer, request, CATCH_UP_TIMEOUT).await;
        match answer {
            Ok(answer) if answer.moved => Err(Unchanged::NotLeader((answer.leader > 0).then_some(answer.leader))),
            Ok(answer) if answer.refusal.is_empty() => Ok(()),
            Ok(answer) => Err(Unchanged::Refused(answer.refusal)),
            Err(PeerError::Unreachable(_)) => Err(Unchanged::NotLeader(None)),
            Err(error) => Err(Unchanged::Refused(error.to_string())),
        }
    }
}

fn put_terms(terms: &[Term]) -> Vec<message::Term> {
    terms.iter().map(|(name, value)| message::Term { name: name.to_string(), value: value.to_string() }).collect()
}

fn put_write(group: &str, write: &Write, (epoch, shard): (Epoch, u16)) -> message::Write {
    let draft = match &write.mutation {
        Mutation::Delete => None,
        Mutation::Put(draft) => Some(message::Draft {
            bytes: Bytes::copy_from_slice(&draft.bytes),
            revision_at: draft.layout.revision_at,
            head: draft.layout.head,
            metadata_start: draft.layout.metadata.start,
            metadata_end: draft.layout.metadata.end,
            labels: put_terms(draft.terms.labels()),
            fields: put_terms(draft.terms.fields()),
        }),
    };
    let expected = match write.expectation {
        Expectation::Absent => 0,
        Expectation::Revision(revision) => revision.get(),
    };
    let (table, key) = (write.table.to_string(), write.key.to_string());
    message::Write { table, key, expected, draft, group: group.to_owned(), epoch, shard: shard.into() }
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

/// The write that a message asks for.
pub(super) fn read_write(message: message::Write) -> Write {
    let terms = |terms: Vec<message::Term>| {
        terms.into_iter().map(|term| (term.name.into(), term.value.into())).collect::<Vec<Term>>()
    };
    let draft = |draft: message::Draft| Draft {
        bytes: draft.bytes.into(),
        layout: Layout {
            revision_at: draft.revision_at,
            head: draft.head,
            metadata: draft.metadata_start..draft.metadata_end,
        },
        terms: Terms::new(terms(draft.labels), terms(draft.fields)),
    };
    let expectation = match message.expected {
        0 => Expectation::Absent,
        revision => Expectation::Revision(Revision::new(revision)),
    };
    let mutation = message.draft.map_or(Mutation::Delete, |given| Mutation::Put(draft(given)));
    Write { table: TableId::new(&message.table), key: Key::new(&message.key), expectation, mutation }
}

/// What is told of a write that was not decided.
pub(super) fn put_write_error(error: &WriteError) -> message::WriteOutcome {
    let result = match error {
        WriteError::NotLeader { .. } => write_result::NOT_LEADER,
        WriteError::Unavailable => write_result::UNAVAILABLE,
        WriteError::NoSpace => write_result::NO_SPACE,
        WriteError::QueueFull => write_result::QUEUE_FULL,
        WriteError::TooLarge { .. } | WriteError::Malformed => write_result::MALFORMED,
        WriteError::Closed => write_result::CLOSED,
        WriteError::Moved => write_result::MOVED,
        WriteError::Unknown => write_result::UNKNOWN,
    };
    let leader = if let WriteError::NotLeader { leader } = error { leader.unwrap_or(0) } else { 0 };
    message::WriteOutcome { result, leader, ..message::WriteOutcome::default() }
}

fn write_error(outcome: &message::WriteOutcome) -> WriteError {
    match outcome.result {
        write_result::NOT_LEADER => WriteError::NotLeader { leader: (outcome.leader > 0).then_some(outcome.leader) },
        write_result::UNAVAILABLE | write_result::CLOSED => WriteError::Unavailable,
        write_result::NO_SPACE => WriteError::NoSpace,
        write_result::QUEUE_FULL => WriteError::QueueFull,
        write_result::MALFORMED => WriteError::Malformed,
        write_result::MOVED => WriteError::Moved,
        _ => WriteError::Unknown,
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
