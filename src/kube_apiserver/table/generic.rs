//! General flags.

use super::{Kind, Section, accepted, acts, logged};

/// Generic.
pub(super) const GENERIC: Section = Section {
    title: "Generic",
    flags: &[
        acts(
            "advertise-address",
            Kind::Ip,
            "",
            "Address under which others reach this server; it also stands in the endpoints of the Service kubernetes.",
        ),
        acts("cors-allowed-origins", Kind::Strings, "", "Origins of browser scripts that may call the API."),
        logged(
            "emulated-version",
            Kind::Strings,
            "",
            "Versions of components to behave as.",
            "this server behaves as Kubernetes 1.36",
        ),
        accepted(
            "emulation-forward-compatible",
            Kind::Bool,
            "",
            "Serve later versions of APIs than the emulated version had.",
        ),
        acts(
            "external-hostname",
            Kind::Text,
            "",
            "Host name under which clients outside reach this server; it stands in its own certificate.",
        ),
        acts(
            "feature-gates",
            Kind::Gates,
            "",
            "Features to switch on or off. All keep the defaults of Kubernetes 1.36; the log names those set otherwise.",
        ),
        acts(
            "goaway-chance",
            Kind::Float,
            "",
            "Part of the requests after which HTTP/2 clients are asked to connect anew.",
        ),
        accepted(
            "livez-grace-period",
            Kind::Duration,
            "",
            "How long a server that starts counts as alive although it is not ready.",
        ),
        acts("max-mutating-requests-inflight", Kind::Int, "200", "Largest number of writing requests in progress."),
        acts("max-requests-inflight", Kind::Int, "400", "Largest number of reading requests in progress."),
        accepted(
            "min-compatibility-version",
            Kind::Strings,
            "",
            "Oldest versions of components to stay compatible with.",
        ),
        acts("min-request-timeout", Kind::Int, "1800", "Seconds that a watch lasts at least."),
        acts("request-timeout", Kind::Duration, "1m0s", "How long a request may take."),
        accepted(
            "runtime-config-emulation-forward-compatible",
            Kind::Bool,
            "",
            "Accept versions in --runtime-config that the emulated version did not have.",
        ),
        acts(
            "shutdown-delay-duration",
            Kind::Duration,
            "",
            "How long a stopping server goes on serving while /readyz fails.",
        ),
        accepted("shutdown-send-retry-after", Kind::Bool, "", "Tell clients of a stopping server to try again."),
        accepted(
            "shutdown-watch-termination-grace-period",
            Kind::Duration,
            "",
            "How long a stopping server gives watches to end; here they end at once.",
        ),
        accepted(
            "storage-initialization-timeout",
            Kind::Duration,
            "1m0s",
            "How long to wait for the storage at the start.",
        ),
        acts(
            "strict-transport-security-directives",
            Kind::Strings,
            "",
            "What the header Strict-Transport-Security tells browsers.",
        ),
    ],
};
