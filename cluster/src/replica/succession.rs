//! Succeeding a leader whose process is gone, without waiting until it is missed.
//!
//! A connection that breaks says little; that nobody listens at the address any more says that the process has ended,
//! and with it whatever it led. Who cannot be reached otherwise is missed by the election timeout. Should it live after
//! all, and only this replica be unable to reach it, then another leads after an election, which is all that it costs.

use std::sync::Arc;

use super::placement::Placement;
use crate::limits::{SUCCESSION_CHECK_TIMEOUT, SUCCESSION_INTERVAL};
use crate::peer::{Network, Peers};
use crate::raft::{Member, Node};

/// Stands for election in the groups of every leader that goes, for as long as the store is open.
pub(crate) async fn succeed(placement: Arc<Placement>, peers: Arc<dyn Peers>, network: Arc<dyn Network>) {
    let mut liveness = peers.liveness();
    let mut known = liveness.borrow_and_update().clone();
    while liveness.changed().await.is_ok() {
        let now = liveness.borrow_and_update().clone();
        for (member, reachable) in now.iter() {
            if !reachable && known.get(member) == Some(&true) {
                actix::spawn(succeed_one(placement.clone(), *member, network.clone()));
            }
        }
        known = now;
    }
}

async fn succeed_one(placement: Arc<Placement>, member: u64, network: Arc<dyn Network>) {
    let groups = placement.groups().into_iter().map(|(_, node)| node);
    let led: Vec<Node> = groups.filter(|node| node.leader() == Some(member)).collect();
    let Some(address) = led.first().and_then(|node| node.address(member)) else { return };
    if !is_gone(&*network, &address).await {
        return;
    }
    tracing::info!(member = %format_args!("{member:x}"), groups = led.len(), "the leader of groups is gone: standing for election");
    // One after the other, so that those who can succeed do not stand against each other.
    let mut waited = 0;
    for node in led {
        let rank = rank(&placement, member, &node);
        tokio::time::sleep(SUCCESSION_INTERVAL * rank.saturating_sub(waited)).await;
        waited = waited.max(rank);
        if node.leader() == Some(member) {
            node.succeed().await;
        }
    }
}

/// Which of those that may succeed a member this replica is: those that are to lead nothing come last.
fn rank(placement: &Placement, member: u64, node: &Node) -> u32 {
    let own = (placement.is_drained(), placement.own());
    let earlier = |other: &Member| (!node.may_lead(other.id), other.id) < own;
    let able = |other: &&Member| other.votes && other.id != member && node.is_reachable(other.id);
    node.members().iter().filter(able).filter(|other| earlier(other)).count() as u32
}

/// Whether nobody listens at an address.
async fn is_gone(network: &dyn Network, address: &str) -> bool {
    tokio::time::timeout(SUCCESSION_CHECK_TIMEOUT, network.is_deserted(address)).await.unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;
    use crate::peer::TlsNetwork;

    #[tokio::test]
    async fn a_process_is_gone_when_connections_to_it_are_refused_or_closed_at_once() {
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
