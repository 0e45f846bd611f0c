//! The limits of requests in progress.

use std::time::Duration;

/// Bytes from which on a thread other than the workers answers a request: those of its body and of the object that it
/// changes together, or those of an object or list that must be encoded for it.
pub const LARGE_REQUEST_BYTES: usize = 64 << 10;

/// Messages that wait for the gateway of a worker; further senders wait.
pub const GATEWAY_MESSAGES: usize = 1_024;

/// Concurrent requests of users whom `--max-requests-inflight` and the like do not limit, without watches; more get
/// 429.
///
/// This also bounds the requests that one HTTP/2 connection can begin, since actix-web cannot tell clients how many
/// streams a connection may have. The crate h2 bounds how many streams may be reset before they are handled, and closes
/// the connection if there are more.
pub const EXEMPT_REQUESTS: usize = 10_000;

/// Concurrent requests that only read, unless configured; more get 429.
pub const READ_ONLY_REQUESTS: usize = 400;

/// Concurrent requests that may change something, unless configured; more get 429.
pub const MUTATING_REQUESTS: usize = 200;

/// Requests that wait for seats of their priority levels, in all queues of the server; more get 429.
pub const WAITING_REQUESTS: usize = 10_000;

/// Divisor of the time that a request may take. It waits for a seat of its priority level for at most the quotient.
pub const SEAT_WAIT_PART: u32 = 4;

/// FlowSchemas whose requests are measured, in the order in which they match; those of others are not.
pub const MEASURED_FLOWS: usize = 500;

/// Bodies of one user that are being received concurrently; more get 429.
pub const UPLOADS_OF_USER: usize = 100;

/// Bodies of all users that are being received concurrently.
pub const UPLOADS: usize = 1_000;

/// Combinations of labels in the metrics of requests; further ones are counted as refused.
pub const REQUEST_SERIES: usize = 20_000;

/// How long a task may hold its thread before other tasks run: one that selects the objects of a list, encodes them or
/// evaluates expressions. It first finishes the step that it has begun, such as one expression.
pub const TURN: Duration = Duration::from_millis(5);

/// Bytes of objects that a list encodes between two looks at the clock.
pub const TURN_BYTES: usize = 65_536;

/// Longest time that a client is asked to wait before it repeats a refused request, in seconds.
pub const RETRY_AFTER_SECONDS: u64 = 32;
