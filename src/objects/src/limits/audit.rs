//! The limits of auditing.

use std::time::Duration;

/// Bytes of an answer that the audit log records; of a larger one it records no object.
pub const AUDITED_ANSWER_BYTES: usize = 16 * 1_048_576;

/// Bytes up to which waiting events of the audit log are written in one call.
pub const AUDIT_BATCH_BYTES: usize = 1_048_576;

/// Bytes of events that may wait for the audit log, and for the webhook; further events are lost.
pub const AUDIT_WAITING_BYTES: usize = 256 * 1_048_576;

/// Bytes of the events that are sent to the audit webhook at once, unless a flag states another number.
pub const AUDIT_LIST_BYTES: usize = 10 * 1_048_576;

/// Lists of events that are on their way to the audit webhook at a time, with requests that do not wait for them.
pub const AUDIT_LISTS: usize = 16;

/// Events that are on their way to the audit webhook at a time, while requests wait for them; further ones are lost.
pub const AUDIT_SENT_EVENTS: usize = 1_024;

/// How long a server that stops waits until the last events of auditing are written and sent.
pub const AUDIT_FLUSH: Duration = Duration::from_secs(10);

/// How long a server that stops waits before it sends events again.
pub const AUDIT_FLUSH_PAUSE: Duration = Duration::from_secs(1);

/// The time between two lines of the log about lost events of auditing, for each reason.
pub const AUDIT_LOSS_INTERVAL: Duration = Duration::from_secs(10);
