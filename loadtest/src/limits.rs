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

/// Seconds of all phases of a scenario.
pub const SCENARIO_SECONDS_MAX: f64 = 7.0 * 86_400.0;

/// Connections that the requests of a scenario share.
pub const SCENARIO_CONNECTIONS_MAX: usize = 10_000;

/// Nodes, watches, objects and the like of one actor of a scenario.
pub const SCENARIO_COUNT_MAX: usize = 10_000_000;

/// How often a second one actor of a scenario does what it does.
pub const RATE_MAX: f64 = 1e6;

/// By what the load of a phase multiplies rates.
pub const LOAD_FACTOR_MAX: f64 = 1_000.0;

/// Bytes of text in an object that a scenario writes; Kubernetes takes objects of about a mebibyte.
pub const PAYLOAD_BYTES_MAX: usize = 900_000;

/// Processes that share a scenario.
pub const PARTS_MAX: usize = 1_000;

/// Requests of one stream that are under way; what is due beyond them waits, and its latency counts.
pub const IN_FLIGHT_MAX: usize = 20_000;

/// Requests that make what is there before the first phase, at a time.
pub const SETUP_CONCURRENCY: usize = 64;

/// The shortest time that is waited for between requests of a stream.
pub const TIMER_STEP: Duration = Duration::from_micros(100);

/// Failures of a sort, and broken promises of a kind, that are told in words.
pub const EXAMPLES_PER_KIND: u64 = 5;

/// Watches of an actor that are compared with a list in the end; others are chosen at random.
pub const COMPARED_WATCHES_MAX: usize = 1_000;

/// How long watches may take to deliver the last changes before these count as lost.
pub const COMPARE_WAIT: Duration = Duration::from_secs(60);

/// The longest time until a watch that was refused tries again.
pub const RETRY_WAIT_MAX: Duration = Duration::from_secs(5);

/// How much a server may send to a reader that is slow on purpose, before it waits for the harness.
pub const SLOW_WINDOW_BYTES: u32 = 65_536;

/// The longest single object of a list.
pub const LIST_ITEM_BYTES_MAX: usize = 4 << 20;

/// How long a namespace of a scenario may take to go.
pub const CLEAN_WAIT: Duration = Duration::from_secs(120);
