//! The groups that this replica leads.
//!
//! - [`placement`] decides which groups it should lead; [`handing_over`] gives groups to other replicas. [`reach`]
//!   compares how many members two replicas reach.
//! - [`balance`] spreads leaders over members; [`room`] moves leadership away from a replica whose disk is full or
//!   slow.

pub(crate) mod balance;
mod handing_over;
pub(crate) mod placement;
#[cfg(test)]
mod preference_tests;
pub(crate) mod reach;
pub(crate) mod room;
#[cfg(test)]
mod room_tests;
