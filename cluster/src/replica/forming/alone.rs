//! A replica that is the only member of its cluster, and gets a membership.
//!
//! A server that started without others has data of its own. Once it is started with peer addresses, it is the first
//! member of a cluster: the replicas that it finds there may join it, but do not found a new cluster with it.

use std::collections::BTreeMap;

use futures_util::future::try_join_all;
use tokio::sync::watch;

use super::formation::gather;
use super::gathering::FoundReplicas;
use crate::limits::OUTLOOK_INTERVAL;
use crate::peer::{Hello, Peers};
use crate::raft::Node;
use crate::replica::groups::{Group, Groups};
use crate::roster::Replica;
use crate::{Initial, OpenError};

/// Records the name and the peer address of this replica in every group of which it is the only member, since a replica
/// that joins learns them from there. A log that started without others has neither.
pub(crate) async fn describe(groups: &Groups, own: &Replica) -> Result<(), OpenError> {
    let all = groups.all();
    try_join_all(all.iter().map(|(name, group)| describe_in(name, group, own))).await.map(drop)
}

async fn describe_in(name: &str, group: &Group, own: &Replica) -> Result<(), OpenError> {
    let node = group.leader_client.node();
    // A log that was just opened does not know its members until a leader has applied it.
    if !node.formation().is_formed().await || !node.roster().is_alone() || node.roster().is_described(own) {
        return Ok(());
    }
    node.formation().stand_if_alone().await;
    group.leads.clone().wait_for(|leads| *leads).await.map_err(|_| OpenError::Ended)?;
    let failed = |source| OpenError::Group { group: name.to_owned(), source: Box::new(source) };
    node.administration().describe(own.clone()).await.map_err(failed)
}

/// Logs which replicas at the initial addresses are not in this cluster, as long as this replica is alone in it: none
/// of them joins by itself.
pub(crate) async fn watch_for_others(node: &Node, peers: &dyn Peers, initial: &Initial, hello: &watch::Sender<Hello>) {
    let mut logged = BTreeMap::new();
    while node.roster().is_alone() {
        let own = hello.borrow().clone();
        let seen = others(&own, &gather(peers, &own, initial).await);
        for (name, other) in &seen {
            if logged.get(name) != Some(other) {
                log_other(name, other);
            }
        }
        logged = seen;
        tokio::time::sleep(OUTLOOK_INTERVAL).await;
    }
}

/// The state of another replica, as a replica that is alone sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum OtherReplica {
    /// It has no cluster, and can be admitted at this address.
    Waiting(String),
    /// It belongs to this other cluster.
    Foreign(String),
}

/// Returns the replicas that are not in the cluster of this replica, by name.
fn others(own: &Hello, found: &FoundReplicas) -> BTreeMap<String, OtherReplica> {
    let others = found.members.iter().filter(|hello| hello.cluster != own.cluster);
    let other = |hello: &Hello| match hello.cluster.is_empty() {
        true => OtherReplica::Waiting(hello.address.clone()),
        false => OtherReplica::Foreign(hello.cluster.clone()),
    };
    others.map(|hello| (hello.name.clone(), other(hello))).collect()
}

fn log_other(name: &str, other: &OtherReplica) {
    match other {
        OtherReplica::Waiting(address) => {
            tracing::info!(name, address, "another server waits until it is admitted with `flotilla cluster join`")
        }
        OtherReplica::Foreign(cluster) => tracing::warn!(
            name,
            cluster,
            "another server belongs to another cluster and has data of its own; neither is changed. Start it with \
             an empty data directory to have it join this one"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_replicas_wait_or_have_a_cluster() {
        let hello = |name: &str, member, cluster: &str| {
            let address = format!("{name}:1");
            Hello { cluster: cluster.into(), member, name: name.into(), address, ..Hello::default() }
        };
        let members = vec![hello("a", 1, "x"), hello("b", 2, ""), hello("c", 3, "y"), hello("d", 4, "x")];
        let seen = others(&hello("a", 1, "x"), &FoundReplicas { members, ..FoundReplicas::default() });
        let expected = [("b", OtherReplica::Waiting("b:1".into())), ("c", OtherReplica::Foreign("y".into()))];
        assert_eq!(seen, expected.map(|(name, other)| (name.to_owned(), other)).into());
    }
}
