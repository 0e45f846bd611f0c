//! Making a cluster of replicas that have none yet.
//!
//! All initial members must be there: each says under which random id it has begun, and the one whose name comes first
//! founds the cluster with exactly these ids. A replica that comes back with an empty disk has another id, so that it
//! is no member of what was founded, and cannot vote in it; it waits until it is admitted in its own place.
//!
//! Members that find each other by a host name must besides all see the same ones, since names are resolved by each for
//! itself and more may answer than are to be members.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::join_all;
use tokio::sync::watch;

use super::identity::IdentityFile;
use crate::limits::{FORMATION_INTERVAL, HELLO_TIMEOUT, MEMBERS_FOUND_MAX};
use crate::peer::{Hello, Peers};
use crate::raft::{Node, Replica};
use crate::{Initial, chance};

/// What the replicas that are to form a cluster have come to.
#[derive(Debug, PartialEq, Eq)]
enum Gathering {
    /// Some are not there yet, or do not see the others.
    Incomplete,
    /// There is a cluster already, of which this replica is not.
    Formed,
    /// More are there than are to form it, or two have this name.
    Ambiguous(String),
    /// Somebody else is to found it.
    Waiting,
    /// This replica is to found it, with these members.
    Founding(BTreeMap<u64, Replica>),
}

/// What follows from who answers at the initial addresses, this replica among them.
fn gathering(own: &Hello, initial: &Initial, found: &[Hello]) -> Gathering {
    let founded = found.iter().any(|hello| !hello.cluster.is_empty() && hello.cluster != own.cluster);
    if founded {
        return Gathering::Formed;
    }
    let members = match members(initial, found) {
        Ok(members) => members,
        Err(gathering) => return gathering,
    };
    let first = members.values().map(|replica| &replica.name).min();
    match first == Some(&own.name) {
        true => Gathering::Founding(members),
        false => Gathering::Waiting,
    }
}

/// The members that are to form the cluster, once all of them are there.
fn members(initial: &Initial, found: &[Hello]) -> Result<BTreeMap<u64, Replica>, Gathering> {
    match initial {
        Initial::Members(addresses) => {
            let member = |(name, address): (&String, &String)| {
                let hello = found.iter().find(|hello| hello.name == *name)?;
                Some((hello.member, Replica { name: name.clone(), address: address.clone() }))
            };
            addresses.iter().map(member).collect::<Option<_>>().ok_or(Gathering::Incomplete)
        }
        Initial::Found { size, .. } => {
            let names: BTreeSet<&String> = found.iter().map(|hello| &hello.name).collect();
            if names.len() < found.len() || found.len() > *size {
                return Err(Gathering::Ambiguous(names.into_iter().cloned().collect::<Vec<_>>().join(", ")));
            }
            let addresses: BTreeSet<&String> = found.iter().map(|hello| &hello.address).collect();
            let agreed = found.iter().all(|hello| hello.sees == sight(found) && !hello.address.is_empty());
            if found.len() < *size || addresses.len() < *size || !agreed {
                return Err(Gathering::Incomplete);
            }
            let replica = |hello: &Hello| Replica { name: hello.name.clone(), address: hello.address.clone() };
            Ok(found.iter().map(|hello| (hello.member, replica(hello))).collect())
        }
    }
}

/// What tells whether two replicas see the same ones.
fn sight(found: &[Hello]) -> u32 {
    let seen: BTreeSet<_> = found.iter().map(|hello| (hello.member, &hello.name, &hello.address)).collect();
    crc32c::crc32c(format!("{seen:?}").as_bytes())
}

/// Takes part in forming a cluster, until the default group has members as far as this replica knows.
pub(crate) async fn form(
    node: &Node,
    peers: &dyn Peers,
    initial: &Initial,
    identity: &IdentityFile,
    hello: &watch::Sender<Hello>,
) {
    let mut told = None;
    loop {
        if node.is_formed().await {
            return;
        }
        let own = hello.borrow().clone();
        let found = gather(peers, &own, initial).await;
        hello.send_if_modified(|hello| std::mem::replace(&mut hello.sees, sight(&found)) != sight(&found));
        let gathering = gathering(&own, initial, &found);
        let state = std::mem::discriminant(&gathering);
        if told != Some(state) {
            told = Some(state);
            tell(&gathering, initial, &found);
        }
        if let Gathering::Founding(members) = gathering
            && let Err(error) = found_with(node, members, identity, hello).await
        {
            tracing::error!(%error, "the cluster cannot be founded");
        }
        tokio::time::sleep(FORMATION_INTERVAL).await;
    }
}

/// Asks at the initial addresses who is there. This replica counts, however it is found.
async fn gather(peers: &dyn Peers, own: &Hello, initial: &Initial) -> Vec<Hello> {
    let addresses: Vec<String> = match initial {
        Initial::Members(members) => {
            members.iter().filter(|(name, _)| **name != own.name).map(|(_, address)| address.clone()).collect()
        }
        Initial::Found { address, .. } => match peers.resolve(address).await {
            Ok(addresses) => addresses.into_iter().take(MEMBERS_FOUND_MAX).collect(),
            Err(error) => {
                tracing::debug!(%error, address, "the name of the members cannot be resolved");
                Vec::new()
            }
        },
    };
    let asked = addresses.iter().map(|address| peers.hello_of(address, HELLO_TIMEOUT));
    let answers = join_all(asked).await.into_iter().flatten();
    let others: BTreeMap<u64, Hello> = answers.map(|hello| (hello.member, hello)).collect();
    others.into_values().filter(|hello| hello.member != own.member).chain([own.clone()]).collect()
}

fn tell(gathering: &Gathering, initial: &Initial, found: &[Hello]) {
    let found: Vec<&String> = found.iter().map(|hello| &hello.name).collect();
    match gathering {
        Gathering::Incomplete => {
            let missing: Vec<&String> = match initial {
                Initial::Members(members) => members.keys().filter(|name| !found.contains(name)).collect(),
                Initial::Found { .. } => Vec::new(),
            };
            tracing::info!(?found, ?missing, "waiting for the other members, to form a cluster");
        }
        Gathering::Formed => tracing::warn!(
            "the others have formed a cluster of which this replica is not a member: admit it with `flotilla cluster join`"
        ),
        Gathering::Ambiguous(names) => {
            tracing::error!(names, "more members are there than are to form the cluster, or several of one name")
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
    Ok(node.form(members).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello(name: &str, member: u64, cluster: &str) -> Hello {
        let address = format!("{name}.peers:1");
        Hello { cluster: cluster.into(), member, name: name.into(), version: 1, address, ..Hello::default() }
    }

    fn found(hellos: &[(&str, u64, &str)]) -> Vec<Hello> {
        hellos.iter().map(|(name, member, cluster)| hello(name, *member, cluster)).collect()
    }

    fn initial(members: &[(&str, &str)]) -> Initial {
        Initial::Members(members.iter().map(|(name, address)| ((*name).into(), (*address).into())).collect())
    }

    #[test]
    fn the_first_founds_when_all_are_there() {
        let initial = initial(&[("a", "h:1"), ("b", "h:2"), ("c", "h:3")]);
        let (a, b) = (hello("a", 11, ""), hello("b", 22, ""));
        let all = found(&[("a", 11, ""), ("b", 22, ""), ("c", 33, "")]);
        assert_eq!(gathering(&a, &initial, &found(&[("a", 11, ""), ("b", 22, "")])), Gathering::Incomplete);
        assert_eq!(gathering(&b, &initial, &all), Gathering::Waiting);
        let Gathering::Founding(members) = gathering(&a, &initial, &all) else { panic!() };
        assert_eq!(members.keys().copied().collect::<Vec<_>>(), [11, 22, 33]);
        assert_eq!(members[&22].address, "h:2");
    }

    #[test]
    fn a_replica_without_its_disk_does_not_found_another() {
        let initial = initial(&[("a", "h:1"), ("b", "h:2")]);
        let blank = hello("a", 99, "");
        assert_eq!(gathering(&blank, &initial, &found(&[("a", 99, ""), ("b", 22, "x")])), Gathering::Formed);
        // Whoever has begun to found it goes on.
        let begun = hello("a", 11, "x");
        let others = found(&[("a", 11, "x"), ("b", 22, "x")]);
        assert!(matches!(gathering(&begun, &initial, &others), Gathering::Founding(_)));
    }

    #[test]
    fn those_that_are_found_by_a_name_must_see_each_other_and_be_as_many_as_expected() {
        let initial = Initial::Found { address: "peers:1".into(), size: 2 };
        let a = hello("a", 11, "");
        let mut both = found(&[("a", 11, ""), ("b", 22, "")]);
        assert_eq!(gathering(&a, &initial, &both[..1]), Gathering::Incomplete);
        both[0].sees = sight(&both);
        assert_eq!(gathering(&a, &initial, &both), Gathering::Incomplete, "b has not seen a");
        both[1].sees = sight(&both);
        let Gathering::Founding(members) = gathering(&a, &initial, &both) else { panic!() };
        assert_eq!(members[&22].address, "b.peers:1");
        assert_eq!(gathering(&hello("b", 22, ""), &initial, &both), Gathering::Waiting);
        let all_see = |mut all: Vec<Hello>| {
            let seen = sight(&all);
            all.iter_mut().for_each(|hello| hello.sees = seen);
            all
        };
        let three = all_see(found(&[("a", 11, ""), ("b", 22, ""), ("c", 33, "")]));
        assert!(matches!(gathering(&a, &initial, &three), Gathering::Ambiguous(_)));
        let twins = all_see(found(&[("a", 11, ""), ("a", 22, "")]));
        assert!(matches!(gathering(&a, &initial, &twins), Gathering::Ambiguous(_)));
        let mut mute = found(&[("a", 11, ""), ("b", 22, "")]);
        mute[1].address.clear();
        assert_eq!(gathering(&a, &initial, &all_see(mute)), Gathering::Incomplete, "nobody could reach b");
    }
}
