//! The content of a group's log: batches of writes with their revisions, and the steps that divide tables.

mod batch;
mod shard_step;

pub(crate) use self::batch::{Batch, Command, Operation};
pub(crate) use self::shard_step::{Action, Filling, ShardId, ShardStep};
