//! The links of a group to its other replicas, and the calls over them.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use flotilla_proto::replication::{self as message, Method};
use openraft::AnyError;
use openraft::errors::{NetworkError, RPCError, Timeout, Unreachable};
use openraft::network::{RPCOption, RPCTypes};
use openraft::raft::{AppendEntriesRequest, AppendEntriesResponse};
use prost::Message;

use super::acknowledged::Acknowledged;
use super::addresses::Addresses;
use super::exclusion::Excluded;
use super::rest::Rest;
use super::types::TypeConfig;
use super::wire;
use crate::peer::{Callee, Lane, PeerError, Peers};
use crate::roster::Replica;

/// Creates the links of one group to its other replicas.
pub(super) struct Network {
    /// `None` on a store that has no others.
    peers: Option<Arc<dyn Peers>>,
    group: Arc<str>,
    node: u64,
    /// Set when this replica is told that it is not a member.
    excluded: Excluded,
    rest: Arc<Rest>,
    acknowledged: Acknowledged,
    addresses: Addresses,
}

impl Network {
    pub(super) fn new(
        node: u64,
        group: Arc<str>,
        peers: Option<Arc<dyn Peers>>,
        excluded: Excluded,
        rest: Arc<Rest>,
        addresses: Addresses,
    ) -> Network {
        Network { peers, group, node, excluded, rest, acknowledged: Acknowledged::default(), addresses }
    }

    pub(super) fn link(&self, target: u64, node: &Replica, lane: Lane) -> Link {
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

pub(super) type RpcResult<T> = Result<T, RPCError<TypeConfig>>;

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

    pub(super) async fn ask<A: Message + Default>(
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

    /// Notes the facts in a voter's answer besides the vote.
    pub(super) fn note_voter_answer(&self, answer: &message::VoteAnswer) {
        if let Some(at) = answer.excluded.as_ref().map(wire::log_id) {
            self.excluded.send_if_modified(|known| *known < Some(at) && known.replace(at) != Some(at));
        }
    }

    /// Sends entries. They have been sent when this returns; the future waits for the answer.
    pub(super) fn append(
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
