//! Flags about APIs, admission, metrics, logs and traces.

use super::{Flag, Kind, Section, accepted, acts, logged, refused};

/// API enablement.
pub(super) const API_ENABLEMENT: Section = Section {
    title: "API enablement",
    flags: &[acts(
        "runtime-config",
        Kind::Settings,
        "",
        "APIs to switch on or off: GROUP/VERSION, GROUP/VERSION/RESOURCE, api/all, api/ga, api/beta, api/alpha.",
    )],
};

/// Egress selector.
pub(super) const EGRESS_SELECTOR: Section = Section {
    title: "Egress selector",
    flags: &[acts(
        "egress-selector-config-file",
        Kind::Text,
        "",
        "File that names the proxies to nodes and other servers.",
    )],
};

/// Admission.
pub(super) const ADMISSION: Section = Section {
    title: "Admission",
    flags: &[
        refused(
            "admission-control",
            Kind::Strings,
            "",
            "Admission plugins in order, in place of the default ones.",
            "the order of plugins cannot be chosen: use --enable-admission-plugins and --disable-admission-plugins",
        ),
        acts("admission-control-config-file", Kind::Text, "", "File with the configuration of admission plugins."),
        acts(
            "default-not-ready-toleration-seconds",
            Kind::Int,
            "300",
            "Seconds that pods stay on nodes that are not ready.",
        ),
        acts(
            "default-unreachable-toleration-seconds",
            Kind::Int,
            "300",
            "Seconds that pods stay on nodes that are not reachable.",
        ),
        acts("disable-admission-plugins", Kind::Strings, "", "Admission plugins to turn off that are on by default."),
        acts(
            "enable-admission-plugins",
            Kind::Strings,
            "",
            "Admission plugins to use besides those that are on by default.",
        ),
    ],
};

/// Metrics.
pub(super) const METRICS: Section = Section {
    title: "Metrics",
    flags: &[
        accepted("allow-metric-labels", Kind::Labels, "", "Values that labels of metrics may have."),
        accepted("allow-metric-labels-manifest", Kind::Text, "", "File with the values of --allow-metric-labels."),
        accepted("disabled-metrics", Kind::Strings, "", "Metrics not to show."),
        accepted("show-hidden-metrics-for-version", Kind::Text, "", "Show metrics that were hidden since a version."),
    ],
};

/// Logs.
pub(super) const LOGS: Section = Section {
    title: "Logs",
    flags: &[
        accepted(
            "log-flush-frequency",
            Kind::Duration,
            "5s",
            "How often the log is written out; here it is never held back.",
        ),
        accepted("log-json-info-buffer-size", Kind::Quantity, "", "Bytes of the log to hold back."),
        accepted("log-json-split-stream", Kind::Bool, "", "Write errors and the rest of the log to two streams."),
        accepted("log-text-info-buffer-size", Kind::Quantity, "", "Bytes of the log to hold back."),
        accepted("log-text-split-stream", Kind::Bool, "", "Write errors and the rest of the log to two streams."),
        acts("logging-format", Kind::Text, "text", "Form of the log: text or json."),
        Flag { short: Some('v'), ..acts("v", Kind::Level, "", "Level of the log: debug from 4 on, trace from 6 on.") },
        accepted("vmodule", Kind::Patterns, "", "Level of the log for certain files of Go."),
    ],
};

/// Traces.
pub(super) const TRACES: Section = Section {
    title: "Traces",
    flags: &[logged("tracing-config-file", Kind::Text, "", "File that says where traces go.", "no traces are made")],
};
