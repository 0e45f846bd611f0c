//! Writes and what comes of them.

use std::num::NonZeroU64;
use std::sync::Arc;

use crate::{Draft, Key, Object, Revision, TableId};

/// What must hold when a write is applied; decided by the state machine, equally on every replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expectation {
    /// There is no such object.
    Absent,
    /// The object exists and this is its revision.
    Revision(Revision),
}

/// What a write does.
#[derive(Clone, Debug)]
pub enum Mutation {
    /// Create or replace the object.
    Put(Draft),
    /// Remove the object. The change that watchers see carries its last state with the revision of the deletion.
    Delete,
}

/// One conditional write of one object.
#[derive(Clone, Debug)]
pub struct Write {
    /// The table.
    pub table: TableId,
    /// The object.
    pub key: Key,
    /// What must hold for the write to happen.
    pub expectation: Expectation,
    /// What the write does.
    pub mutation: Mutation,
}

/// What a write that was decided came to.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// The write happened and is durable.
    Committed {
        /// The new version; for a deletion the last state with the revision of the deletion.
        object: Arc<Object>,
        /// The version before, if any.
        previous: Option<Arc<Object>>,
    },
    /// The expectation did not hold and nothing was changed.
    Conflict {
        /// The object as it was when the write was decided, if any.
        current: Option<Arc<Object>>,
    },
}

/// Why a write has no outcome.
///
/// Every variant except [`WriteError::Unknown`] says that the write did not happen and never will.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// This replica does not lead the group of the table; the id of the one that does, when known.
    #[error("not the leader")]
    NotLeader {
        /// The replica to ask instead.
        leader: Option<u64>,
    },
    /// The table is being divided into other shards, and those of before take no writes any more.
    #[error("the object is kept in another shard now")]
    Moved,
    /// No leader can be asked right now.
    #[error("the store has no leader")]
    Unavailable,
    /// The disk of the leader has no room. Writes succeed again once there is.
    #[error("no space left for the write-ahead log")]
    NoSpace,
    /// The object is larger than the store takes.
    #[error("the object has {bytes} bytes, more than the {bytes_max} that the store takes")]
    TooLarge {
        /// Size of the object.
        bytes: usize,
        /// The bound.
        bytes_max: usize,
    },
    /// The draft's layout lies outside its bytes, or no revision of 18 digits is left.
    #[error("the draft has no room for a revision where its layout says")]
    Malformed,
    /// Too many writes wait already.
    #[error("too many writes are waiting")]
    QueueFull,
    /// The store was shut down before the write was proposed.
    #[error("the store is closed")]
    Closed,
    /// The write was proposed, and its outcome was not learned: it may have happened, may still happen, or never.
    #[error("the outcome of the write is unknown")]
    Unknown,
}

impl WriteError {
    /// Whether the write certainly did not happen and never will.
    pub fn is_definite(&self) -> bool {
        !matches!(self, WriteError::Unknown)
    }
}

/// That this replica led a group in some term, and had applied all that was acknowledged before.
///
/// What was decided then by the tables of the group was decided by all that had been acknowledged, if a write of the
/// same term is committed afterwards: had others been acknowledged by a later leader before, a majority would have left
/// the term for that leader's, and nothing of it could be committed any more. A quorum that confirms the leader says
/// the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tenure(pub(crate) NonZeroU64);

/// Why a linearizable read point could not be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// This replica does not lead the group of the table; the id of the one that does, when known.
    #[error("not the leader")]
    NotLeader {
        /// The replica to ask instead.
        leader: Option<u64>,
    },
    /// No quorum confirmed the leader.
    #[error("the store has no leader")]
    Unavailable,
    /// The store was shut down.
    #[error("the store is closed")]
    Closed,
}

/// The asked point lies before the history that is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("revision is older than the history, which begins at {floor}")]
pub struct Compacted {
    /// The oldest revision that can still be asked for.
    pub floor: Revision,
}

/// The asked revision was not reached in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("revision is larger than the current {current}")]
pub struct TooLarge {
    /// The closed revision when the wait ended.
    pub current: Revision,
}

/// Why there is no snapshot at a revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    /// The revision is older than the history.
    #[error(transparent)]
    Compacted(#[from] Compacted),
    /// The revision is not reached yet.
    #[error(transparent)]
    Future(#[from] TooLarge),
}
