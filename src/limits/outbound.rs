//! The limits of requests to other servers.

use std::time::Duration;

/// Idle time after which TCP keep-alive probes another server, as in the reference.
pub const OUTBOUND_KEEP_ALIVE_TIME: Duration = Duration::from_secs(30);

/// Addresses of a host to which a connection is tried.
pub const OUTBOUND_ADDRESSES: usize = 16;

/// How long the TLS handshake with another server may take, as in Go.
pub const OUTBOUND_HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// Other servers to which connections are kept; the least recently used make room.
pub const OUTBOUND_PEERS: usize = 512;

/// Concurrent requests to one other server; over HTTP/1.1 each has its own connection.
pub const OUTBOUND_REQUESTS: usize = 256;

/// Requests that wait for another request to the same server to end; more fail at once.
pub const OUTBOUND_WAITING: usize = 4_096;

/// Idle connections that are kept to one other server, as by Go's clients of Kubernetes.
pub const OUTBOUND_IDLE_CONNECTIONS: usize = 25;

/// How long an idle connection is kept.
pub const OUTBOUND_IDLE_TIMEOUT: Duration = Duration::from_secs(90);

/// How often an HTTP/2 connection to another server is pinged.
pub const OUTBOUND_PING_INTERVAL: Duration = Duration::from_secs(30);

/// How long the answer to a ping may take.
pub const OUTBOUND_PING_TIMEOUT: Duration = Duration::from_secs(15);

/// Bytes of the head of an answer of another server.
pub const OUTBOUND_HEAD_BYTES: usize = 262_144;

/// Headers of an answer of another server.
pub const OUTBOUND_HEADERS: usize = 256;

/// How long opening a connection to another server may take.
pub const DIAL_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a component of the cluster may take to report its health, as in the reference.
pub const COMPONENT_TIMEOUT: Duration = Duration::from_secs(20);

/// Bytes of a component's report that are read.
pub const COMPONENT_ANSWER_BYTES: usize = 10_240;

/// Header names of a request that is passed to another server. The map that holds them has room for 24,576.
pub const PASSED_HEADERS: usize = 16_384;

/// Largest number of bytes of a connection in one message of its tunnel.
pub const EGRESS_DATA_BYTES: usize = 32_768;

/// Largest message that is accepted from a tunnel, in bytes, as in Go's gRPC.
pub const EGRESS_PACKET_BYTES: usize = 4 * 1_048_576;

/// Largest number of messages of a tunnel that wait to be sent.
pub const EGRESS_PACKETS: usize = 4;

/// Bytes of an invalid answer of a webhook that an error repeats.
pub const WEBHOOK_TEXT_BYTES: usize = 2_048;

/// Calls of a webhook until one succeeds, as in the reference.
pub const WEBHOOK_ATTEMPTS: u32 = 5;
