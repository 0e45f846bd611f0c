//! The graph of ownership: objects with owners, by their own UID and by the UIDs of their owners.
//!
//! Objects without owners are not in the graph. An owner is represented by the UID that its dependents name, whether it
//! exists or not; more is known only of owners that are being deleted and wait for their dependents.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use flotilla_cluster::Key;
use flotilla_proto::value::Value;

use crate::registry::{FOREGROUND, ORPHAN};

/// A UID. It is shared, since several maps hold it.
pub type Uid = Arc<str>;

/// The identity of an object: its table, key and UID.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Item {
    /// Number of its table.
    pub table: usize,
    /// Its key there.
    pub key: Key,
    /// Its UID.
    pub uid: Uid,
}

/// An owner as a dependent names it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Owner {
    uid: Uid,
    /// Whether the owner's foreground deletion waits for the dependent.
    blocked: bool,
}

#[derive(Debug)]
struct Node {
    item: Item,
    owners: Vec<Owner>,
    deleting: bool,
}

/// The graph: objects with owners, and owners that are being deleted.
#[derive(Debug, Default)]
pub struct Graph {
    nodes: HashMap<Uid, Node>,
    dependents: HashMap<Uid, BTreeSet<Uid>>,
    /// Objects whose deletion waits for the garbage collector.
    ending: HashMap<Uid, Item>,
}

impl Graph {
    /// Returns whether the graph has an entry for the object itself, not only for its dependents.
    pub fn knows(&self, uid: &str) -> bool {
        self.nodes.contains_key(uid) || self.ending.contains_key(uid)
    }

    /// Records the present state of an object, given its metadata. Returns the items that must be checked because of
    /// this state.
    pub fn note(&mut self, item: Item, metadata: &Value) -> Vec<Item> {
        let mut concerned = Vec::new();
        let owners = owners(metadata);
        let deleting = !metadata.at(&["deletionTimestamp"]).is_null();
        let old = self.nodes.remove(&item.uid);
        let before = old.as_ref().map_or(&[][..], |old| &old.owners);
        if before != owners {
            for owner in before {
                self.unlink(&owner.uid, &item.uid);
                concerned.extend(self.ending.get(&owner.uid).cloned());
            }
            for owner in &owners {
                self.dependents.entry(owner.uid.clone()).or_default().insert(item.uid.clone());
                concerned.extend(self.ending.get(&owner.uid).cloned());
            }
            if !owners.is_empty() {
                concerned.push(item.clone());
            }
        }
        let ends = deleting && waits(metadata).is_some();
        if !ends {
            self.ending.remove(&item.uid);
        } else if self.ending.insert(item.uid.clone(), item.clone()).is_none() {
            concerned.push(item.clone());
            if waits(metadata) == Some(FOREGROUND) {
                concerned.extend(self.dependents(&item.uid));
            }
        }
        if !owners.is_empty() {
            self.nodes.insert(item.uid.clone(), Node { item, owners, deleting });
        }
        concerned
    }

    /// Removes an object that is gone. Returns the items that must be checked because it is gone.
    pub fn forget(&mut self, uid: &str) -> Vec<Item> {
        let mut concerned: Vec<Item> = self.dependents(uid).collect();
        self.ending.remove(uid);
        if let Some(node) = self.nodes.remove(uid) {
            for owner in &node.owners {
                self.unlink(&owner.uid, uid);
                concerned.extend(self.ending.get(&owner.uid).cloned());
            }
        }
        concerned
    }

    /// Removes all objects of a table that is no longer followed.
    pub fn forget_table(&mut self, table: usize) {
        self.ending.retain(|_, item| item.table != table);
        let lost: Vec<Uid> =
            self.nodes.values().filter(|node| node.item.table == table).map(|node| node.item.uid.clone()).collect();
        for uid in lost {
            for owner in self.nodes.remove(&uid).map(|node| node.owners).unwrap_or_default() {
                self.unlink(&owner.uid, &uid);
            }
        }
    }

    /// Returns all objects with owners, and all that wait for the garbage collector.
    pub fn all(&self) -> impl Iterator<Item = Item> {
        self.nodes.values().map(|node| &node.item).chain(self.ending.values()).cloned()
    }

    /// Returns the objects that name an owner.
    pub fn dependents(&self, owner: &str) -> impl Iterator<Item = Item> {
        let uids = self.dependents.get(owner).into_iter().flatten();
        uids.filter_map(|uid| self.nodes.get(uid)).map(|node| node.item.clone())
    }

    /// Returns the dependents for which an owner's foreground deletion waits, and whether each is being deleted itself.
    pub fn blocking(&self, owner: &str) -> Vec<(Item, bool)> {
        let uids = self.dependents.get(owner).into_iter().flatten();
        let blocking = |node: &&Node| node.owners.iter().any(|of| &*of.uid == owner && of.blocked);
        uids.filter_map(|uid| self.nodes.get(uid))
            .filter(blocking)
            .map(|node| (node.item.clone(), node.deleting))
            .collect()
    }

    fn unlink(&mut self, owner: &str, dependent: &str) {
        if let Some(dependents) = self.dependents.get_mut(owner) {
            dependents.remove(dependent);
            if dependents.is_empty() {
                self.dependents.remove(owner);
            }
        }
    }
}

fn owners(metadata: &Value) -> Vec<Owner> {
    let references = metadata.list_at(&["ownerReferences"]).iter();
    let owner = |of: &Value| Owner { uid: of.str_at(&["uid"]).into(), blocked: of.is_true_at(&["blockOwnerDeletion"]) };
    references.map(owner).collect()
}

/// Returns the finalizer by which a deleted object waits for the garbage collector; orphaning comes first. `None` if it
/// does not wait.
pub fn waits(metadata: &Value) -> Option<&'static str> {
    let has = |name| metadata.list_at(&["finalizers"]).iter().any(|own| own.as_str() == Some(name));
    [ORPHAN, FOREGROUND].into_iter().find(|name| has(name))
}

#[cfg(test)]
#[path = "graph_tests.rs"]
mod tests;
