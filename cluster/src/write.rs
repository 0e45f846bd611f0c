//! Conditional writes, their outcomes, and the errors of writing and reading.

use std::num::NonZeroU64;
use std::sync::Arc;

use crate::{Draft, Key, Object, Revision, TableId};

/// The condition under which a write is made. The state machine checks it when it applies the write, with the same
/// result on every replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expectation {
    /// The object does not exist.
    Absent,
    /// The object exists and has this revision.
    Revision(Revision),
}

/// The effect of a write on its object.
#[derive(Clone, Debug)]
pub enum Mutation {
    /// Create or replace the object.
    Put(Draft),
    /// Remove the object. Watchers receive its last state with the revision of the deletion.
    Delete,
}

/// One conditional write of one object.
#[derive(Clone, Debug)]
pub struct Write {
    /// The table.
    pub table: TableId,
    /// The object.
    pub key: Key,
    /// The condition under which the write is made.
    pub expectation: Expectation,
    /// The effect of the write.
    pub mutation: Mutation,
}

/// The result of a write that was decided.
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
        /// The object as it was when the write was decided. `None` if there was none.
        current: Option<Arc<Object>>,
    },
}

/// The reason why a write has no outcome.
///
/// Every variant except [`WriteError::Unknown`] says that the write did not happen and never will.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// This replica does not lead the group of the table.
    #[error("not the leader")]
    NotLeader {
        /// The id of the replica that leads, when known.
        leader: Option<u64>,
    },
    /// The table is being divided into other shards, and the old ones take no more writes.
    #[error("the object is kept in another shard now")]
    Moved,
    /// No leader can be reached right now.
    #[error("the store has no leader")]
    Unavailable,
    /// The disk of the leader has no room. Writes succeed again once it has.
    #[error("no space left for the write-ahead log")]
    NoSpace,
    /// The object is larger than the store allows.
    #[error("the object has {bytes} bytes, more than the {bytes_max} that the store takes")]
    TooLarge {
        /// Size of the object.
        bytes: usize,
        /// The bound.
        bytes_max: usize,
    },
    /// The draft's layout lies outside its bytes, or no revision of 18 digits is left.
    #[error("the draft has no room for a revision at the offset in its layout")]
    Malformed,
    /// The queue of waiting writes is full.
    #[error("too many writes are waiting")]
    QueueFull,
    /// The store was shut down before the write was proposed.
    #[error("the store is closed")]
    Closed,
    /// The write was proposed, but its outcome was not learned: it may have happened, may still happen, or may never.
    #[error("the outcome of the write is unknown")]
    Unknown,
}

impl WriteError {
    /// Returns whether the write certainly did not happen and never will.
    pub fn is_definite(&self) -> bool {
        !matches!(self, WriteError::Unknown)
    }
}

/// A term in which this replica led a group and had applied everything acknowledged before.
///
/// Suppose a decision was made in a tenure by the state of the group's tables. If a write of the same term is committed
/// afterwards, the decision took everything acknowledged until then into account: if a later leader had acknowledged
/// another write in between, a majority would have left the term, and no write of it could be committed any more. A
/// quorum that confirms the leader in that term proves the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tenure(pub(crate) NonZeroU64);

/// The reason why there is no linearizable read point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// This replica does not lead the group of the table.
    #[error("not the leader")]
    NotLeader {
        /// The id of the replica that leads, when known.
        leader: Option<u64>,
    },
    /// No quorum confirmed the leader.
    #[error("the store has no leader")]
    Unavailable,
    /// The store was shut down.
    #[error("the store is closed")]
    Closed,
}

/// The requested revision lies before the history that is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("revision is older than the history, which begins at {floor}")]
pub struct Compacted {
    /// The oldest revision that can still be requested.
    pub floor: Revision,
}

/// The requested revision was not reached in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("revision is larger than the current {current}")]
pub struct TooLarge {
    /// The closed revision when the wait ended.
    pub current: Revision,
}

/// The reason why there is no snapshot at a revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    /// The revision is older than the history.
    #[error(transparent)]
    Compacted(#[from] Compacted),
    /// The revision is not reached yet.
    #[error(transparent)]
    Future(#[from] TooLarge),
}
