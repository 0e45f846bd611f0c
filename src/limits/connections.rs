//! The limits of connections.

use std::time::Duration;

/// Connections that may wait to be accepted.
pub const BACKLOG_CONNECTIONS: i32 = 1_024;

/// Open connections of one HTTP worker; more wait in the backlog.
pub const WORKER_CONNECTIONS: usize = 25_000;

/// TLS handshakes in progress in one HTTP worker; more wait in the backlog.
pub const WORKER_HANDSHAKES: usize = 256;

/// How long a client's TLS handshake may take.
pub const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// TLS sessions kept for resumption with TLS 1.2 session identifiers.
pub const TLS_SESSIONS: usize = 10_240;

/// How long a client may take to send the head of a request.
pub const REQUEST_HEAD_TIMEOUT: Duration = Duration::from_secs(32);

/// Bytes of the head of a request, as in the reference: the request line and all headers. A larger head gets 431.
pub const HEAD_BYTES: usize = 1_048_576 + 4_096;

/// Header lines of a request.
pub const HEAD_LINES: usize = 32_768;

/// Bytes up to which the head of a request counts as small.
pub const HEAD_BYTES_COMMON: usize = 65_536;

/// Larger HTTP/1.1 heads that are read or answered concurrently; more get 503.
pub const LARGE_HEADS: usize = 64;

/// Bytes that an HTTP/1.1 connection reads at a time.
pub const HTTP1_READ_BYTES: usize = 8_192;

/// How long the server still reads from a connection that it will close: a client that is still sending would otherwise
/// miss its answer.
pub const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// Idle time after which TCP keep-alive probes a client, as in the reference.
pub const KEEP_ALIVE_TIME: Duration = Duration::from_secs(180);

/// How long a stopping server waits for requests that were sent before clients learned of the stop. Later ones may be
/// refused, and clients know that.
pub const SETTLE_TIME: Duration = Duration::from_millis(100);

/// How long a connection without a request is kept.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(180);

/// Seconds that clients have to read the last answers of a stopping server.
pub const LINGER_SECONDS: u64 = 2;

/// Bytes that a connection gathers before it sends them at once, without waiting for the next turn of its task.
pub const CONNECTION_WRITE_BYTES: usize = 65_536;

/// Bytes that the streams of one HTTP/2 connection may hand to it before it sends; they wait while its socket is full.
pub const CONNECTION_UNSENT_BYTES: usize = 131_072;

/// How long a client may read nothing of an answer whose time is over, before its connection is closed.
pub const READER_STALL: Duration = Duration::from_secs(30);

/// How often a stopping server checks whether it has work.
pub const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// The longest line with the size of a chunk of a body, in bytes, as in the reference.
pub const CHUNK_SIZE_LINE_BYTES: usize = 4_096;

/// How many bytes of a URI the HTTP server can hold.
pub const URI_BYTES: usize = 65_000;
