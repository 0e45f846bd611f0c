//! How this replica comes to be in a cluster.
//!
//! - [`identity`] stores who it is.
//! - [`formation`] forms a cluster of replicas that have none yet, as [`gathering`] decides.
//! - [`alone`] prepares a replica that is the only member of its cluster for others.

pub(crate) mod alone;
#[cfg(test)]
mod alone_tests;
pub(crate) mod formation;
mod gathering;
pub(crate) mod identity;
