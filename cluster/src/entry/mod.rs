//! What the log of a group holds: batches of writes with their revisions, and the steps by which tables are divided.

mod batch;
mod step;

pub(crate) use self::batch::{Batch, Command, Operation};
pub(crate) use self::step::{Action, Filling, ShardId, Step};
