//! The steps by which a table comes to be divided into other shards.
//!
//! A shard of a new division is filled with the objects of the division before, opened, and, when the table is divided
//! once more, ended. Each step is an entry in the log of the shard's group, so that every replica takes it at the same
//! place. Steps that fill a shard are counted: one that does not follow the last one, as that of a leader that was
//! succeeded meanwhile may not, changes nothing.

use super::Operation;
use crate::shard_map::Epoch;
use crate::{Key, Revision, TableId};

/// A shard: its table, the division of that, and its number there.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ShardId {
    pub(crate) table: TableId,
    pub(crate) epoch: Epoch,
    pub(crate) number: u16,
}

/// One step of a shard.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) shard: ShardId,
    pub(crate) action: Action,
}

/// What a step does.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    /// Takes over objects, as they are in the division before.
    Fill(Filling),
    /// The shard takes writes, above this revision: that at which the division before has ended, and up to which this
    /// shard was filled. Without effect unless it was.
    Open { above: Revision },
    /// The shard takes no writes any more. The entry closes its group up to where that is.
    End,
}

/// Objects that a shard takes over.
#[derive(Clone, Debug, Default)]
pub(crate) struct Filling {
    /// Number of the step.
    pub(crate) step: u64,
    /// Whether what the shard took over before is to be forgotten.
    pub(crate) anew: bool,
    /// Versions, each with the revision that it has, and keys that are to be there no more.
    pub(crate) operations: Vec<(Key, Revision, Operation)>,
    /// Up to where the shard has everything after this step; none while objects are still missing.
    pub(crate) through: Option<Revision>,
}

impl Step {
    /// About how many bytes the step takes in the log, and no less than it does.
    pub(crate) fn bytes(&self) -> usize {
        let operations = match &self.action {
            Action::Fill(filling) => filling.operations.as_slice(),
            Action::Open { .. } | Action::End => &[],
        };
        let bytes = |(key, _, operation): &(Key, Revision, Operation)| 64 + key.as_str().len() + operation.bytes();
        128 + self.shard.table.as_str().len() + operations.iter().map(bytes).sum::<usize>()
    }
}
