//! The messages of the administration API: JSON at paths that are not part of Kubernetes.

use serde::{Deserialize, Serialize};

use crate::config::Shards;

/// GET returns the cluster as the server sees it, a [`ClusterView`]. The paths of changes are below it.
pub const CLUSTER_PATH: &str = "/flotilla/v1/cluster";
/// POST of [`Join`]: makes the replica that listens at an address a member.
pub const JOIN: &str = "join";
/// POST of [`Named`]: removes a member.
pub const REMOVE: &str = "remove";
/// POST of [`Transfer`]: makes a member the leader, sets the preferred leader, or both.
pub const TRANSFER: &str = "transfer";
/// POST of [`Drain`]: moves leaders away from a member and keeps them away, or ends that.
pub const DRAIN: &str = "drain";

/// POST of [`Divide`]: changes the number of shards of resources.
pub const SHARDS: &str = "shards";

/// A cluster, as one of its members sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterView {
    /// Id of the cluster; empty for a server that has never been one of several.
    pub cluster: String,
    /// Name of the member that answers.
    pub told_by: String,
    /// Every member, by name.
    pub members: Vec<MemberView>,
    /// Every group, by name, as the answering member sees it.
    pub groups: Vec<GroupView>,
    /// Every resource whose number of shards was configured, by name.
    #[serde(default)]
    pub shards: Vec<ShardsView>,
}

/// The shards of a resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShardsView {
    /// The resource, as in `pods` or `apps/deployments`.
    pub resource: String,
    /// The group of each of its shards.
    pub groups: Vec<String>,
    /// The group of each shard of the next division, while the division is being changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Vec<String>>,
}

/// A member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MemberView {
    /// Its name.
    pub name: String,
    /// The id of its replica in hexadecimal digits; a start with an empty disk makes a new one.
    pub id: String,
    /// The address at which other members reach it, `HOST:PORT`; empty for a server without others.
    pub address: String,
    /// Whether it has a vote in every group. A member without one receives all data and does not count for majorities.
    pub votes: bool,
    /// Whether the answering member has a connection with it; true for the answering member itself.
    pub reachable: bool,
    /// Whether it is drained: it leads only groups that no other member can lead.
    #[serde(default)]
    pub drained: bool,
    /// The groups that it leads.
    pub leads: Vec<String>,
}

/// A group, which replicates some of the shards. Indexes count the entries of its log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GroupView {
    /// Its name.
    pub name: String,
    /// Name of the member that leads it; empty without a leader.
    pub leader: String,
    /// Name of the member that is preferred as its leader. `None` if no member is preferred.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preferred: Option<String>,
    /// Its Raft term.
    pub term: u64,
    /// Index of the last entry.
    pub last_index: u64,
    /// Index of the last committed entry.
    pub commit_index: u64,
    /// Index of the last applied entry.
    pub applied_index: u64,
    /// Index of the last entry that a snapshot includes.
    pub snapshot_index: u64,
}

/// The wanted numbers of shards.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Divide {
    /// As in `pods=8,apps/deployments=2`. Other resources keep theirs.
    pub shards: Shards,
}

/// The server to admit as a member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Join {
    /// Its name. It takes the place of a member of the same name.
    pub name: String,
    /// The address on which it listens for other members, `HOST:PORT`.
    pub address: String,
}

/// A member by its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Named {
    /// Its name.
    pub name: String,
}

/// The member to drain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Drain {
    /// Its name.
    pub name: String,
    /// Whether to end the drain instead.
    #[serde(default)]
    pub undo: bool,
}

/// The wanted leader of a group, or of all groups.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Transfer {
    /// Name of the member that becomes the leader now. `None` changes only the preference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The group. `None` means all groups.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The new preference. `None` leaves it unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preference: Option<Preference>,
}

/// The preferred leader of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Preference {
    /// The named member.
    Named,
    /// No member.
    Nobody,
}
