//! The calls of openraft to the other replicas of a group.

use std::sync::Arc;

use flotilla_proto::replication::{self as message, Method};
use futures_util::{Stream, StreamExt, stream};
use openraft::alias::{SnapshotOf, VoteOf};
use openraft::base::{BoxFuture, BoxStream};
use openraft::errors::{ReplicationClosed, StreamingError};
use openraft::network::{Backoff, RPCOption, RPCTypes, RaftNetworkFactory, RaftNetworkV2};
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse, StreamAppendError, StreamAppendResult,
    TransferLeaderRequest, TransferLeaderResponse, VoteRequest, VoteResponse,
};
use openraft::{EntryPayload, OptionalSend};
use tokio::sync::Semaphore;

use super::link::{Link, Network, RpcResult};
use super::snapshot_sending;
use super::state_machine::SnapshotFile;
use super::types::{Entry, LogIdentity, TypeConfig};
use super::wire;
use crate::limits::{APPEND_BYTES_IN_FLIGHT_MAX, APPEND_TIMEOUT, APPENDS_IN_FLIGHT_MAX, PEER_RETRY_INTERVAL};
use crate::peer::Lane;
use crate::roster::Replica;

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
        let call = wire::put_vote_call(self.group(), &request);
        let answer: message::VoteAnswer = self.ask(Lane::Control, Method::Vote, RPCTypes::Vote, &call, &option).await?;
        self.note_voter_answer(&answer);
        Ok(wire::vote_answer(&answer))
    }

    async fn pre_vote(
        &mut self,
        request: VoteRequest<TypeConfig>,
        option: RPCOption,
    ) -> RpcResult<VoteResponse<TypeConfig>> {
        let call = wire::put_vote_call(self.group(), &request);
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
        let call = wire::put_transfer(self.group(), &request);
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
