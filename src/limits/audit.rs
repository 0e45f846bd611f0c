//! The limits of auditing.

use std::time::Duration;

/// Bytes of an answer that the audit log records; of a larger one it records no object.
pub const AUDITED_ANSWER_BYTES: usize = 16 * 1_048_576;

/// Most bytes of waiting events that the audit log writes in one call, unless a flag states another number.
pub const AUDIT_BATCH_BYTES: usize = 1_048_576;

/// Most bytes of events that may wait for the audit log, and as many for the webhook. Further events are lost.
pub const AUDIT_WAITING_BYTES: usize = 256 * 1_048_576;

/// Bytes of the events that are sent to the audit webhook at once, unless a flag states another number.
pub const AUDIT_LIST_BYTES: usize = 10 * 1_048_576;

/// Most lists of events on their way to the audit webhook at a time, in the mode in which requests do not wait for
/// events.
pub const AUDIT_LISTS: usize = 16;

/// Most events on their way to the audit webhook at a time, in the modes in which requests wait for them. Further ones
/// are lost.
pub const AUDIT_SENT_EVENTS: usize = 1_024;

/// How long a stopping server waits, at most, for the last audit events to be written and sent.
pub const AUDIT_FLUSH: Duration = Duration::from_secs(10);

/// How long a stopping server waits, at most, before it tries again to send events that it failed to send.
pub const AUDIT_FLUSH_PAUSE: Duration = Duration::from_secs(1);

/// The time between two log lines about audit events that were lost for the same reason.
pub const AUDIT_LOSS_INTERVAL: Duration = Duration::from_secs(10);

/// The longest time between two batches of events, however low their rate is.
pub const AUDIT_PAUSE_MAX: Duration = Duration::from_secs(24 * 3_600);

/// The longest recorded `User-Agent`, in bytes.
pub const AUDIT_USER_AGENT_BYTES: usize = 1_024;

/// If a request takes longer than this, its events state the times of its parts, as in the reference.
pub const AUDIT_SLOW_REQUEST: Duration = Duration::from_millis(500);

/// How long a call of the audit webhook may take.
pub const AUDIT_WEBHOOK_TIMEOUT: Duration = Duration::from_secs(30);

/// How often a list is sent to the audit webhook before its events are lost.
pub const AUDIT_WEBHOOK_ATTEMPTS: u32 = 5;
