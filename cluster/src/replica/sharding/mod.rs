//! The division of tables into shards, and the groups that replicate these.
//!
//! [`mapping`] follows the shard map, and takes part in the groups that it names; [`dividing`] changes the shards of
//! tables.

pub(crate) mod dividing;
#[cfg(test)]
mod dividing_tests;
#[cfg(test)]
mod division_traffic;
pub(crate) mod mapping;
