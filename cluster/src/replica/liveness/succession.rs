//! Replaces a leader whose process is gone, without waiting for the election timeout.
//!
//! A broken connection proves little. But if nothing listens at the leader's address any more, the leader's process has
//! ended. If the process runs after all and only this replica cannot reach it, the cost is one election.
//!
//! A leader that is frozen or cut off sends nothing on any connection. A healthy one sends a beat at least every
//! quarter of a second. A replica that misses these beats asks the others whether they would vote. They refuse as long
//! as they hear the leader, so a leader that a majority hears is not deposed, however late this replica is. Replicas
//! ask one after the other, and before the election timeout of the groups, which remains the last resort.
//!
//! A leader that others hear, but that does not hear them, would keep them from electing another. It notices this
//! itself, and asks the others to lead instead, one after the other.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use crate::limits::{MISSING_INTERVAL, PEER_SILENCE_MAX, SUCCESSION_CHECK_TIMEOUT, SUCCESSION_INTERVAL};
use crate::peer::peer_view::PeerView;
use crate::peer::{Network, Peers};
use crate::raft::{Member, Node};
use crate::replica::leading::placement::Placement;
use crate::tasks;

/// Stands for election in the groups of every leader that disconnects, for as long as the store is open.
pub(crate) async fn succeed(placement: Arc<Placement>, peers: Arc<dyn Peers>, network: Arc<dyn Network>) {
    let mut liveness = peers.liveness();
    let mut known = liveness.borrow_and_update().clone();
    while liveness.changed().await.is_ok() {
        let now = liveness.borrow_and_update().clone();
        for (member, reachable) in now.iter() {
            if !reachable && known.get(member) == Some(&true) {
                tasks::detached_here("succession", succeed_one(placement.clone(), *member, network.clone()));
            }
        }
        known = now;
    }
}

/// Asks for votes in the groups of every leader that is silent, whenever it is this replica's turn.
pub(crate) async fn replace_silent_leaders(placement: &Placement, nodes: &[Node], view: &PeerView) {
    for node in nodes.iter().filter(|node| !node.exclusion().is_excluded()) {
        let Some(leader) = node.roster().leader().filter(|leader| *leader != placement.own()) else { continue };
        let Some(silence) = view.silence(leader) else { continue };
        let successors = successors(leader, node).len() as u32 + 1;
        if is_turn(&silence, rank(placement, leader, node), successors) {
            let (group, silent_ms) = (node.name(), silence.end.as_millis() as u64);
            tracing::debug!(%group, leader = %format_args!("{leader:x}"), silent_ms, "the leader of a group is silent");
            node.resting().stand_if_others_would_vote().await;
        }
    }
}

/// Asks others to take over every group that this replica leads without hearing a majority of its voters.
pub(crate) async fn hand_over_without_majority(placement: &Placement, nodes: &[Node], view: &PeerView) {
    let own = placement.own();
    for node in nodes.iter().filter(|node| node.roster().leader() == Some(own)) {
        if node.roster().is_quorum(|voter| voter == own || view.receives_from(voter)) {
            continue;
        }
        let mut successors = successors(own, node);
        // A leader that asks another replica to take over commits nothing until a new leader is elected. It therefore
        // asks only replicas that have nearly all entries.
        successors.retain(|successor| node.leadership().has_caught_up(*successor));
        successors.sort_by_key(|successor| !node.connections().may_lead(*successor));
        for (rank, successor) in (0..).zip(&successors) {
            let silence = view.silence(*successor).unwrap_or_default();
            if is_turn(&silence, rank, successors.len() as u32) {
                let (group, to) = (node.name(), format_args!("{successor:x}"));
                tracing::debug!(%group, %to, "no majority is heard: handing over the leadership of a group");
                node.leadership().hand_over_without_answer(*successor).await;
            }
        }
    }
}

/// Returns whether the turn of a replica came during a silence that grew from `silence.start` to `silence.end`. `rank`
/// is its place among `of` replicas, which take turns.
fn is_turn(silence: &Range<Duration>, rank: u32, of: u32) -> bool {
    let first = PEER_SILENCE_MAX + MISSING_INTERVAL * rank;
    let turns = |silence: Duration| {
        silence.checked_sub(first).map_or(0, |since| 1 + since.as_millis() / (MISSING_INTERVAL * of).as_millis())
    };
    turns(silence.end) > turns(silence.start)
}

async fn succeed_one(placement: Arc<Placement>, member: u64, network: Arc<dyn Network>) {
    let groups = placement.groups().into_iter().map(|(_, node)| node);
    let led: Vec<Node> = groups.filter(|node| node.roster().leader() == Some(member)).collect();
    let Some(address) = led.first().and_then(|node| node.roster().address(member)) else { return };
    if !is_gone(&*network, &address).await {
        return;
    }
    tracing::info!(member = %format_args!("{member:x}"), groups = led.len(), "the leader of groups is gone: standing for election");
    // By rank, so that the possible successors do not stand against each other.
    let mut waited = 0;
    for node in led {
        let rank = rank(&placement, member, &node);
        tokio::time::sleep(SUCCESSION_INTERVAL * rank.saturating_sub(waited)).await;
        waited = waited.max(rank);
        if node.roster().leader() == Some(member) {
            tasks::detached_here("succession", async move { node.leadership().succeed().await });
        }
    }
}

/// Returns the place of this replica among the possible successors of a member. Replicas that should not lead come
/// last.
fn rank(placement: &Placement, member: u64, node: &Node) -> u32 {
    let own = (placement.is_drained(), placement.own());
    let earlier = |other: &&u64| (!node.connections().may_lead(**other), **other) < own;
    successors(member, node).iter().filter(earlier).count() as u32
}

/// Returns the other replicas that may succeed a member.
fn successors(member: u64, node: &Node) -> Vec<u64> {
    let able = |other: &Member| other.votes && other.id != member && node.connections().is_reachable(other.id);
    node.roster().members().into_iter().filter(able).map(|other| other.id).collect()
}

/// Returns whether nothing listens at an address.
async fn is_gone(network: &dyn Network, address: &str) -> bool {
    tokio::time::timeout(SUCCESSION_CHECK_TIMEOUT, network.is_deserted(address)).await.unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;
    use crate::peer::TlsNetwork;

    #[test]
    fn replicas_take_turns_to_miss_a_silent_leader() {
        let looks = || (0..).map(|look| MISSING_INTERVAL * look..MISSING_INTERVAL * (look + 1)).skip(1);
        let turns = |rank| looks().take(12).filter(move |silence| is_turn(silence, rank, 2)).map(|silence| silence.end);
        let at = |numbers: [u32; 3]| numbers.map(|number| PEER_SILENCE_MAX + MISSING_INTERVAL * number).to_vec();
        assert_eq!(turns(0).take(3).collect::<Vec<_>>(), at([0, 2, 4]));
        assert_eq!(turns(1).take(3).collect::<Vec<_>>(), at([1, 3, 5]));
        assert!(is_turn(&(Duration::ZERO..2 * PEER_SILENCE_MAX), 0, 2), "also when it looked late");
    }

    #[tokio::test]
    async fn a_process_is_gone_if_its_connections_are_refused_or_closed_at_once() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        assert!(!is_gone(&TlsNetwork, &address).await, "it may only be slow");
        let proxy = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                drop(stream);
            }
        });
        assert!(is_gone(&TlsNetwork, &address).await, "nobody is behind it");
        proxy.abort();
        let _ = proxy.await;
        assert!(is_gone(&TlsNetwork, &address).await, "nobody listens");
    }
}
