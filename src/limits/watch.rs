//! The limits of watches.

use std::time::Duration;

/// Concurrent watches of the server; more get 429.
pub const WATCHES: usize = 200_000;

/// Longest duration of a watch, whatever its client asks for.
pub const WATCH_TIME_MAX: Duration = Duration::from_secs(365 * 86_400);

/// How long a watch of a table in several groups waits until all of them have reached its first revision.
pub const WATCH_BEGIN_WAIT: Duration = Duration::from_millis(500);

/// Changes that a watch reads from the change log at a time.
pub const WATCH_BATCH_EVENTS: usize = 256;

/// Watches that are woken together; those of further connections wait until these have sent their events.
pub const WATCHES_WOKEN_TOGETHER: usize = 64;

/// Bytes of events that a watch puts into one write to its socket.
pub const WATCH_WRITE_BYTES: usize = 65_536;

/// Time between bookmarks of a watch that asked for them.
pub const BOOKMARK_INTERVAL: Duration = Duration::from_secs(60);

/// How long before its end a watch gets a last bookmark, from which the client can resume.
pub const BOOKMARK_BEFORE_END: Duration = Duration::from_secs(2);

/// How long a bookmark waits until idle groups of the table have closed a newer revision, so that a client can use it
/// for the whole history window.
pub const BOOKMARK_FRESHENING: Duration = Duration::from_millis(200);
