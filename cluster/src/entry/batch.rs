//! What one log entry says.

use std::sync::Arc;

use super::{ShardId, Step};
use crate::object::Attempt;
use crate::shard_map::{Epoch, MAP_TABLE};
use crate::{Expectation, Key, Object, Revision, TableId};

/// What a committed command does when its expectation holds.
#[derive(Clone, Debug)]
pub(crate) enum Operation {
    /// Record this version; it carries its revision and its name already.
    Put(Arc<Object>),
    /// Record that it is gone, by a deletion of this name.
    Delete(Option<Attempt>),
}

/// One write as it is in the log.
#[derive(Clone, Debug)]
pub(crate) struct Command {
    pub(crate) table: TableId,
    /// The division of the table and the shard there that the proposer took the key to be in.
    pub(crate) epoch: Epoch,
    pub(crate) shard: u16,
    pub(crate) key: Key,
    pub(crate) revision: Revision,
    pub(crate) expectation: Expectation,
    pub(crate) operation: Operation,
}

impl Command {
    /// The shard that it is for.
    pub(crate) fn shard_id(&self) -> ShardId {
        ShardId { table: self.table.clone(), epoch: self.epoch, number: self.shard }
    }

    /// About how many bytes the command takes in the log, and no less than it does.
    pub(crate) fn bytes(&self) -> usize {
        64 + self.table.as_str().len() + self.key.as_str().len() + self.operation.bytes()
    }
}

impl Operation {
    /// What made a version.
    pub(crate) fn of(object: &Arc<Object>) -> Operation {
        match object.is_tombstone() {
            true => Operation::Delete(object.attempt()),
            false => Operation::Put(object.clone()),
        }
    }

    /// About how many bytes it takes in the log besides its key, and no less than it does.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            // A term of two short texts takes a little more written down than in memory.
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

/// What one log entry says: writes of any tables of the group, in revision order, or a step of a shard. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Batch {
    commands: Arc<[Command]>,
    close: Option<Revision>,
    step: Option<Arc<Step>>,
}

impl Batch {
    pub(crate) fn of(commands: Vec<Command>) -> Batch {
        Batch { commands: commands.into(), ..Batch::default() }
    }

    /// A batch as it was read back.
    pub(crate) fn restored(commands: Vec<Command>, close: Option<Revision>, step: Option<Step>) -> Batch {
        Batch { commands: commands.into(), close, step: step.map(Arc::new) }
    }

    /// A step of a shard, which closes the group up to a revision if that is said.
    pub(crate) fn stepping(step: Step, close: Option<Revision>) -> Batch {
        Batch { close, step: Some(Arc::new(step)), ..Batch::default() }
    }

    /// About how many bytes the batch takes in the log, and no less than it does.
    pub(crate) fn bytes(&self) -> usize {
        let step = self.step.as_ref().map_or(0, |step| step.bytes());
        64 + step + self.commands.iter().map(Command::bytes).sum::<usize>()
    }

    /// Promises, for all tables of the group, that no later write gets this revision or a smaller one.
    pub(crate) fn closing(revision: Revision) -> Batch {
        Batch { close: Some(revision), ..Batch::default() }
    }

    pub(crate) fn commands(&self) -> &[Command] {
        &self.commands
    }

    /// Whether it writes the shard map and nothing else.
    pub(crate) fn is_of_map(&self) -> bool {
        !self.commands.is_empty() && self.commands.iter().all(|command| command.table.as_str() == MAP_TABLE)
    }

    pub(crate) fn close(&self) -> Option<Revision> {
        self.close
    }

    pub(crate) fn step(&self) -> Option<&Arc<Step>> {
        self.step.as_ref()
    }

    /// The largest revision that the batch assigns or closes: nothing up to it comes after.
    pub(crate) fn last(&self) -> Option<Revision> {
        self.commands.iter().map(|command| command.revision).chain(self.close).max()
    }
}
