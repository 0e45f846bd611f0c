//! The replicated, sharded, multi-versioned store: tables of objects with one history each, which survive crashes.
//!
//! The store knows tables, keys, revisions, bytes and index terms, and nothing of HTTP or of Kubernetes kinds.
//!
//! # Life of a write
//! [`Store::write`] hands a [`Write`] to the proposer of the table's group ([`group`]). The proposer takes all writes
//! that wait, gives each a [`Revision`], and proposes them as one log entry to [`raft`]. Once the entry is durable in
//! the write-ahead log ([`wal`]), the state machine hands the writes to the actors of their shards ([`table`]), each of
//! which decides whether the expectation holds, records the new version and the change, and closes the revision. The
//! broadcaster then wakes those watchers that the change concerns ([`watch`]).
//!
//! # Reading
//! A [`Table`] can be read from any thread. A read does not pass through an actor's mailbox and does not wait for the
//! disk: [`Table::get`] returns the latest version of an object, [`Table::snapshot`] a list, [`Table::subscribe`] a
//! watch. [`Store::barrier`] makes a read linearizable.
//!
//! # Shards
//! A table may have several shards ([`shard_map`]), each replicated by a group of its own. The clock of a group states
//! the revision up to which the group is closed: the group will write nothing more at or below it. Lists and watches of
//! a whole table merge its shards, and read up to the smallest revision that is closed in all of its groups. A reader
//! that waits for a group without writes asks it to close: a consistent read asks at once, watches ask at a fixed pace.
//! The number of shards of a table can be changed while the table is in use ([`replica::sharding::dividing`]).
//!
//! # After a crash
//! Each group is restored from its newest snapshot ([`snapshot`]) and the log after it. Both contain the history
//! window, so that a watch can resume from the last revision that it delivered.
//!
//! # Invariants
//! - A write is answered only once it is durable.
//! - Applying an entry uses no clock, no randomness and no I/O: every replica reaches the same result.
//! - Within a shard, revisions rise in the order of the log; the state at a closed revision never changes.
//! - No lock is held across an await, and none for longer than a bounded chunk of work.
//! - Every bound is in [`limits`].
//!
//! # Order
//!
//! A module imports only modules that are named before it here; `tests/layers.rs` of the workspace checks that.
//!
//! - Bounds, names and values: `limits`, `chance`, `chunk`, `progress`, `tasks`, `revision`, `key`, `term_filter`,
//!   `roster`, `object`, `change`, `write`
//! - The disk: `disk`
//! - The log on it, how tables are divided, the options of a store: `wal`, `shard_map`, `options`, `lock`
//! - Clocks, other replicas, and the machine below all of this: `clock`, `peer`, `machine`
//! - The content of log entries: `entry`, `codec`
//! - Subscribers, and the tables that wake them: `watch`, `table`
//! - What is replicated together: `group`
//! - Agreement between replicas: `snapshot`, `raft`
//! - This replica among the others: `replica`
//! - The store: `boot`, `backup`, `store`, `members`, `preferences`, `shards`
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests start tasks of their own, and may block"))]

/// Whether the code makes this mistake on purpose. True only in a simulation that must find the mistake.
#[cfg(test)]
macro_rules! seeded {
    ($bug:ident) => {
        crate::simulation::bugs::Bug::$bug.is_made()
    };
}
#[cfg(not(test))]
macro_rules! seeded {
    ($bug:ident) => {
        false
    };
}

mod backup;
mod boot;
mod chance;
mod change;
mod chunk;
mod clock;
mod codec;
mod disk;
mod entry;
mod group;
mod key;
pub mod limits;
mod lock;
mod machine;
mod members;
mod object;
mod options;
mod peer;
mod preferences;
mod progress;
mod raft;
#[cfg(test)]
mod replay_tests;
mod replica;
mod revision;
mod roster;
mod shard_map;
mod shards;
#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "a simulation needs no bounds of its own")]
mod simulation;
mod snapshot;
mod store;
#[cfg(test)]
mod store_tests;
mod table;
pub mod tasks;
mod term_filter;
mod wal;
mod watch;
mod write;

pub use self::backup::{
    Backup, BackupError, BackupHeader, BackupReadError, BackupReader, BackupSummary, Drafts, RestoreError, Restored,
    SalvageError, Unfinished, create, restore, salvage,
};
pub use self::change::{Change, ChangeKind};
pub use self::disk::KeyWrapping;
pub use self::key::{Key, Scope, TableId};
pub use self::members::{ClusterStatus, MemberStatus, MembersError};
pub use self::object::{Draft, Layout, Object, Term, Terms};
pub use self::options::{BackgroundTask, Founder, Initial, Membership, OpenError, Options, PeerTls, TableOptions};
pub use self::raft::{GroupStatus, Lag, Member};
pub use self::replica::standing::Standing;
pub use self::revision::Revision;
pub use self::shard_map::ShardMapError;
pub use self::shards::{DivideError, TableShards};
pub use self::store::{Status, Store};
pub use self::table::{Cursor, Selection, Snapshot, Subscription, Table, TableUsage};
pub use self::term_filter::TermFilter;
pub use self::wal::{WalError, WalUsage};
pub use self::watch::{Interest, LaggingSubscriber, wake_after_notifying};
pub use self::write::{
    Compacted, Expectation, Mutation, Outcome, ReadError, SnapshotError, Tenure, TooLarge, Write, WriteError,
};
