//! The limits of streams to nodes and other servers.

use std::time::Duration;

/// Bytes that are buffered for the handler of a connection that switched protocols, until it reads them.
pub const TAKEN_OVER_BYTES: usize = 65_536;

/// How often a connection from which nothing is read is checked for a hang-up of its client.
pub const HANG_UP_INTERVAL: Duration = Duration::from_secs(5);

/// Bytes that are passed on at a time between a client and another server.
pub const STREAM_CHUNK_BYTES: usize = 32_768;

/// Bytes of a WebSocket message, all its frames together; a larger one ends the connection.
pub const WEBSOCKET_MESSAGE_BYTES: usize = 4 << 20;

/// Bytes of a SPDY frame from another server; a larger one ends the connection.
pub const SPDY_FRAME_BYTES: usize = 1 << 20;

/// SPDY frames, or WebSocket messages, that wait to be sent.
pub const STREAM_FRAMES: usize = 16;

/// How often a SPDY connection to another server is pinged, as in the reference.
pub const SPDY_PING_INTERVAL: Duration = Duration::from_secs(5);

/// The highest code by which streams are counted; higher codes of nodes count as this one.
pub const STATUS_CODE_MAX: u16 = 600;

/// How long a server may take to accept a SPDY stream, as in the reference.
pub const SPDY_STREAM_TIMEOUT: Duration = Duration::from_secs(30);

/// Bytes of the error with which a remote process reports its end.
pub const PROCESS_ERROR_BYTES: usize = 65_536;

/// How long a stream may wait for its first data: as long as kubelets allow it to be idle.
pub const STREAM_BEGIN_TIMEOUT: Duration = Duration::from_secs(4 * 3_600);

/// Bytes of a kubelet's error that clients get, as in the reference.
pub const STREAM_ERROR_BYTES: usize = 50_000;

/// Bytes of an HTML page whose links are rewritten; a larger page is refused.
pub const HTML_BYTES: usize = 16 << 20;

/// Bytes of path and query that fit into a URI that also names the host of another server.
pub const STREAM_URI_BYTES: usize = 60_000;
