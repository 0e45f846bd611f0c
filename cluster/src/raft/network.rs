//! Calls of a group to its other replicas.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use flotilla_proto::replication::{self as message, Method};
use futures_util::{Stream, StreamExt, stream};
use openraft::alias::{SnapshotOf, VoteOf};
use openraft::base::{BoxFuture, BoxStream};
use openraft::errors::{NetworkError, RPCError, ReplicationClosed, StreamingError, Timeout, Unreachable};
use openraft::network::{Backoff, RPCOption, RPCTypes, RaftNetworkFactory, RaftNetworkV2};
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse, StreamAppendError, StreamAppendResult,
    TransferLeaderRequest, TransferLeaderResponse, VoteRequest, VoteResponse,
};
use openraft::{AnyError, EntryPayload, OptionalSend};
use prost::Message;
use tokio::sync::Semaphore;

use super::acknowledged::Acknowledged;
use super::addresses::Addresses;
use super::exclusion::Excluded;
use super::rest::Rest;
use super::snapshot_sending;
use super::state_machine::SnapshotFile;
use super::types::{Entry, LogIdentity, TypeConfig};
use super::wire;
use crate::limits::{APPEND_BYTES_IN_FLIGHT_MAX, APPEND_TIMEOUT, APPENDS_IN_FLIGHT_MAX, PEER_RETRY_INTERVAL};
use crate::peer::{Callee, Lane, PeerError, Peers};
use crate::roster::Replica;

/// Creates the links of one group to its other replicas.
pub(super) struct Network {
    /// `None` on a store that has no others.
    pub(super) peers: Option<Arc<dyn Peers>>,
    pub(super) group: Arc<str>,
    pub(super) node: u64,
    /// Set when this replica is told that it is not a member.
    pub(super) excluded: Excluded,
    pub(super) rest: Arc<Rest>,
    pub(super) acknowledged: Acknowledged,
    pub(super) addresses: Addresses,
}

impl Network {
    fn link(&self, target: u64, node: &Replica, lane: Lane) -> Link {
        let target = Callee { address: node.address.clone(), member: Some(target) };
        Link {
            peers: self.peers.clone(),
            group: self.group.clone(),
            node: self.node,
            target,
            lane,
            excluded: self.excluded.clone(),
            rest: self.rest.clone(),
            acknowledged: self.acknowledged.clone(),
            addresses: self.addresses.clone(),
        }
    }
}

impl RaftNetworkFactory<TypeConfig> for Network {
    type Network = Link;

    async fn new_client(&mut self, target: u64, node: &Replica) -> Link {
        self.link(target, node, Lane::Bulk)
    }

    async fn new_heartbeat_client(&mut self, target: u64, node: &Replica) -> Link {
        self.link(target, node, Lane::Control)
    }

    async fn new_snapshot_client(&mut self, target: u64, node: &Replica) -> Link {
        self.link(target, node, Lane::Snapshot)
    }
}

/// The link of one group to one other replica.
#[derive(Clone)]
pub(super) struct Link {
    peers: Option<Arc<dyn Peers>>,
    group: Arc<str>,
    node: u64,
    target: Callee,
    lane: Lane,
    excluded: Excluded,
    rest: Arc<Rest>,
    acknowledged: Acknowledged,
    addresses: Addresses,
}

type RpcResult<T> = Result<T, RPCError<TypeConfig>>;

impl Link {
    pub(super) fn group(&self) -> &str {
        &self.group
    }

    /// Returns the id of the replica that has this link.
    pub(super) fn node(&self) -> u64 {
        self.node
    }

    /// Calls the other replica. The call has been sent when this returns; the future waits for the answer.
    pub(super) fn call<R: Message>(
        &self,
        lane: Lane,
        method: Method,
        request: &R,
        timeout: Duration,
    ) -> impl Future<Output = Result<Bytes, PeerError>> + use<R> {
        let payload = Bytes::from(request.encode_to_vec());
        let target = self.addresses.of(&self.target);
        let answer = self.peers.as_ref().map(|peers| peers.call(&target, lane, method as u32, payload, timeout));
        async move {
            match answer {
                Some(answer) => answer.await,
                None => Err(PeerError::Unreachable("this store has no other replicas".into())),
            }
        }
    }

    /// Converts an error for openraft: it pauses after `Unreachable`, and repeats at once after the others.
    fn failed(&self, action: RPCTypes, error: &PeerError, timeout: Duration) -> RPCError<TypeConfig> {
        match error {
            PeerError::Timeout => {
                let target = self.target.member.unwrap_or_default();
                RPCError::Timeout(Timeout { action, id: self.node, target, timeout })
            }
            PeerError::Unreachable(_) | PeerError::Identity { .. } | PeerError::Closed | PeerError::QueueFull => {
                RPCError::Unreachable(Unreachable::new(error))
            }
            PeerError::Refused(_) | PeerError::TooLarge { .. } => RPCError::Network(NetworkError::new(error)),
        }
    }

    async fn ask<A: Message + Default>(
        &self,
        lane: Lane,
        method: Method,
        action: RPCTypes,
        request: &impl Message,
        option: &RPCOption,
    ) -> RpcResult<A> {
        let timeout = option.soft_ttl();
        let answer = self.call(lane, method, request, timeout).await;
        let answer = answer.map_err(|error| self.failed(action, &error, timeout))?;
        A::decode(answer).map_err(|error| RPCError::Network(NetworkError::new(&error)))
    }

    /// Notes what a voter's answer says besides the vote.
    fn note_voter_answer(&self, answer: &message::VoteAnswer) {
        if let Some(at) = answer.excluded.as_ref().map(wire::log_id) {
            self.excluded.send_if_modified(|known| *known < Some(at) && known.replace(at) != Some(at));
        }
    }

    /// Sends entries. They have been sent when this returns; the future waits for the answer.
    fn append(
        &self,
        request: &AppendEntriesRequest<TypeConfig>,
        timeout: Duration,
    ) -> impl Future<Output = RpcResult<AppendEntriesResponse<TypeConfig>>> + use<> {
        let member = self.target.member.unwrap_or_default();
        if self.peers.as_ref().is_some_and(|peers| peers.is_reachable(member)) {
            self.rest.wake(); // a replica that hears from the leader expects heartbeats from then on
        }
        let (vote, last) = (request.vote, request.entries.last().map(|entry| entry.log_id.index()));
        let message = wire::put_append(&self.group, request, self.acknowledged.to(member, &vote));
        let answer = self.call(self.lane, Method::Append, &message, timeout);
        let link = self.clone();
        async move {
            let answer = answer.await.map_err(|error| link.failed(RPCTypes::AppendEntries, &error, timeout))?;
            let unreadable = || RPCError::Network(NetworkError::new(&AnyError::error("the answer cannot be read")));
            let answer = message::AppendAnswer::decode(answer).map_err(|_| unreadable())?;
            let answer = wire::append_answer(&answer).ok_or_else(unreadable)?;
            if let (AppendEntriesResponse::Success, Some(last)) = (&answer, last) {
                link.acknowledged.note(member, &vote, last);
            }
            Ok(answer)
        }
    }
}

/// Returns roughly how many bytes the entries of a request take.
fn bytes(request: &AppendEntriesRequest<TypeConfig>) -> usize {
    let bytes = |entry: &Entry| match &entry.payload {
        EntryPayload::Normal(batch) => batch.bytes(),
        EntryPayload::Blank | EntryPayload::Membership(_) => 0,
    };
    request.entries.iter().map(bytes).sum()
}

/// Returns the result of a streamed append, and whether the stream continues after it.
fn streamed(
    response: AppendEntriesResponse<TypeConfig>,
    previous: Option<LogIdentity>,
    last: Option<LogIdentity>,
) -> (StreamAppendResult<TypeConfig>, bool) {
    match response {
        AppendEntriesResponse::Success => (Ok(last), true),
        AppendEntriesResponse::PartialSuccess(matched) => (Ok(matched), matched == last),
        AppendEntriesResponse::Conflict => match previous {
            Some(previous) => (Err(StreamAppendError::Conflict(previous)), false),
            None => (Ok(None), false), // nothing precedes the beginning of the log, so nothing can conflict
        },
        AppendEntriesResponse::HigherVote(vote) => (Err(StreamAppendError::HigherVote(vote)), false),
    }
}

impl RaftNetworkV2<TypeConfig> for Link {
    type SnapshotData = SnapshotFile;

    async fn append_entries(
        &mut self,
        request: AppendEntriesRequest<TypeConfig>,
        option: RPCOption,
    ) -> RpcResult<AppendEntriesResponse<TypeConfig>> {
        self.append(&request, option.soft_ttl()).await
    }

    fn stream_append<'s, S>(
        &'s mut self,
        input: S,
        _: RPCOption,
    ) -> BoxFuture<'s, RpcResult<BoxStream<'s, RpcResult<StreamAppendResult<TypeConfig>>>>>
    where
        S: Stream<Item = AppendEntriesRequest<TypeConfig>> + OptionalSend + Unpin + 'static,
    {
        let link = self.clone();
        let window = Arc::new(Semaphore::new(APPEND_BYTES_IN_FLIGHT_MAX));
        let admitted = input.then(move |request| {
            let window = window.clone();
            async move {
                let bytes = bytes(&request).min(APPEND_BYTES_IN_FLIGHT_MAX);
                (window.acquire_many_owned(bytes as u32).await, request)
            }
        });
        let sent = admitted.map(move |(permit, request)| {
            let previous = request.prev_log_id;
            let last = request.entries.last().map(|entry| entry.log_id).or(previous);
            // Openraft's own time limit is shorter than an occasional slow write of a disk; it would pause and send the
            // entries again.
            let answer = link.append(&request, APPEND_TIMEOUT);
            async move {
                let answer = answer.await;
                drop(permit);
                answer.map(|response| streamed(response, previous, last))
            }
        });
        // Several appends are in flight at once. Answers are returned in order, and none after the first that is no
        // success.
        let answers = Box::pin(sent.buffered(APPENDS_IN_FLIGHT_MAX));
        let until_failed = stream::unfold(Some(answers), |answers| async move {
            let mut answers = answers?;
            match answers.next().await? {
                Ok((result, true)) => Some((Ok(result), Some(answers))),
                Ok((result, false)) => Some((Ok(result), None)),
                Err(error) => Some((Err(error), None)),
            }
        });
        Box::pin(async move { Ok(Box::pin(until_failed) as BoxStream<'s, _>) })
    }

    async fn vote(
        &mut self,
        request: VoteRequest<TypeConfig>,
        option: RPCOption,
    ) -> RpcResult<VoteResponse<TypeConfig>> {
        let call = wire::put_vote_call(&self.group, &request);
        let answer: message::VoteAnswer = self.ask(Lane::Control, Method::Vote, RPCTypes::Vote, &call, &option).await?;
        self.note_voter_answer(&answer);
        Ok(wire::vote_answer(&answer))
    }

    async fn pre_vote(
        &mut self,
        request: VoteRequest<TypeConfig>,
        option: RPCOption,
    ) -> RpcResult<VoteResponse<TypeConfig>> {
        let call = wire::put_vote_call(&self.group, &request);
        let answer: message::VoteAnswer =
            self.ask(Lane::Control, Method::PreVote, RPCTypes::Vote, &call, &option).await?;
        self.note_voter_answer(&answer);
        Ok(wire::vote_answer(&answer))
    }

    async fn full_snapshot(
        &mut self,
        vote: VoteOf<TypeConfig>,
        snapshot: SnapshotOf<TypeConfig, SnapshotFile>,
        cancel: impl Future<Output = ReplicationClosed> + OptionalSend + 'static,
        _: RPCOption,
    ) -> Result<SnapshotResponse<TypeConfig>, StreamingError<TypeConfig>> {
        tokio::pin!(cancel);
        tokio::select! {
            biased;
            closed = &mut cancel => Err(StreamingError::Closed(closed)),
            sent = snapshot_sending::send(self, &vote, &snapshot.snapshot) => sent,
        }
    }

    async fn transfer_leader(
        &mut self,
        request: TransferLeaderRequest<TypeConfig>,
        option: RPCOption,
    ) -> RpcResult<TransferLeaderResponse<TypeConfig>> {
        let call = wire::put_transfer(&self.group, &request);
        let answer: message::TransferAnswer =
            self.ask(Lane::Control, Method::Transfer, RPCTypes::TransferLeader, &call, &option).await?;
        Ok(wire::transfer_answer(&request, &answer))
    }

    fn backoff(&self) -> Option<Backoff> {
        // Calls to an unreachable peer fail at once. The connection itself is retried with pauses of its own.
        Some(Backoff::new(std::iter::repeat(PEER_RETRY_INTERVAL)))
    }
}

#[cfg(test)]
#[path = "network_tests.rs"]
mod tests;
