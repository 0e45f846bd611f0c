//! Forms a group.

use std::collections::BTreeMap;

use super::error::{StartError, refused};
use super::roster::Roster;
use super::state_machine::GroupRaft;
use crate::roster::Replica;

/// Forms a group.
pub(crate) struct Formation {
    raft: GroupRaft,
    roster: Roster,
}

impl Formation {
    pub(super) fn new(raft: GroupRaft, roster: Roster) -> Formation {
        Formation { raft, roster }
    }

    /// Returns whether the group has members, as far as this replica knows.
    pub(crate) async fn is_formed(&self) -> bool {
        self.raft.is_initialized().await.unwrap_or(false)
    }

    /// Forms the group with these members, which include this replica, and stands for election. Does not change a group
    /// that is formed already, but stands for election if this replica is alone in it.
    pub(crate) async fn form(&self, members: BTreeMap<u64, Replica>) -> Result<(), StartError> {
        if self.is_formed().await {
            self.stand_if_alone().await;
            return Ok(());
        }
        self.raft.initialize(members).await.map_err(refused)
    }

    /// Makes this replica stand for election at once if it is the only member: no other can lead, and no lease must be
    /// waited for.
    pub(crate) async fn stand_if_alone(&self) {
        if self.roster.is_alone() && self.roster.leader().is_none() {
            let _ = self.raft.trigger().elect(false).await; // fails only when the group is shut down
        }
    }
}
