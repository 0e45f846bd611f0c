//! Raft, by openraft: nothing outside this module names one of its types.
//!
//! [`types`] says what openraft is instantiated with and how its values are written down, [`config`] how it runs,
//! [`log_store`] puts its log into the write-ahead log, [`state_machine`] applies what is committed and takes
//! snapshots, [`replay`] has it apply what the log has, and [`starting`] puts them together to the [`node`] of one
//! group, of which [`administration`] changes the members and the leader, [`status`] says how it is doing, and
//! [`snapshotting`] decides when snapshots are written; [`survival`] has one go on alone, [`exclusion`] tells those who
//! are no members any more, and [`mandate`] those who are to lead whether somebody does already. [`rest`] and
//! [`resting`] let a group rest while nothing happens in it.
//! [`network`] calls other replicas, where [`addresses`] has them, and notes what they have [`acknowledged`];
//! [`service`] answers them, [`snapshot_sending`] does both for snapshots, all in the messages of [`wire`].

mod acknowledged;
mod addresses;
mod administration;
mod config;
mod exclusion;
mod log_store;
mod mandate;
mod network;
mod node;
mod promises;
mod proposals;
#[cfg(test)]
mod raft_tests;
mod replay;
mod rest;
mod resting;
mod service;
mod snapshot_sending;
mod snapshotting;
mod starting;
mod state_machine;
mod status;
#[cfg(test)]
mod storage_tests;
mod survival;
mod types;
mod wire;

#[cfg(test)]
pub(crate) use self::administration::GONE;
pub(crate) use self::administration::Unchanged;
pub(crate) use self::exclusion::Votes;
pub(crate) use self::node::Node;
pub(crate) use self::promises::know_members;
pub(crate) use self::proposals::Proposals;
pub(crate) use self::resting::Settling;
pub(crate) use self::starting::NodeOptions;
pub(crate) use self::state_machine::StateMachine;
pub use self::status::{GroupStatus, Lag, Member};
