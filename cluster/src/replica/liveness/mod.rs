//! Watches the other replicas, and replaces leaders that are gone or reach too few members.
//!
//! - [`pulse`] is the one timer of all groups. It lets idle groups rest as long as the other replicas answer (see
//!   [`crate::peer::peer_view`]).
//! - [`succession`] replaces leaders that are gone; [`reachability`] moves leadership away from a replica that reaches
//!   too few members.

pub(crate) mod pulse;
mod reachability;
#[cfg(test)]
mod reachability_tests;
#[cfg(test)]
mod rest_tests;
pub(crate) mod succession;
