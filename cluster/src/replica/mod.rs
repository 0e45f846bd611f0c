//! This replica among the others.
//!
//! [`identity`] says who it is, [`groups`] what it takes part in, [`formation`] makes a cluster of replicas that have
//! none yet, as [`gathering`] decides, and [`alone`] readies one that had no others for them; [`mapping`] keeps to the
//! shard map and [`dividing`] changes the shards of tables, [`exchange`] answers what others ask and [`leader`] asks
//! the leader of a group, wherever it is, also for what is [`administering`]; [`attempts`] makes a write happen once
//! although it may have to be asked for twice, with the help of [`repeats`]; [`placement`] knows what people want it to
//! lead, [`balance`] spreads leaders, and [`succession`] follows those that go; [`standing`] tells whether it is a
//! member; [`reads`] gathers reads that need to know how far a replica must be, so that one question serves them all;
//! [`room`] lets others lead while the disk is full; [`pulse`] is the one clock of all groups, which lets those rest in
//! which nothing happens as long as [`crate::peer::sight`] shows who is there.

mod administering;
pub(crate) mod alone;
#[cfg(test)]
mod alone_tests;
pub(crate) mod attempts;
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
mod hearing;
#[cfg(test)]
mod hearing_tests;
pub(crate) mod identity;
pub(crate) mod leader;
pub(crate) mod mapping;
#[cfg(test)]
mod membership_tests;
pub(crate) mod placement;
#[cfg(test)]
mod preference_tests;
pub(crate) mod pulse;
#[cfg(test)]
mod reaching_tests;
pub(crate) mod reads;
pub(crate) mod repeats;
#[cfg(test)]
mod replica_tests;
#[cfg(test)]
mod rest_tests;
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
