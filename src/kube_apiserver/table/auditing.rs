//! Flags about auditing and features.

use super::{Kind, Section, accepted, acts};

/// Auditing.
pub(super) const AUDITING: Section = Section {
    title: "Auditing",
    flags: &[
        acts("audit-log-batch-buffer-size", Kind::Int, "10000", "Events that may wait to be written."),
        acts("audit-log-batch-max-size", Kind::Int, "1", "Events to write at once."),
        acts("audit-log-batch-max-wait", Kind::Duration, "", "How long to wait for a full batch."),
        acts("audit-log-batch-throttle-burst", Kind::Int, "", "Batches to write at once after a rest."),
        acts("audit-log-batch-throttle-enable", Kind::Bool, "", "Limit how many batches are written a second."),
        acts("audit-log-batch-throttle-qps", Kind::Float32, "", "Batches to write a second."),
        acts("audit-log-compress", Kind::Bool, "", "Compress files of the audit log that are full."),
        acts("audit-log-format", Kind::Text, "json", "Form of the audit log."),
        acts("audit-log-maxage", Kind::Int, "366", "Days to keep files of the audit log."),
        acts("audit-log-maxbackup", Kind::Int, "100", "Files of the audit log to keep."),
        acts("audit-log-maxsize", Kind::Int, "100", "Largest size of a file of the audit log, in megabytes."),
        acts("audit-log-mode", Kind::Text, "blocking", "Whether requests wait for their events to be written."),
        acts("audit-log-path", Kind::Text, "", "File of the audit log; - for standard output."),
        acts("audit-log-truncate-enabled", Kind::Bool, "", "Record events that are too large without their objects."),
        acts("audit-log-truncate-max-batch-size", Kind::Int, "10485760", "Largest batch of events, in bytes."),
        acts("audit-log-truncate-max-event-size", Kind::Int, "102400", "Largest event, in bytes."),
        acts("audit-log-version", Kind::Text, "audit.k8s.io/v1", "API version of events in the log."),
        acts("audit-policy-file", Kind::Text, "", "File that says which requests are audited."),
        acts("audit-webhook-batch-buffer-size", Kind::Int, "10000", "Events that may wait to be sent."),
        acts("audit-webhook-batch-max-size", Kind::Int, "400", "Events to send at once."),
        acts("audit-webhook-batch-max-wait", Kind::Duration, "30s", "How long to wait for a full batch."),
        acts("audit-webhook-batch-throttle-burst", Kind::Int, "15", "Batches to send at once after a rest."),
        acts("audit-webhook-batch-throttle-enable", Kind::Bool, "true", "Limit how many batches are sent a second."),
        acts("audit-webhook-batch-throttle-qps", Kind::Float32, "10", "Batches to send a second."),
        acts("audit-webhook-config-file", Kind::Text, "", "Kubeconfig of the server that events are sent to."),
        acts(
            "audit-webhook-initial-backoff",
            Kind::Duration,
            "10s",
            "How long to wait before a failed list is sent again.",
        ),
        acts("audit-webhook-mode", Kind::Text, "batch", "Whether requests wait for their events to be sent."),
        acts(
            "audit-webhook-truncate-enabled",
            Kind::Bool,
            "",
            "Record events that are too large without their objects.",
        ),
        acts("audit-webhook-truncate-max-batch-size", Kind::Int, "10485760", "Largest batch of events, in bytes."),
        acts("audit-webhook-truncate-max-event-size", Kind::Int, "102400", "Largest event, in bytes."),
        acts("audit-webhook-version", Kind::Text, "audit.k8s.io/v1", "API version of events that are sent."),
    ],
};

/// Features.
pub(super) const FEATURES: Section = Section {
    title: "Features",
    flags: &[
        accepted("contention-profiling", Kind::Bool, "", "Profile waiting for locks; there are no profiles."),
        accepted(
            "debug-socket-path",
            Kind::Text,
            "",
            "Socket for profiles without authentication; there are no profiles.",
        ),
        acts(
            "enable-priority-and-fairness",
            Kind::Bool,
            "true",
            "Queue requests by priority; without it requests are only counted.",
        ),
        accepted("profiling", Kind::Bool, "true", "Serve profiles at /debug/pprof; there are none."),
    ],
};
