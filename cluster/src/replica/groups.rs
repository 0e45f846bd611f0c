//! The groups that this replica takes part in.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::RwLock;
use tokio::sync::{Notify, watch};

use super::asking::leader_client::LeaderClient;
use super::asking::reads::Reads;
use crate::raft::Node;

/// The parts of a group that readers and writers need.
#[derive(Clone)]
pub(crate) struct Group {
    pub(crate) leader_client: LeaderClient,
    pub(crate) reads: Reads,
    /// Whether this replica leads the group: now, and after every change.
    pub(crate) leads: watch::Receiver<bool>,
}

impl Group {
    /// Returns whether a replica has a vote in the group, as far as this one knows.
    pub(crate) fn has_voter(&self, id: u64) -> bool {
        self.leader_client.node().roster().voters().contains(&id)
    }
}

/// The groups of this replica, by name. Groups are added while the store is open, and none is removed. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Groups(Arc<Known>);

#[derive(Default)]
struct Known {
    groups: RwLock<BTreeMap<Arc<str>, Arc<Group>>>,
    /// Notified when a group is added.
    came: Notify,
}

impl Groups {
    pub(crate) fn insert(&self, name: Arc<str>, group: Group) -> Arc<Group> {
        let group = Arc::new(group);
        self.0.groups.write().insert(name, group.clone());
        self.0.came.notify_waiters();
        group
    }

    pub(crate) fn get(&self, name: &str) -> Option<Arc<Group>> {
        self.0.groups.read().get(name).cloned()
    }

    /// Returns all present groups, by name.
    pub(crate) fn all(&self) -> BTreeMap<Arc<str>, Arc<Group>> {
        self.0.groups.read().clone()
    }

    /// Returns this replica's node in each group.
    pub(crate) fn nodes(&self) -> Vec<Node> {
        self.0.groups.read().values().map(|group| group.leader_client.node().clone()).collect()
    }

    /// Waits until there is a group of this name.
    pub(crate) async fn wait_for(&self, name: &str) -> Arc<Group> {
        loop {
            let came = self.0.came.notified();
            tokio::pin!(came);
            came.as_mut().enable(); // before looking, so that no group is missed
            if let Some(group) = self.get(name) {
                return group;
            }
            came.await;
        }
    }
}
