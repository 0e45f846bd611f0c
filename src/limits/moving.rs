//! The limits of imports and exports.

use std::time::Duration;

/// Keys that an import names in its output if it cannot import them; a file lists all of them.
pub const MOVING_REFUSALS_LISTED: usize = 100;
/// Bytes of objects after which an import or export writes them.
pub const MOVING_CHUNK_BYTES: usize = 256 << 10;
/// Objects in one page that an import asks a server for.
pub const MOVING_PAGE_OBJECTS: usize = 200;
/// Bytes of one page; a larger one is cut off, so the import fails.
pub const MOVING_PAGE_BYTES: u64 = 1 << 30;
/// How long a watch of an import lasts before the import begins it again.
pub const MOVING_WATCH_TIMEOUT: Duration = Duration::from_secs(300);
/// Pause of an import before a watch that failed or ended is begun again.
pub const MOVING_WATCH_PAUSE: Duration = Duration::from_secs(1);
/// Changes of all watches of an import that wait to be written.
pub const MOVING_CHANGES_WAITING: usize = 256;
/// Bytes of all changes that wait to be written, as the server sends them. A larger change waits until no other waits.
pub const MOVING_CHANGES_BYTES: usize = 32 << 20;
/// Bytes of a change; after a larger one the import lists the resource again.
pub const MOVING_CHANGE_BYTES: usize = 32 << 20;
/// How often an import makes the received objects durable.
pub const MOVING_SYNC_INTERVAL: Duration = Duration::from_secs(1);
/// How often an import begins a list again because its revision is no longer in the server's history.
pub const MOVING_LIST_ATTEMPTS: usize = 5;
/// Outdated bytes in the file of an import, in addition to as many as there are live bytes, above which the file is
/// rewritten.
pub const MOVING_OUTDATED_BYTES: u64 = 64 << 20;
/// Stack of a thread that reads a watch of an import.
pub const MOVING_WATCH_STACK: usize = 512 << 10;
/// How often an import or export reports its progress.
pub const MOVING_PROGRESS_INTERVAL: Duration = Duration::from_secs(2);
/// Keys that share one lease, as in the reference.
pub const MOVING_LEASE_KEYS: u64 = 1_000;

/// How long an import waits for a change before it checks signals.
pub const MOVING_SIGNAL_INTERVAL: Duration = Duration::from_millis(100);

/// How long exported events live, in seconds: the default of `--event-ttl` of kube-apiserver.
pub const MOVING_EVENT_SECONDS: i64 = 3_600;
