//! What bounds a run, besides what flags say.

use std::time::Duration;

/// The longest answer that is kept for looking into it; longer ones are only counted.
pub const KEPT_BODY_BYTES_MAX: usize = 1 << 20;

/// How much a server may send on one HTTP/2 stream before it waits for the harness.
pub const STREAM_WINDOW_BYTES: u32 = 8 << 20;

/// How much a server may send on one HTTP/2 connection before it waits for the harness.
pub const CONNECTION_WINDOW_BYTES: u32 = 16 << 20;

/// The longest line of a watch.
pub const WATCH_LINE_BYTES_MAX: usize = 1 << 20;

/// How long one request may take.
pub const REQUEST_SECONDS_MAX: u64 = 120;

/// The longest latency that a histogram tells apart, in microseconds.
pub const LATENCY_MICROS_MAX: u64 = REQUEST_SECONDS_MAX * 1_000_000;

/// How often the server's memory is looked at during a run.
pub const MEMORY_SAMPLE_EVERY: Duration = Duration::from_millis(100);

/// Concurrent watches on one connection; Kubernetes allows 100 streams at least.
pub const WATCHES_PER_CONNECTION_MAX: usize = 100;

/// How much longer than planned changes at a steady rate may take, of which figures are told.
pub const LATENESS_MAX: f64 = 1.05;

/// How long deliveries of the last change are waited for.
pub const DELIVERY_WAIT: Duration = Duration::from_secs(5);

/// How long a started server may take until it is ready.
pub const START_WAIT: Duration = Duration::from_secs(300);

/// How long a new namespace may take to get its service account before the harness creates it.
pub const SERVICE_ACCOUNT_WAIT: Duration = Duration::from_secs(5);

/// How long a custom resource may take to be served once it is defined.
pub const DEFINITION_WAIT: Duration = Duration::from_secs(60);

/// Connections that the balancer passes on at the same time; more wait.
pub const BALANCED_CONNECTIONS_MAX: usize = 20_000;

/// Seconds until the balancer tries the next server.
pub const BALANCER_CONNECT_SECONDS: u64 = 2;
