//! The limits of the page for browsers.

use std::time::Duration;

/// Links to the console that can still be opened; the oldest makes room for a new one.
pub const CONSOLE_LINKS: usize = 64;

/// How long a link can be opened.
pub const CONSOLE_LINK_LIFETIME: Duration = Duration::from_secs(300);

/// Sessions of browsers that opened a link; the oldest makes room for a new one.
pub const CONSOLE_SESSIONS: usize = 256;

/// How long a session lasts.
pub const CONSOLE_SESSION_LIFETIME: Duration = Duration::from_secs(8 * 3_600);

/// Streams of events of the console at a time; further ones are refused with 429.
pub const CONSOLE_STREAMS: usize = 16;

/// Time between two events of a stream.
pub const CONSOLE_INTERVAL: Duration = Duration::from_secs(2);

/// How long a stream of events lasts. The browser then asks again, and is authorized again.
pub const CONSOLE_STREAM_LIFETIME: Duration = Duration::from_secs(300);

/// Largest number of types of requests, and of resources, that the page shows.
pub const CONSOLE_ROWS: usize = 25;

/// Largest number of warnings that the page shows.
pub const CONSOLE_WARNINGS: usize = 30;
