//! The content of one log entry.

use std::sync::Arc;

use super::{ShardId, ShardStep};
use crate::object::WriteId;
use crate::shard_map::{Epoch, MAP_TABLE};
use crate::{Expectation, Key, Object, Revision, TableId};

/// The effect of a committed command whose expectation holds.
#[derive(Clone, Debug)]
pub(crate) enum Operation {
    /// Record this version, which already contains its revision and the id of its write.
    Put(Arc<Object>),
    /// Record that the object is deleted, by the write with this id.
    Delete(Option<WriteId>),
}

/// One write in a log entry.
#[derive(Clone, Debug)]
pub(crate) struct Command {
    pub(crate) table: TableId,
    /// The division of the table, and the number of the shard there, in which the proposer placed the key.
    pub(crate) epoch: Epoch,
    pub(crate) shard: u16,
    pub(crate) key: Key,
    pub(crate) revision: Revision,
    pub(crate) expectation: Expectation,
    pub(crate) operation: Operation,
}

impl Command {
    /// Returns the shard that the command is for.
    pub(crate) fn shard_id(&self) -> ShardId {
        ShardId { table: self.table.clone(), epoch: self.epoch, number: self.shard }
    }

    /// Returns an estimate of the command's size in the log, in bytes. It is never too small.
    pub(crate) fn bytes(&self) -> usize {
        64 + self.table.as_str().len() + self.key.as_str().len() + self.operation.bytes()
    }
}

impl Operation {
    /// Returns the operation that made a version.
    pub(crate) fn of(object: &Arc<Object>) -> Operation {
        match object.is_tombstone() {
            true => Operation::Delete(object.write_id()),
            false => Operation::Put(object.clone()),
        }
    }

    /// Returns an estimate of the operation's size in the log without its key, in bytes. It is never too small.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            // A term of two short texts takes slightly more in the log than in memory.
            Operation::Put(object) => {
                object.memory() + 8 * (object.terms().labels().len() + object.terms().fields().len())
            }
            Operation::Delete(_) => 8,
        }
    }
}

impl std::fmt::Display for Batch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} writes", self.commands.len())
    }
}

/// The content of one log entry: writes to any tables of the group, in revision order, or a step of a shard. Cheap to
/// clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Batch {
    commands: Arc<[Command]>,
    close: Option<Revision>,
    step: Option<Arc<ShardStep>>,
}

impl Batch {
    pub(crate) fn of(commands: Vec<Command>) -> Batch {
        Batch { commands: commands.into(), ..Batch::default() }
    }

    /// Returns a batch that was read back from the log.
    pub(crate) fn restored(commands: Vec<Command>, close: Option<Revision>, step: Option<ShardStep>) -> Batch {
        Batch { commands: commands.into(), close, step: step.map(Arc::new) }
    }

    /// Returns a batch with a step of a shard, which also closes the group up to a revision if one is given.
    pub(crate) fn stepping(step: ShardStep, close: Option<Revision>) -> Batch {
        Batch { close, step: Some(Arc::new(step)), ..Batch::default() }
    }

    /// Returns an estimate of the batch's size in the log, in bytes. It is never too small.
    pub(crate) fn bytes(&self) -> usize {
        let step = self.step.as_ref().map_or(0, |step| step.bytes());
        64 + step + self.commands.iter().map(Command::bytes).sum::<usize>()
    }

    /// Returns a batch that promises, for all tables of the group, that no later write gets this revision or a smaller
    /// one.
    pub(crate) fn closing(revision: Revision) -> Batch {
        Batch { close: Some(revision), ..Batch::default() }
    }

    pub(crate) fn commands(&self) -> &[Command] {
        &self.commands
    }

    /// Returns whether the batch writes only the shard map.
    pub(crate) fn is_of_map(&self) -> bool {
        !self.commands.is_empty() && self.commands.iter().all(|command| command.table.as_str() == MAP_TABLE)
    }

    pub(crate) fn close(&self) -> Option<Revision> {
        self.close
    }

    pub(crate) fn step(&self) -> Option<&Arc<ShardStep>> {
        self.step.as_ref()
    }

    /// Returns the largest revision that the batch assigns or closes; later batches only have larger ones. `None` when
    /// it does neither.
    pub(crate) fn last(&self) -> Option<Revision> {
        self.commands.iter().map(|command| command.revision).chain(self.close).max()
    }
}
