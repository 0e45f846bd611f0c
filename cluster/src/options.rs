//! How a store is opened.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use compact_str::CompactString;

use crate::TableId;

/// How a store is opened.
#[derive(Clone)]
pub struct Options {
    /// The data directory. Created when missing; used by one store at a time.
    pub directory: PathBuf,
    /// Id of this replica.
    pub node: u64,
    /// How long superseded versions and changes can be read. At least a few seconds, or lists cannot be paged.
    pub history_age_max: Duration,
    /// Memory that the history of one table may keep, in bytes; the oldest goes first, except while a snapshot that
    /// is not older than `snapshot_hold_max` needs it.
    pub history_bytes_max: usize,
    /// How long a snapshot keeps its revision readable.
    pub snapshot_hold_max: Duration,
    /// What differs from the default, by table.
    pub tables: BTreeMap<TableId, TableOptions>,
    /// Called when the log can no longer be trusted to be durable, after a failed write or fsync of it. It must end
    /// the process; the store answers nothing any more.
    pub on_fatal: Arc<dyn Fn(&str) + Send + Sync>,
}

impl Options {
    /// The defaults for a data directory.
    pub fn new(directory: impl Into<PathBuf>) -> Options {
        Options {
            directory: directory.into(),
            node: 1,
            history_age_max: Duration::from_secs(300),
            history_bytes_max: 1 << 30,
            snapshot_hold_max: Duration::from_secs(120),
            tables: BTreeMap::new(),
            on_fatal: Arc::new(|reason| {
                tracing::error!(reason, "the log is not durable any more: ending the process");
                std::process::exit(70);
            }),
        }
    }
}

/// How one table is kept.
#[derive(Clone, Debug, Default)]
pub struct TableOptions {
    /// The Raft group that replicates it; `default` when none is named.
    pub group: Option<CompactString>,
    /// Selectable fields that lists and counts find by an index.
    pub indexes: Vec<CompactString>,
}

/// Name of the group of every table for which the options name none.
pub(crate) const DEFAULT_GROUP: &str = "default";

/// Why a store cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The data directory cannot be used.
    #[error("data directory {directory}")]
    Directory {
        /// The directory.
        directory: PathBuf,
        /// What went wrong.
        source: std::io::Error,
    },
    /// The thread of the store ended while opening.
    #[error("the store ended while it was being opened")]
    Ended,
}
