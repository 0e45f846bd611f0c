//! Decides whether a cluster is founded, from the replicas that answer at the initial addresses.

use std::collections::{BTreeMap, BTreeSet};

use crate::Initial;
use crate::peer::Hello;
use crate::roster::Replica;

/// The replicas that answer at the initial addresses.
#[derive(Clone, Debug, Default)]
pub(crate) struct FoundReplicas {
    /// Those at the expected addresses, and this replica.
    pub(crate) members: Vec<Hello>,
    /// Those at the address of another member, if addresses are known by name.
    pub(crate) misplaced: Vec<Misplaced>,
}

/// A replica that answers at the address of another member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Misplaced {
    /// The address.
    pub(crate) address: String,
    /// The name of the member that is expected there.
    pub(crate) expected: String,
    /// The name of the replica that answers.
    pub(crate) found: String,
}

impl FoundReplicas {
    /// Returns a checksum of the replicas found, by which two replicas compare whether they see the same ones.
    pub(crate) fn checksum(&self) -> u32 {
        let seen: BTreeSet<_> = self.members.iter().map(|hello| (hello.member, &hello.name, &hello.address)).collect();
        crc32c::crc32c(format!("{seen:?}").as_bytes())
    }

    fn names(&self) -> BTreeSet<&String> {
        self.members.iter().map(|hello| &hello.name).collect()
    }

    /// Returns the names of the replicas that do not see the same ones as this replica.
    fn blind(&self, own: &Hello) -> Vec<String> {
        let checksum = self.checksum();
        let blind = self.members.iter().filter(|hello| hello.member != own.member && hello.found_checksum != checksum);
        blind.map(|hello| hello.name.clone()).collect()
    }
}

/// The state of the replicas that will form a cluster.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Gathering {
    /// Some are not up yet, or do not see the others.
    Incomplete {
        /// The names of the missing ones, if names are known.
        missing: Vec<String>,
        /// The names of those that do not see the same replicas as this one.
        blind: Vec<String>,
    },
    /// Some answer at the address of another member.
    Crossed(Vec<Misplaced>),
    /// There is a cluster already, and this replica is not a member.
    Formed,
    /// There are more replicas than should form the cluster, or two of the same name. Contains the names.
    Ambiguous(String),
    /// This replica waits for another one to found the cluster.
    Waiting,
    /// This replica founds the cluster, with these members.
    Founding(BTreeMap<u64, Replica>),
}

/// Decides from the replicas that answer at the initial addresses. They include this one.
pub(crate) fn gathering(own: &Hello, initial: &Initial, found: &FoundReplicas) -> Gathering {
    let founded = found.members.iter().any(|hello| !hello.cluster.is_empty() && hello.cluster != own.cluster);
    if founded {
        return Gathering::Formed;
    }
    if !found.misplaced.is_empty() {
        return Gathering::Crossed(found.misplaced.clone());
    }
    let members = match members(own, initial, found) {
        Ok(members) => members,
        Err(gathering) => return gathering,
    };
    let first = members.values().map(|replica| &replica.name).min();
    match first == Some(&own.name) {
        true => Gathering::Founding(members),
        false => Gathering::Waiting,
    }
}

/// Returns the members that will form the cluster. Fails unless all of them are up and see each other.
fn members(own: &Hello, initial: &Initial, found: &FoundReplicas) -> Result<BTreeMap<u64, Replica>, Gathering> {
    let (names, blind) = (found.names(), found.blind(own));
    match initial {
        Initial::Members(addresses) => {
            let missing: Vec<String> = addresses.keys().filter(|name| !names.contains(name)).cloned().collect();
            if !missing.is_empty() || !blind.is_empty() {
                return Err(Gathering::Incomplete { missing, blind });
            }
            let replica = |hello: &Hello| Replica { name: hello.name.clone(), address: addresses[&hello.name].clone() };
            Ok(found.members.iter().map(|hello| (hello.member, replica(hello))).collect())
        }
        Initial::Found { size, .. } => {
            if names.len() < found.members.len() || found.members.len() > *size {
                return Err(Gathering::Ambiguous(names.into_iter().cloned().collect::<Vec<_>>().join(", ")));
            }
            let addresses: BTreeSet<&String> = found.members.iter().map(|hello| &hello.address).collect();
            let reachable = found.members.iter().all(|hello| !hello.address.is_empty());
            if found.members.len() < *size || addresses.len() < *size || !blind.is_empty() || !reachable {
                return Err(Gathering::Incomplete { missing: Vec::new(), blind });
            }
            let replica = |hello: &Hello| Replica { name: hello.name.clone(), address: hello.address.clone() };
            Ok(found.members.iter().map(|hello| (hello.member, replica(hello))).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello(name: &str, member: u64, cluster: &str) -> Hello {
        let address = format!("{name}.peers:1");
        Hello { cluster: cluster.into(), member, name: name.into(), version: 1, address, ..Hello::default() }
    }

    /// Returns the replicas that are up, none of which sees another.
    fn found(hellos: &[(&str, u64, &str)]) -> FoundReplicas {
        let members = hellos.iter().map(|(name, member, cluster)| hello(name, *member, cluster)).collect();
        FoundReplicas { members, misplaced: Vec::new() }
    }

    /// Makes all replicas see each other.
    fn all_see(mut found: FoundReplicas) -> FoundReplicas {
        let checksum = found.checksum();
        found.members.iter_mut().for_each(|hello| hello.found_checksum = checksum);
        found
    }

    fn initial(members: &[(&str, &str)]) -> Initial {
        Initial::Members(members.iter().map(|(name, address)| ((*name).into(), (*address).into())).collect())
    }

    fn incomplete(missing: &[&str], blind: &[&str]) -> Gathering {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Gathering::Incomplete { missing: names(missing), blind: names(blind) }
    }

    #[test]
    fn the_first_member_founds_once_all_members_see_each_other() {
        let initial = initial(&[("a", "h:1"), ("b", "h:2"), ("c", "h:3")]);
        let (a, b) = (hello("a", 11, ""), hello("b", 22, ""));
        let two = all_see(found(&[("a", 11, ""), ("b", 22, "")]));
        assert_eq!(gathering(&a, &initial, &two), incomplete(&["c"], &[]));
        let mut all = all_see(found(&[("a", 11, ""), ("b", 22, ""), ("c", 33, "")]));
        assert_eq!(gathering(&b, &initial, &all), Gathering::Waiting);
        let Gathering::Founding(members) = gathering(&a, &initial, &all) else { panic!() };
        assert_eq!(members.keys().copied().collect::<Vec<_>>(), [11, 22, 33]);
        assert_eq!(members[&22].address, "h:2");
        // One has another list, or finds no replica at this one's address.
        all.members[1].found_checksum = two.checksum();
        assert_eq!(gathering(&a, &initial, &all), incomplete(&[], &["b"]));
    }

    #[test]
    fn nothing_is_founded_while_a_replica_answers_at_the_address_of_another() {
        let initial = initial(&[("a", "h:1"), ("b", "h:2"), ("c", "h:3")]);
        let at = |address: &str, expected: &str, found: &str| Misplaced {
            address: address.into(),
            expected: expected.into(),
            found: found.into(),
        };
        let misplaced = vec![at("h:2", "b", "c"), at("h:3", "c", "b")];
        let alone = FoundReplicas { misplaced: misplaced.clone(), ..found(&[("a", 11, "")]) };
        assert_eq!(gathering(&hello("a", 11, ""), &initial, &alone), Gathering::Crossed(misplaced));
        // All members are up, and one is up twice.
        let all = all_see(found(&[("a", 11, ""), ("b", 22, ""), ("c", 33, "")]));
        let twice = FoundReplicas { misplaced: vec![at("h:3", "c", "b")], ..all };
        assert!(matches!(gathering(&hello("a", 11, ""), &initial, &twice), Gathering::Crossed(_)));
        // A replica that waits to be admitted must see that there is a cluster, whatever else it finds.
        let formed = FoundReplicas { misplaced: vec![at("h:3", "c", "d")], ..found(&[("a", 11, ""), ("b", 22, "x")]) };
        assert_eq!(gathering(&hello("a", 11, ""), &initial, &formed), Gathering::Formed);
    }

    #[test]
    fn a_replica_that_lost_its_disk_does_not_found_another_cluster() {
        let initial = initial(&[("a", "h:1"), ("b", "h:2")]);
        let blank = hello("a", 99, "");
        let formed = all_see(found(&[("a", 99, ""), ("b", 22, "x")]));
        assert_eq!(gathering(&blank, &initial, &formed), Gathering::Formed);
        // The one that has started to found the cluster goes on.
        let begun = hello("a", 11, "x");
        let others = all_see(found(&[("a", 11, "x"), ("b", 22, "x")]));
        assert!(matches!(gathering(&begun, &initial, &others), Gathering::Founding(_)));
    }

    #[test]
    fn replicas_found_by_a_host_name_must_see_each_other_and_be_as_many_as_expected() {
        let initial = Initial::Found { address: "peers:1".into(), size: 2 };
        let a = hello("a", 11, "");
        let both = found(&[("a", 11, ""), ("b", 22, "")]);
        assert_eq!(gathering(&a, &initial, &found(&[("a", 11, "")])), incomplete(&[], &[]));
        assert_eq!(gathering(&a, &initial, &both), incomplete(&[], &["b"]), "b has not seen a");
        let both = all_see(both);
        let Gathering::Founding(members) = gathering(&a, &initial, &both) else { panic!() };
        assert_eq!(members[&22].address, "b.peers:1");
        assert_eq!(gathering(&hello("b", 22, ""), &initial, &both), Gathering::Waiting);
        let three = all_see(found(&[("a", 11, ""), ("b", 22, ""), ("c", 33, "")]));
        assert!(matches!(gathering(&a, &initial, &three), Gathering::Ambiguous(_)));
        let twins = all_see(found(&[("a", 11, ""), ("a", 22, "")]));
        assert!(matches!(gathering(&a, &initial, &twins), Gathering::Ambiguous(_)));
        let mut mute = found(&[("a", 11, ""), ("b", 22, "")]);
        mute.members[1].address.clear();
        assert_eq!(gathering(&a, &initial, &all_see(mute)), incomplete(&[], &[]), "nobody could reach b");
    }
}
