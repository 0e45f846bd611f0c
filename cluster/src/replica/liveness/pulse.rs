//! The one timer of all groups: it sends heartbeats, checks the other replicas, lets idle groups rest, and finds
//! leaders that have fallen silent or have given up although no other can lead.
//!
//! A replica sends the heartbeats of all groups that it leads at the same time. One write sends all of them that go to
//! the same replica, and one read receives them. An idle group sends none: its leader asks every other replica, in one
//! call for all idle groups, to expect none. From then on the other replicas watch the leader's process itself. All
//! groups that rest under this process wake when nothing arrives from it any more.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use flotilla_proto::replication::{self as message, Method};
use futures_util::future::join_all;
use prost::Message;
use tokio::time::{Instant, sleep_until};

use super::reachability::Reachability;
use super::succession;
use crate::limits::{HEARTBEAT_INTERVAL, PULSE_INTERVAL, REST_INTERVAL, REST_TIMEOUT};
use crate::peer::peer_view::PeerView;
use crate::peer::{Callee, Lane, Peers};
use crate::raft::{Node, RestProposal, know_members};
use crate::replica::leading::placement::Placement;
use crate::shard_map::DEFAULT_GROUP;
use crate::tasks;

/// Runs the timer until all groups are shut down.
pub(crate) async fn keep(placement: Arc<Placement>, peers: Arc<dyn Peers>, view: Arc<PeerView>) {
    let mut at = Instant::now();
    let (mut beat_at, mut rest_at) = (at, at);
    let mut reachability = Reachability::new(placement.clone(), peers.clone());
    loop {
        let nodes: Vec<Node> = placement.groups().into_iter().map(|(_, node)| node).collect();
        if nodes.iter().all(Node::is_stopping) {
            return;
        }
        let now = Instant::now();
        if view.update(&peers.contacts(), now) {
            nodes.iter().for_each(|node| node.resting().peers_changed(&view));
        }
        if let Some(default) = nodes.iter().find(|node| **node.name() == *DEFAULT_GROUP) {
            reachability.update(default, &view, now);
        }
        succession::replace_silent_leaders(&placement, &nodes, &view).await;
        succession::hand_over_without_majority(&placement, &nodes, &view).await;
        for node in &nodes {
            node.leadership().lead_on_alone().await;
        }
        if now >= beat_at {
            beat_at = now + HEARTBEAT_INTERVAL - PULSE_INTERVAL / 2;
            nodes.iter().for_each(|node| node.resting().beat());
            know_members(&nodes);
        }
        if now >= rest_at {
            rest_at = now + REST_INTERVAL;
            let proposals: Vec<(Node, RestProposal)> =
                nodes.iter().filter_map(|node| Some((node.clone(), node.resting().begin_rest(&view, now)?))).collect();
            if !proposals.is_empty() {
                tasks::detached_here("rest", rest(proposals, peers.clone()));
            }
        }
        at = now.max(at + PULSE_INTERVAL);
        sleep_until(at).await;
    }
}

/// Asks the other replicas whether these groups can rest. Lets a group rest if all its replicas that were asked agree.
async fn rest(proposals: Vec<(Node, RestProposal)>, peers: Arc<dyn Peers>) {
    let mut groups_by_member: BTreeMap<(u64, &str), Vec<usize>> = BTreeMap::new();
    for (number, (_, proposal)) in proposals.iter().enumerate() {
        for (member, address) in &proposal.members {
            groups_by_member.entry((*member, address)).or_default().push(number);
        }
    }
    let answers = groups_by_member.into_iter().map(|((member, address), numbers)| {
        let target = Callee { address: address.to_owned(), member: Some(member) };
        let groups = numbers.iter().map(|number| proposals[*number].1.resting.clone()).collect();
        let payload = Bytes::from(message::Rest { groups }.encode_to_vec());
        let answer = peers.call(&target, Lane::Control, Method::Rest as u32, payload, REST_TIMEOUT);
        async move {
            let answer = answer.await.ok().and_then(|answer| message::RestAnswer::decode(answer).ok());
            let rests = answer.unwrap_or_default().rests;
            let agreed = move |(index, number)| (number, rests.get(index).copied().unwrap_or(false));
            numbers.into_iter().enumerate().map(agreed)
        }
    });
    let mut all_rest = vec![true; proposals.len()];
    for (number, rests) in join_all(answers).await.into_iter().flatten() {
        all_rest[number] &= rests;
    }
    for ((node, proposal), all_rest) in proposals.iter().zip(all_rest) {
        node.resting().finish_rest(proposal, all_rest);
    }
}
