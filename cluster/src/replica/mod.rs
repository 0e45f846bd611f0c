//! This replica among the others of its cluster.
//!
//! A folder, and a file here, imports only modules that are named before it:
//!
//! - [`asking`]: requests to the leader of a group, wherever it is. [`groups`] lists the groups that this replica takes
//!   part in, each with its client of the leader.
//! - [`writing`]: making a write exactly once.
//! - [`forming`]: the identity of this replica, and how it becomes part of a cluster.
//! - [`leading`]: the groups that this replica leads. [`liveness`]: the replicas that are reachable, and the
//!   consequences for leaders.
//! - [`starter`] starts groups, [`sharding`] follows the shard map and changes the shards of tables, [`standing`]
//!   reports whether this replica is a member.
//! - [`exchange`] answers the calls of other replicas; [`running`] has the parts that the handles of a store use.

pub(crate) mod asking;
pub(crate) mod exchange;
#[cfg(test)]
mod forgetting_tests;
pub(crate) mod forming;
pub(crate) mod groups;
pub(crate) mod leading;
pub(crate) mod liveness;
#[cfg(test)]
mod membership_tests;
#[cfg(test)]
mod reaching_tests;
#[cfg(test)]
mod replica_tests;
pub(crate) mod running;
#[cfg(test)]
mod salvage_tests;
pub(crate) mod sharding;
#[cfg(test)]
mod snapshot_tests;
pub(crate) mod standing;
pub(crate) mod starter;
#[cfg(test)]
mod test_cluster;
pub(crate) mod writing;
