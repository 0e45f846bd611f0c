//! Making a cluster of replicas that have none yet.
//!
//! All initial members must be there: each says under which random id it has begun, and the one whose name comes first
//! founds the cluster with exactly these ids. A replica that comes back with an empty disk has another id, so that it
//! is no member of what was founded, and cannot vote in it; it waits until it is admitted in its own place.

use std::collections::BTreeMap;

use futures_util::future::join_all;
use tokio::sync::watch;

use super::identity::IdentityFile;
use crate::chance;
use crate::limits::{FORMATION_INTERVAL, HELLO_TIMEOUT};
use crate::peer::{Hello, Peers};
use crate::raft::{Node, Replica};

/// What the replicas that are to form a cluster have come to.
#[derive(Debug, PartialEq, Eq)]
enum Gathering {
    /// Some are not there yet.
    Incomplete,
    /// There is a cluster already, of which this replica is not.
    Formed,
    /// One was started with other shards.
    Different(String),
    /// Somebody else is to found it.
    Waiting,
    /// This replica is to found it, with these members.
    Founding(BTreeMap<u64, Replica>),
}

/// What follows from who answers at the initial addresses, by name.
fn gathering(own: &Hello, initial: &BTreeMap<String, String>, found: &BTreeMap<String, Hello>) -> Gathering {
    let founded = found.values().any(|hello| !hello.cluster.is_empty() && hello.cluster != own.cluster);
    if founded {
        return Gathering::Formed;
    }
    if let Some(other) = found.values().find(|hello| hello.shards != own.shards) {
        return Gathering::Different(other.name.clone());
    }
    let all = initial.keys().all(|name| found.get(name).is_some_and(|hello| hello.name == *name));
    if !all {
        return Gathering::Incomplete;
    }
    if initial.keys().next() != Some(&own.name) {
        return Gathering::Waiting;
    }
    let member = |(name, address): (&String, &String)| {
        let replica = Replica { name: name.clone(), address: address.clone() };
        found.get(name).map(|hello| (hello.member, replica))
    };
    Gathering::Founding(initial.iter().filter_map(member).collect())
}

/// Takes part in forming a cluster, until every group has members as far as this replica knows.
pub(crate) async fn form(
    nodes: &[Node],
    peers: &dyn Peers,
    initial: &BTreeMap<String, String>,
    identity: &IdentityFile,
    hello: &watch::Sender<Hello>,
) {
    let mut told = None;
    loop {
        let mut formed = true;
        for node in nodes {
            formed &= node.is_formed().await;
        }
        if formed {
            return;
        }
        let own = hello.borrow().clone();
        let found = gather(peers, &own, initial).await;
        let gathering = gathering(&own, initial, &found);
        let state = std::mem::discriminant(&gathering);
        if told != Some(state) {
            told = Some(state);
            tell(&gathering, initial, &found);
        }
        if let Gathering::Founding(members) = gathering
            && let Err(error) = found_with(nodes, members, identity, hello).await
        {
            tracing::error!(%error, "the cluster cannot be founded");
        }
        tokio::time::sleep(FORMATION_INTERVAL).await;
    }
}

async fn gather(peers: &dyn Peers, own: &Hello, initial: &BTreeMap<String, String>) -> BTreeMap<String, Hello> {
    let asked = initial
        .iter()
        .filter(|(name, _)| **name != own.name)
        .map(|(name, address)| async move { Some((name.clone(), peers.hello_of(address, HELLO_TIMEOUT).await.ok()?)) });
    let found = join_all(asked).await.into_iter().flatten();
    found.chain([(own.name.clone(), own.clone())]).collect()
}

fn tell(gathering: &Gathering, initial: &BTreeMap<String, String>, found: &BTreeMap<String, Hello>) {
    match gathering {
        Gathering::Incomplete => {
            let missing: Vec<&String> = initial.keys().filter(|name| !found.contains_key(*name)).collect();
            tracing::info!(?missing, "waiting for the other members, to form a cluster");
        }
        Gathering::Formed => tracing::warn!(
            "the others have formed a cluster of which this replica is not a member: admit it with `flotilla cluster join`"
        ),
        Gathering::Different(name) => {
            tracing::error!(name, "a member was started with other --shards or --groups than this one")
        }
        Gathering::Waiting => {
            tracing::info!("all members are there; waiting for the first of them to found the cluster")
        }
        Gathering::Founding(members) => tracing::info!(members = members.len(), "founding the cluster"),
    }
}

/// An id for a new cluster.
pub(crate) fn new_cluster() -> String {
    format!("{:016x}", chance::number())
}

/// Founds the cluster. Safe to repeat: whoever has begun it goes on under the same id of the cluster.
async fn found_with(
    nodes: &[Node],
    members: BTreeMap<u64, Replica>,
    identity: &IdentityFile,
    hello: &watch::Sender<Hello>,
) -> Result<(), Box<dyn std::error::Error>> {
    let own = identity.get();
    let cluster = match own.cluster.is_empty() {
        true => new_cluster(),
        false => own.cluster,
    };
    identity.belong(&cluster)?;
    hello.send_modify(|hello| hello.cluster = cluster);
    for node in nodes {
        node.form(members.clone()).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello(name: &str, member: u64, cluster: &str) -> Hello {
        Hello { cluster: cluster.into(), member, name: name.into(), version: 1, ..Hello::default() }
    }

    fn found(hellos: &[(&str, u64, &str)]) -> BTreeMap<String, Hello> {
        hellos.iter().map(|(name, member, cluster)| ((*name).into(), hello(name, *member, cluster))).collect()
    }

    #[test]
    fn the_first_founds_when_all_are_there() {
        let initial: BTreeMap<String, String> =
            [("a", "h:1"), ("b", "h:2"), ("c", "h:3")].map(|(name, address)| (name.into(), address.into())).into();
        let (a, b) = (hello("a", 11, ""), hello("b", 22, ""));
        let all = found(&[("a", 11, ""), ("b", 22, ""), ("c", 33, "")]);
        assert_eq!(gathering(&a, &initial, &found(&[("a", 11, ""), ("b", 22, "")])), Gathering::Incomplete);
        assert_eq!(gathering(&b, &initial, &all), Gathering::Waiting);
        let Gathering::Founding(members) = gathering(&a, &initial, &all) else { panic!() };
        assert_eq!(members.keys().copied().collect::<Vec<_>>(), [11, 22, 33]);
        assert_eq!(members[&22].address, "h:2");
    }

    #[test]
    fn nobody_founds_with_whoever_has_other_shards() {
        let initial: BTreeMap<String, String> =
            [("a", "h:1"), ("b", "h:2")].map(|(name, address)| (name.into(), address.into())).into();
        let mut both = found(&[("a", 11, ""), ("b", 22, "")]);
        both.get_mut("b").unwrap().shards = 7;
        assert_eq!(gathering(&hello("a", 11, ""), &initial, &both), Gathering::Different("b".into()));
    }

    #[test]
    fn a_replica_without_its_disk_does_not_found_another() {
        let initial: BTreeMap<String, String> =
            [("a", "h:1"), ("b", "h:2")].map(|(name, address)| (name.into(), address.into())).into();
        let blank = hello("a", 99, "");
        assert_eq!(gathering(&blank, &initial, &found(&[("a", 99, ""), ("b", 22, "x")])), Gathering::Formed);
        // Whoever has begun to found it goes on.
        let begun = hello("a", 11, "x");
        let others = found(&[("a", 11, "x"), ("b", 22, "x")]);
        assert!(matches!(gathering(&begun, &initial, &others), Gathering::Founding(_)));
    }
}
