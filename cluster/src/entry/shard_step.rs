//! The steps by which a table is divided into other shards.
//!
//! A shard of a new division is filled with the objects of the former division, then opened, and ended when the table
//! is divided again. Each step is an entry in the log of the shard's group, so that every replica takes it at the same
//! point. Steps that fill a shard are numbered. A step that does not follow the last one has no effect; a former leader
//! may propose one.

use super::Operation;
use crate::shard_map::Epoch;
use crate::{Key, Revision, TableId};

/// The identity of a shard: its table, the division, and its number there.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ShardId {
    pub(crate) table: TableId,
    pub(crate) epoch: Epoch,
    pub(crate) number: u16,
}

/// One step of a shard.
#[derive(Clone, Debug)]
pub(crate) struct ShardStep {
    pub(crate) shard: ShardId,
    pub(crate) action: Action,
}

/// The effect of a step on its shard.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    /// The shard takes over objects from the former division.
    Fill(Filling),
    /// The shard takes writes above this revision, at which the former division ended. Has no effect unless the shard
    /// was filled up to it.
    Open { above: Revision },
    /// The shard takes no more writes. The entry closes its group up to the last revision that the shard can have.
    End,
}

/// Objects that a shard takes over.
#[derive(Clone, Debug, Default)]
pub(crate) struct Filling {
    /// Number of the step.
    pub(crate) step: u64,
    /// Whether the shard first drops the objects that it took over before.
    pub(crate) anew: bool,
    /// Versions with their revisions, and keys that must not exist any more.
    pub(crate) operations: Vec<(Key, Revision, Operation)>,
    /// The revision up to which the shard is complete after this step; `None` while objects are still missing.
    pub(crate) through: Option<Revision>,
}

impl ShardStep {
    /// Returns an estimate of the step's size in the log, in bytes. It is never too small.
    pub(crate) fn bytes(&self) -> usize {
        let operations = match &self.action {
            Action::Fill(filling) => filling.operations.as_slice(),
            Action::Open { .. } | Action::End => &[],
        };
        let bytes = |(key, _, operation): &(Key, Revision, Operation)| 64 + key.as_str().len() + operation.bytes();
        128 + self.shard.table.as_str().len() + operations.iter().map(bytes).sum::<usize>()
    }
}
