//! What one log entry says.

use std::sync::Arc;

use crate::{Expectation, Key, Object, Revision, TableId};

/// What a committed command does when its expectation holds.
#[derive(Clone, Debug)]
pub(crate) enum Operation {
    /// Record this version; it carries its revision already.
    Put(Arc<Object>),
    Delete,
}

/// One write as it is in the log.
#[derive(Clone, Debug)]
pub(crate) struct Command {
    pub(crate) table: TableId,
    pub(crate) key: Key,
    pub(crate) revision: Revision,
    pub(crate) expectation: Expectation,
    pub(crate) operation: Operation,
}

impl Command {
    /// About how many bytes the command takes in the log.
    pub(crate) fn bytes(&self) -> usize {
        match &self.operation {
            Operation::Put(object) => object.memory(),
            Operation::Delete => size_of::<Command>(),
        }
    }
}

/// What one log entry says: writes of any tables of the group, in revision order. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Batch {
    commands: Arc<[Command]>,
    close: Option<Revision>,
}

impl Batch {
    pub(crate) fn of(commands: Vec<Command>) -> Batch {
        Batch { commands: commands.into(), close: None }
    }

    /// Promises, for all tables of the group, that no later write gets this revision or a smaller one.
    pub(crate) fn closing(revision: Revision) -> Batch {
        Batch { commands: Arc::default(), close: Some(revision) }
    }

    pub(crate) fn commands(&self) -> &[Command] {
        &self.commands
    }

    pub(crate) fn close(&self) -> Option<Revision> {
        self.close
    }
}
