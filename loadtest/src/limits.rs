//! The bounds of a run that no flag sets.

use std::time::Duration;

/// The longest answer that is kept, in bytes. Longer ones are only counted.
pub const KEPT_BODY_BYTES_MAX: usize = 1 << 20;

/// How many bytes a server may send on one HTTP/2 stream before the harness has read them.
pub const STREAM_WINDOW_BYTES: u32 = 8 << 20;

/// How many bytes a server may send on one HTTP/2 connection before the harness has read them.
pub const CONNECTION_WINDOW_BYTES: u32 = 16 << 20;

/// The longest line of a watch, in bytes.
pub const WATCH_LINE_BYTES_MAX: usize = 1 << 20;

/// How long one request may take, in seconds.
pub const REQUEST_SECONDS_MAX: u64 = 120;

/// The largest latency that a histogram can record, in microseconds.
pub const LATENCY_MICROS_MAX: u64 = REQUEST_SECONDS_MAX * 1_000_000;

/// How often the server's memory is measured during a run.
pub const MEMORY_SAMPLE_EVERY: Duration = Duration::from_millis(100);

/// The number of concurrent watches on one connection. Kubernetes allows at least 100 streams.
pub const WATCHES_PER_CONNECTION_MAX: usize = 100;

/// How many times as long as planned the changes of a steady rate may take before the row reports an error.
pub const LATENESS_MAX: f64 = 1.05;

/// How long a row waits for deliveries of the last change.
pub const DELIVERY_WAIT: Duration = Duration::from_secs(5);

/// How long a started server may take until it is ready.
pub const START_WAIT: Duration = Duration::from_secs(300);

/// How long a new namespace may take to get its default ServiceAccount. After that, the harness creates it.
pub const SERVICE_ACCOUNT_WAIT: Duration = Duration::from_secs(5);

/// How long the server may take to serve a custom resource after its definition.
pub const DEFINITION_WAIT: Duration = Duration::from_secs(60);

/// The number of connections that the balancer forwards at the same time. More connections wait.
pub const BALANCED_CONNECTIONS_MAX: usize = 20_000;

/// How long the balancer waits for a connection to a server, in seconds, before it tries the next one.
pub const BALANCER_CONNECT_SECONDS: u64 = 2;

/// The longest duration of all phases of a scenario, in seconds.
pub const SCENARIO_SECONDS_MAX: f64 = 7.0 * 86_400.0;

/// The number of connections that the requests of a scenario may share.
pub const SCENARIO_CONNECTIONS_MAX: usize = 10_000;

/// The largest number of nodes, watches or objects of one actor.
pub const SCENARIO_COUNT_MAX: usize = 10_000_000;

/// The largest rate of one actor, per second.
pub const RATE_MAX: f64 = 1e6;

/// The largest factor by which a phase multiplies rates.
pub const LOAD_FACTOR_MAX: f64 = 1_000.0;

/// The largest text in an object that a scenario writes, in bytes. Kubernetes accepts objects of about 1 MiB.
pub const PAYLOAD_BYTES_MAX: usize = 900_000;

/// The largest number of processes that share a scenario.
pub const PARTS_MAX: usize = 1_000;

/// The number of requests of one actor in progress. Further requests wait, and their latency includes the wait.
pub const IN_FLIGHT_MAX: usize = 20_000;

/// The number of concurrent requests that create objects before the first phase.
pub const SETUP_CONCURRENCY: usize = 64;

/// The shortest time that an actor waits for its next action.
pub const TIMER_STEP: Duration = Duration::from_micros(100);

/// How many failures of each kind, and violations of each promise, a result describes.
pub const EXAMPLES_PER_KIND: u64 = 5;

/// The number of an actor's watches that are compared with a list. If it has more, a random choice is compared.
pub const COMPARED_WATCHES_MAX: usize = 1_000;

/// How long watches may take to deliver the last changes before these count as lost.
pub const COMPARE_WAIT: Duration = Duration::from_secs(60);

/// The longest pause before a refused watch is retried.
pub const RETRY_WAIT_MAX: Duration = Duration::from_secs(5);

/// How many bytes a server may send to a deliberately slow reader before the harness has read them.
pub const SLOW_WINDOW_BYTES: u32 = 65_536;

/// The longest single object of a list, in bytes.
pub const LIST_ITEM_BYTES_MAX: usize = 4 << 20;

/// How long the deletion of a scenario's namespace may take.
pub const CLEAN_WAIT: Duration = Duration::from_secs(120);

/// The length of a log, and of the data in one port-forward, in bytes.
pub const STREAMED_BYTES: usize = 100_000_000;

/// How many of these bytes are sent at a time.
pub const STREAMED_CHUNK_BYTES: usize = 64_000;

/// The length of a line of a log, in bytes.
pub const LOG_LINE_BYTES: usize = 128;

/// How long the API server may take until it asks a new webhook.
pub const PLUG_WAIT: Duration = Duration::from_secs(30);
