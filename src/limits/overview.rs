//! The limits of the state of a member as commands and pages show it.

use std::time::Duration;

/// Slow requests that are kept for the overview.
pub const SLOW_REQUESTS: usize = 20;

/// How long they are kept.
pub const SLOW_REQUESTS_WINDOW: Duration = Duration::from_secs(600);

/// Characters that are kept of the path of a slow request.
pub const SLOW_REQUEST_PATH_CHARACTERS: usize = 256;

/// Characters that are kept of its header `User-Agent`.
pub const SLOW_REQUEST_USER_AGENT_CHARACTERS: usize = 96;

/// Warnings of the log that are kept for the overview.
pub const RECENT_WARNINGS: usize = 100;

/// Characters that are kept of each.
pub const RECENT_WARNING_CHARACTERS: usize = 600;

/// Types of requests in an overview: the most frequent.
pub const OVERVIEW_REQUESTS: usize = 100;

/// Resources in an overview: those that take the most memory.
pub const OVERVIEW_RESOURCES: usize = 64;

/// Watches that are behind in an overview: those furthest behind.
pub const OVERVIEW_WATCHES: usize = 10;

/// Bytes of an overview that commands read; they fail on more.
pub const OVERVIEW_BYTES: u64 = 16 << 20;

/// Largest number of types of requests, and of resources, in the text of `flotilla top`.
pub const TOP_ROWS: usize = 15;

/// Largest number of slow requests in that text.
pub const TOP_SLOW_REQUESTS: usize = 8;

/// Largest number of types of requests in the text of `flotilla status`.
pub const STATUS_REQUESTS: usize = 12;

/// Largest number of warnings in that text.
pub const STATUS_WARNINGS: usize = 5;

/// Log entries that a member may lack without a warning of `flotilla doctor`.
pub const DOCTOR_LAG_ENTRIES: u64 = 10_000;
