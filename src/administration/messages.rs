//! What is asked of a server about its cluster, and what it tells: JSON at paths that are no part of Kubernetes.

use serde::{Deserialize, Serialize};

use crate::config::Shards;

/// GET: the cluster as the server sees it, a [`ClusterView`]. What can be asked for with POST is below it.
pub const CLUSTER_PATH: &str = "/flotilla/v1/cluster";
/// POST of [`Join`]: makes the replica that listens at an address a member.
pub const JOIN: &str = "join";
/// POST of [`Named`]: takes a member out.
pub const REMOVE: &str = "remove";
/// POST of [`Transfer`]: lets a member lead, or says which is to lead whenever it can, or both.
pub const TRANSFER: &str = "transfer";
/// POST of [`Drain`]: lets others lead what a member leads from now on, or ends that.
pub const DRAIN: &str = "drain";

/// POST of [`Divide`]: changes how many shards resources have.
pub const SHARDS: &str = "shards";

/// A cluster, as one of its members sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterView {
    /// Id of the cluster; empty for a server that has never been one of several.
    pub cluster: String,
    /// Name of the member that tells.
    pub told_by: String,
    /// Every member, by name.
    pub members: Vec<MemberView>,
    /// Every group, by name, as it is on the member that tells.
    pub groups: Vec<GroupView>,
    /// Every resource of which it was said how many shards it has, by name.
    #[serde(default)]
    pub shards: Vec<ShardsView>,
}

/// How a resource is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShardsView {
    /// The resource, as in `pods` or `apps/deployments`.
    pub resource: String,
    /// The group of each of its shards.
    pub groups: Vec<String>,
    /// The group of each shard that it is to have, while that is being changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Vec<String>>,
}

/// A member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MemberView {
    /// Its name.
    pub name: String,
    /// Its id in hexadecimal digits: another one each time that it begins with an empty disk.
    pub id: String,
    /// Where other members reach it, `HOST:PORT`; empty for a server without others.
    pub address: String,
    /// Whether it has a vote in every group. Without one it is sent everything and counts for nothing.
    pub votes: bool,
    /// Whether the member that tells has a connection with it, or is it.
    pub reachable: bool,
    /// Whether it is to lead nothing.
    #[serde(default)]
    pub drained: bool,
    /// The groups that it leads.
    pub leads: Vec<String>,
}

/// A group: what replicates some of the objects. Indexes count the entries of its log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GroupView {
    /// Its name.
    pub name: String,
    /// Name of the member that leads it; empty while there is none.
    pub leader: String,
    /// Name of the member that is to lead it whenever it can, where that was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preferred: Option<String>,
    /// Its term: how many times it was led anew, at most.
    pub term: u64,
    /// Index of the last entry.
    pub last_index: u64,
    /// Index of the last entry that a majority has.
    pub commit_index: u64,
    /// Index of the last entry whose changes can be read.
    pub applied_index: u64,
    /// Index of the last entry that a snapshot includes.
    pub snapshot_index: u64,
}

/// How many shards resources are to have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Divide {
    /// As in `pods=8,apps/deployments=2`. Others keep theirs.
    pub shards: Shards,
}

/// Who is to be a member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Join {
    /// Its name. It takes the place of a member of the same name.
    pub name: String,
    /// Where it listens for other members, `HOST:PORT`.
    pub address: String,
}

/// Which member is meant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Named {
    /// Its name.
    pub name: String,
}

/// Who is to lead nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Drain {
    /// Its name.
    pub name: String,
    /// Whether it is to lead again instead.
    #[serde(default)]
    pub undo: bool,
}

/// Who is to lead what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Transfer {
    /// Name of the member that is to lead now; none when that is only to be nobody in particular.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The group; all of them without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// What is to be so from then on; as it was without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preference: Option<Preference>,
}

/// Which member is to lead a group whenever it can.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Preference {
    /// The one that is named.
    Named,
    /// Nobody in particular.
    Nobody,
}
