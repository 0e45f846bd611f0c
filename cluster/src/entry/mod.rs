//! The content of a group's log: batches of writes with their revisions, and the steps that divide tables.

mod batch;
mod step;

pub(crate) use self::batch::{Batch, Command, Operation};
pub(crate) use self::step::{Action, Filling, ShardId, Step};
