//! This replica among the others of its cluster.
//!
//! - [`identity`] stores who it is; [`groups`] lists the groups that it takes part in; [`standing`] reports whether it
//!   is a member.
//! - [`formation`] forms a cluster of replicas that have none yet, as [`gathering`] decides; [`alone`] prepares a
//!   single replica for others.
//! - [`mapping`] follows the shard map; [`dividing`] changes the shards of tables.
//! - [`exchange`] answers the calls of other replicas. [`leader_client`] makes requests to the leader of a group,
//!   wherever it is, also for [`administering`].
//! - [`retried_write`] makes a write exactly once although it may be sent twice; [`latest_attempts`] helps the leader
//!   with that. [`reads`] lets reads that wait for a read point share one question to the leader.
//! - [`placement`] knows what this replica should lead; [`balance`] spreads leaders over members; [`succession`]
//!   replaces leaders that are gone; [`reachability`] and [`room`] move leadership away from a replica that reaches too
//!   few members or whose disk is full.
//! - [`pulse`] is the one timer of all groups. It lets idle groups rest as long as [`crate::peer::peer_view`] shows
//!   that the other replicas are there.

mod administering;
pub(crate) mod alone;
#[cfg(test)]
mod alone_tests;
pub(crate) mod balance;
pub(crate) mod closer;
pub(crate) mod dividing;
#[cfg(test)]
mod dividing_tests;
pub(crate) mod exchange;
#[cfg(test)]
mod forgetting_tests;
pub(crate) mod formation;
mod gathering;
pub(crate) mod groups;
pub(crate) mod identity;
pub(crate) mod latest_attempts;
pub(crate) mod leader_client;
pub(crate) mod mapping;
#[cfg(test)]
mod membership_tests;
pub(crate) mod placement;
#[cfg(test)]
mod preference_tests;
pub(crate) mod pulse;
mod reachability;
#[cfg(test)]
mod reachability_tests;
#[cfg(test)]
mod reaching_tests;
pub(crate) mod reads;
#[cfg(test)]
mod replica_tests;
#[cfg(test)]
mod rest_tests;
pub(crate) mod retried_write;
pub(crate) mod room;
#[cfg(test)]
mod room_tests;
pub(crate) mod running;
#[cfg(test)]
mod snapshot_tests;
pub(crate) mod standing;
pub(crate) mod starter;
pub(crate) mod succession;
mod write_messages;
pub(crate) mod writing;
