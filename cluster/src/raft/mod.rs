//! Raft, by openraft: nothing outside this module names one of its types.
//!
//! [`types`] says what openraft is instantiated with and how its values are written down, [`log_store`] puts its log
//! into the write-ahead log, [`state_machine`] applies what is committed and takes snapshots, [`network`] is where
//! other replicas will be reached, and [`node`] puts them together for one group.

mod log_store;
mod network;
mod node;
#[cfg(test)]
mod raft_tests;
mod state_machine;
mod types;

pub use self::node::GroupStatus;
pub(crate) use self::node::{Node, NodeOptions, Proposals};
