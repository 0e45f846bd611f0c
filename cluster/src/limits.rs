//! Every bound of the store, in one place.

use std::time::Duration;

/// Largest encoded object, in bytes: a little over what Kubernetes clients may send (3 MiB), for what the server adds.
pub const OBJECT_BYTES_MAX: usize = 4 << 20;
/// Writes that may wait in one group. Beyond, a write fails with `QueueFull`.
pub const GROUP_WRITES_MAX: usize = 16_384;
/// Bytes of the objects of the writes that may wait in one group. Beyond, a write fails with `QueueFull`.
pub const GROUP_BYTES_MAX: usize = 256 << 20;
/// Writes in one log entry.
pub const BATCH_WRITES_MAX: usize = 1_024;
/// Bytes of objects after which a log entry takes no further write.
pub const BATCH_BYTES_MAX: usize = 2 << 20;
/// Log entries of one group that are proposed and not yet applied.
pub const BATCHES_IN_FLIGHT_MAX: usize = 2;
/// Messages that may wait for a shard actor or a broadcaster; their senders are few and wait.
pub const MAILBOX_MESSAGES_MAX: usize = 1_024;
/// Writes applied under one write lock of a table, so that readers wait at most for these.
pub const APPLY_UNDER_LOCK_MAX: usize = 64;
/// Objects examined under one read lock of a table.
pub const SCAN_UNDER_LOCK_MAX: usize = 512;
/// Changes copied or dropped under one lock of a change log.
pub const CHANGES_UNDER_LOCK_MAX: usize = 512;
/// Changes that one read of a subscription examines.
pub const CHANGES_PER_READ_MAX: usize = 4_096;
/// How often tables are asked to drop what left the history window.
pub const TRIM_INTERVAL: Duration = Duration::from_secs(1);
/// Age after which the encodings that the server shares between watchers of a change are dropped.
pub const SHARED_ENCODING_AGE: Duration = Duration::from_secs(5);
/// How long a write may take before its outcome is called unknown.
pub const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
