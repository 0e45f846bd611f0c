//! Raft, by means of openraft. No code outside this module names a type of openraft.
//!
//! - [`types`] instantiates openraft and encodes its values; [`config`] configures it; [`log_store`] stores its log in
//!   the write-ahead log; [`state_machine`] applies committed entries, and takes and installs snapshots; [`replay`]
//!   applies the log when a store is opened; [`survival`] lets a replica go on alone.
//! - [`starting`] combines these into the [`node`] of one group. Its parts are the [`roster`] of its members and its
//!   leader, the [`connections`] to them, the [`exclusion`] of former members, the [`tenure`] of this replica as the
//!   leader, the [`formation`] of the group, its [`leadership`], and the [`administration`] of its members. [`mandate`]
//!   checks requests to take over the leadership.
//! - [`proposals`] proposes batches; [`promises`] delays answers until other members have promised larger revisions;
//!   [`reading`] waits for the entries that reads must see; [`snapshotting`] decides when snapshots are written;
//!   [`status`] reports the state of a group; [`rest`] and [`resting`] let idle groups rest. [`error`] says why some of
//!   this fails.
//! - [`network`] calls other replicas over a [`link`] to each, at their [`addresses`], and records which entries they
//!   have [`acknowledged`]; [`service`] answers them. For snapshots, [`snapshot_sending`] and [`snapshot_receiving`] do
//!   so. All use the messages of [`wire`].

mod acknowledged;
mod addresses;
mod administration;
mod config;
mod connections;
mod error;
mod exclusion;
mod formation;
mod leadership;
mod link;
mod log_store;
mod mandate;
mod network;
mod node;
mod promises;
mod proposals;
#[cfg(test)]
mod raft_tests;
mod reading;
mod replay;
mod rest;
mod resting;
mod roster;
mod service;
mod snapshot_receiving;
mod snapshot_sending;
mod snapshotting;
mod starting;
mod state_machine;
mod status;
#[cfg(test)]
mod storage_tests;
mod survival;
mod tenure;
mod types;
mod wire;

#[cfg(test)]
pub(crate) use self::administration::GONE;
pub(crate) use self::exclusion::Votes;
pub(crate) use self::leadership::Unchanged;
pub(crate) use self::node::{Node, know_members};
pub(crate) use self::proposals::Proposals;
pub(crate) use self::resting::RestProposal;
pub(crate) use self::starting::NodeOptions;
pub(crate) use self::state_machine::StateMachine;
pub use self::status::{GroupStatus, Lag, Member};
