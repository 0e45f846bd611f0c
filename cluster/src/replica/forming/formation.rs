//! Forms a cluster of replicas that have none yet.
//!
//! All initial members must be up and see each other. Each announces the random id with which it started. The one whose
//! name sorts first founds the cluster with exactly these ids. A replica that returns with an empty disk has another
//! id, so it is not a member of the cluster that was founded and cannot vote in it; it waits to be admitted in place of
//! its former self. A replica that finds another one that already belongs to a cluster also waits to be admitted.
//!
//! When members find each other by a host name, each resolves it for itself, and more replicas may answer than should
//! be members. Members that are given all addresses may be given wrong ones. A cluster founded on such errors could not
//! be repaired by restarting its members, so nothing is founded until all see the same members at the expected
//! addresses.

use std::collections::BTreeMap;

use futures_util::future::join_all;
use tokio::sync::watch;

use super::gathering::{FoundReplicas, Gathering, Misplaced, gathering};
use super::identity::IdentityFile;
use crate::limits::{FORMATION_INTERVAL, HELLO_TIMEOUT, MEMBERS_FOUND_MAX};
use crate::peer::{Hello, Peers};
use crate::raft::Node;
use crate::roster::Replica;
use crate::{Initial, chance};

/// Takes part in forming a cluster, until this replica knows that the default group has members.
pub(crate) async fn form(
    node: &Node,
    peers: &dyn Peers,
    initial: &Initial,
    identity: &IdentityFile,
    hello: &watch::Sender<Hello>,
) {
    let mut logged = None;
    loop {
        if node.formation().is_formed().await {
            return;
        }
        let own = hello.borrow().clone();
        let found = gather(peers, &own, initial).await;
        let checksum = found.checksum();
        hello.send_if_modified(|hello| std::mem::replace(&mut hello.found_checksum, checksum) != checksum);
        let gathering = gathering(&own, initial, &found);
        if logged.as_ref() != Some(&gathering) {
            log_gathering(&gathering, &found);
        }
        if let Gathering::Founding(members) = &gathering
            && let Err(error) = found_with(node, members.clone(), identity, hello).await
        {
            tracing::error!(%error, "the cluster cannot be founded");
        }
        logged = Some(gathering);
        tokio::time::sleep(FORMATION_INTERVAL).await;
    }
}

/// Returns the replicas that answer at the initial addresses. They always include this replica.
pub(crate) async fn gather(peers: &dyn Peers, own: &Hello, initial: &Initial) -> FoundReplicas {
    let mut found = match initial {
        Initial::Members(members) => gather_named(peers, own, members).await,
        Initial::Found { address, .. } => gather_any(peers, own, address).await,
    };
    found.members.push(own.clone());
    found
}

/// Asks the addresses of the other members.
async fn gather_named(peers: &dyn Peers, own: &Hello, members: &BTreeMap<String, String>) -> FoundReplicas {
    let asked = members.iter().filter(|(name, _)| **name != own.name).map(|(name, address)| async move {
        let hello = peers.hello_of(address, HELLO_TIMEOUT).await.ok()?;
        Some((name, address, hello))
    });
    let mut found = FoundReplicas::default();
    for (name, address, hello) in join_all(asked).await.into_iter().flatten() {
        if hello.name == *name {
            found.members.push(hello);
        } else {
            let (address, expected) = (address.clone(), name.clone());
            found.misplaced.push(Misplaced { address, expected, found: hello.name });
        }
    }
    found
}

/// Asks all addresses of a host name.
async fn gather_any(peers: &dyn Peers, own: &Hello, address: &str) -> FoundReplicas {
    let addresses: Vec<String> = match peers.resolve(address).await {
        Ok(addresses) => addresses.into_iter().take(MEMBERS_FOUND_MAX).collect(),
        Err(error) => {
            tracing::debug!(%error, address, "the name of the members cannot be resolved");
            Vec::new()
        }
    };
    let asked = addresses.iter().map(|address| peers.hello_of(address, HELLO_TIMEOUT));
    let answers = join_all(asked).await.into_iter().flatten();
    let others: BTreeMap<u64, Hello> = answers.map(|hello| (hello.member, hello)).collect();
    let members = others.into_values().filter(|hello| hello.member != own.member).collect();
    FoundReplicas { members, misplaced: Vec::new() }
}

fn log_gathering(gathering: &Gathering, found: &FoundReplicas) {
    match gathering {
        Gathering::Incomplete { missing, blind } => {
            let found: Vec<&String> = found.members.iter().map(|hello| &hello.name).collect();
            tracing::info!(
                ?found,
                ?missing,
                others_missing_for = ?blind,
                "waiting until all members see each other, to form a cluster"
            );
        }
        Gathering::Crossed(misplaced) => {
            for Misplaced { address, expected, found } in misplaced {
                tracing::warn!(
                    address,
                    expected,
                    found,
                    "another member than expected answers: no cluster is formed until the addresses are right"
                );
            }
        }
        Gathering::Formed => tracing::warn!(
            "the others have formed a cluster of which this replica is not a member: admit it with `flotilla cluster join`"
        ),
        Gathering::Ambiguous(names) => {
            tracing::error!(names, "there are more members than should form the cluster, or several with the same name")
        }
        Gathering::Waiting => {
            tracing::info!("all members are up; waiting for the first of them to found the cluster")
        }
        Gathering::Founding(members) => tracing::info!(members = members.len(), "founding the cluster"),
    }
}

/// Draws an id for a new cluster.
pub(crate) fn new_cluster() -> String {
    format!("{:016x}", chance::number())
}

/// Founds the cluster. Safe to repeat: the id of the cluster is stored first and then kept.
async fn found_with(
    node: &Node,
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
    Ok(node.formation().form(members).await?)
}
