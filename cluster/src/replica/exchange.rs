//! Answers the calls of other replicas.

use std::fmt::Display;
use std::num::NonZeroU64;
use std::sync::Arc;

use bytes::Bytes;
use flotilla_proto::replication::{self as message, Method, write_result};
use futures_util::future::BoxFuture;
use prost::Message;

use super::asking::leader_client::LeaderClient;
use super::asking::write_messages::{put_write_error, read_write};
use super::forming::identity::IdentityFile;
use super::groups::{Group, Groups};
use super::leading::placement::{self, Placement};
use crate::object::WriteId;
use crate::peer::peer_view::PeerView;
use crate::peer::{Hello, Refusal, Reply, Service};
use crate::raft::{Node, Unchanged};
use crate::tasks;
use crate::{Outcome, ReadError, Revision, Tenure, WriteError};

/// Answers the calls of other replicas, on the thread of the store.
pub(crate) struct Exchange {
    identity: Arc<IdentityFile>,
    placement: Arc<Placement>,
    groups: Groups,
    peer_view: Arc<PeerView>,
    /// Called when this replica becomes a member of a cluster because another replica treats it as one.
    belongs: Box<dyn Fn() + Send + Sync>,
}

type Answer = Result<Bytes, Refusal>;

fn refused(error: impl Display) -> Refusal {
    Refusal(error.to_string())
}

fn encoded(answer: &impl Message) -> Bytes {
    Bytes::from(answer.encode_to_vec())
}

fn answered(answer: Result<impl Message, impl Display>) -> Answer {
    answer.map(|answer| encoded(&answer)).map_err(refused)
}

impl Exchange {
    pub(crate) fn new(
        identity: Arc<IdentityFile>,
        placement: Arc<Placement>,
        groups: Groups,
        peer_view: Arc<PeerView>,
        belongs: impl Fn() + Send + Sync + 'static,
    ) -> Exchange {
        Exchange { identity, placement, groups, peer_view, belongs: Box::new(belongs) }
    }

    /// Checks that a calling replica belongs to the same cluster. A replica without a cluster joins that of the first
    /// caller that has one.
    fn check(&self, from: &Hello) -> Result<(), Refusal> {
        let own = self.identity.get();
        if own.cluster.is_empty() && !from.cluster.is_empty() {
            self.identity.belong(&from.cluster).map_err(refused)?;
            tracing::info!(cluster = from.cluster, "this replica now belongs to a cluster");
            (self.belongs)();
            return Ok(());
        }
        match own.cluster == from.cluster {
            true => Ok(()),
            false => Err(Refusal(format!("this replica belongs to the cluster {:?}", own.cluster))),
        }
    }

    fn group(&self, name: &str) -> Result<Arc<Group>, Refusal> {
        self.groups.get(name).ok_or_else(|| Refusal(format!("this replica does not have the group {name:?} yet")))
    }

    fn node(&self, name: &str) -> Result<Node, Refusal> {
        Ok(self.group(name)?.leader_client.node().clone())
    }
}

impl Service for Exchange {
    fn serve(&self, from: &Hello, method: u32, payload: Bytes, reply: Reply) {
        if let Err(refusal) = self.check(from) {
            return reply.send(Err(refusal));
        }
        let answer = match Method::from_number(method) {
            Some(method) => self.start(from.member, method, payload),
            None => Err(Refusal(format!("this replica knows no method {method}"))),
        };
        match answer {
            Ok(answer) => drop(tasks::detached("answer", async move { reply.send(answer.await) })),
            Err(refusal) => reply.send(Err(refusal)),
        }
    }
}

type Answering = BoxFuture<'static, Answer>;

impl Exchange {
    /// Decodes a request, and returns the future that answers it.
    fn start(&self, from: u64, method: Method, payload: Bytes) -> Result<Answering, Refusal> {
        Ok(match method {
            Method::Append => {
                let request = message::Append::decode(payload).map_err(refused)?;
                let node = self.node(&request.group)?;
                Box::pin(async move { answered(node.service().append(&request).await) })
            }
            Method::Vote | Method::PreVote => {
                let request = message::VoteCall::decode(payload).map_err(refused)?;
                let node = self.node(&request.group)?;
                let rehearsal = method == Method::PreVote;
                Box::pin(async move { answered(node.service().vote(from, &request, rehearsal).await) })
            }
            Method::Transfer => {
                let request = message::Transfer::decode(payload).map_err(refused)?;
                let node = self.node(&request.group)?;
                Box::pin(async move { answered(node.service().take_over(&request).await) })
            }
            Method::SnapshotPiece => {
                let request = message::SnapshotPiece::decode(payload).map_err(refused)?;
                let node = self.node(&request.group)?;
                Box::pin(async move { answered(node.service().snapshot_piece(request).await) })
            }
            Method::SnapshotInstall => {
                let request = message::SnapshotInstall::decode(payload).map_err(refused)?;
                let node = self.node(&request.group)?;
                Box::pin(async move { answered(node.service().snapshot_install(request).await) })
            }
            Method::Write => {
                let request = message::Write::decode(payload).map_err(refused)?;
                let client = self.group(&request.group)?.leader_client.clone();
                Box::pin(async move { Ok(encoded(&write(&client, request).await)) })
            }
            Method::ReadIndex => {
                let request = message::ReadIndex::decode(payload).map_err(refused)?;
                let node = self.node(&request.group)?;
                Box::pin(async move { answered(read_index(&node).await) })
            }
            Method::Close => {
                let request = message::Close::decode(payload).map_err(refused)?;
                let client = self.group(&request.group)?.leader_client.clone();
                Box::pin(async move { answered(close(&client, &request).await) })
            }
            Method::Administer => {
                let request = message::Administer::decode(payload).map_err(refused)?;
                if placement::is_about_one(&request) {
                    let placement = self.placement.clone();
                    return Ok(Box::pin(async move {
                        let refusal = placement.carry_out(&request).await.err().unwrap_or_default();
                        Ok(encoded(&message::AdministerAnswer { refusal, ..Default::default() }))
                    }));
                }
                let node = self.node(&request.group)?;
                Box::pin(async move { Ok(encoded(&administer(&node, &request).await)) })
            }
            Method::Rest => {
                let answer = self.rest(&message::Rest::decode(payload).map_err(refused)?);
                Box::pin(std::future::ready(Ok(encoded(&answer))))
            }
        })
    }
}

impl Exchange {
    /// Answers which of these groups this replica agrees to let rest.
    fn rest(&self, request: &message::Rest) -> message::RestAnswer {
        let rests = |resting: &message::Resting| {
            self.node(&resting.group).is_ok_and(|node| node.resting().agree_to_rest(resting, &self.peer_view))
        };
        message::RestAnswer { rests: request.groups.iter().map(rests).collect() }
    }
}

/// Makes a write for a replica that considers this one the leader.
async fn write(client: &LeaderClient, request: message::Write) -> message::WriteOutcome {
    let bytes = request.draft.as_ref().map_or(0, |draft| draft.bytes.len());
    let shard = (request.epoch, request.shard as u16); // there are at most SHARDS_MAX
    let write_id = WriteId::numbered(request.attempt);
    if write_id.is_some_and(|write_id| !client.latest_attempts().admits(write_id, request.repeated)) {
        return put_write_error(&WriteError::Unknown); // its caller has moved on to a later attempt
    }
    let tenure = NonZeroU64::new(request.term).map(Tenure);
    let outcome = client.propose(read_write(request), write_id, shard, bytes, tenure).await;
    let outcome = match outcome {
        Ok(outcome) => outcome,
        Err(error) => return put_write_error(&error),
    };
    let (result, revision) = match &outcome {
        Outcome::Committed { object, .. } => (write_result::COMMITTED, object.revision().get()),
        Outcome::Conflict { current } => {
            (write_result::CONFLICT, current.as_ref().map_or(0, |current| current.revision().get()))
        }
    };
    message::WriteOutcome { result, revision, closed: client.clock().closed().get(), leader: 0 }
}

async fn administer(node: &Node, request: &message::Administer) -> message::AdministerAnswer {
    match node.administration().administer(request).await {
        Ok(()) => message::AdministerAnswer::default(),
        Err(Unchanged::NotLeader(leader)) => {
            message::AdministerAnswer { moved: true, leader: leader.unwrap_or_default(), ..Default::default() }
        }
        Err(Unchanged::Refused(refusal) | Unchanged::Overtaken(refusal)) => {
            message::AdministerAnswer { refusal, ..Default::default() }
        }
    }
}

async fn close(client: &LeaderClient, request: &message::Close) -> Result<message::CloseAnswer, ReadError> {
    match client.close_here(Revision::new(request.revision)).await {
        Ok(()) => Ok(message::CloseAnswer { closed: true, leader: 0 }),
        Err(ReadError::NotLeader { leader }) => {
            Ok(message::CloseAnswer { closed: false, leader: leader.unwrap_or_default() })
        }
        Err(error) => Err(error),
    }
}

async fn read_index(node: &Node) -> Result<message::ReadIndexAnswer, ReadError> {
    match node.reading().read_index().await {
        Ok(index) => Ok(message::ReadIndexAnswer { index, leader: 0 }),
        Err(ReadError::NotLeader { leader }) => {
            Ok(message::ReadIndexAnswer { index: 0, leader: leader.unwrap_or_default() })
        }
        Err(error) => Err(error),
    }
}
