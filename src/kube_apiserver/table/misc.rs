//! All other flags of kube-apiserver.

use super::{Flag, Kind, Section, accepted, acts, logged, refused};

/// Misc.
pub(super) const MISC: Section = Section {
    title: "Misc",
    flags: &[
        accepted(
            "aggregator-reject-forwarding-redirect",
            Kind::Bool,
            "true",
            "Do not pass on redirects of aggregated servers.",
        ),
        acts("allow-privileged", Kind::Bool, "", "Allow privileged containers, and processes of the host."),
        accepted(
            "coordinated-leadership-lease-duration",
            Kind::Duration,
            "15s",
            "How long leases of coordinated leader election last.",
        ),
        accepted("coordinated-leadership-renew-deadline", Kind::Duration, "10s", "When they have to be renewed."),
        accepted("coordinated-leadership-retry-period", Kind::Duration, "2s", "How often that is tried."),
        acts(
            "enable-aggregator-routing",
            Kind::Bool,
            "",
            "Reach Services at their endpoints rather than at their cluster address.",
        ),
        accepted("enable-logs-handler", Kind::Bool, "", "Serve files of logs at /logs; there are none."),
        acts(
            "endpoint-reconciler-type",
            Kind::Text,
            "lease",
            "Whether this server keeps the endpoints of the Service kubernetes: lease or master-count, or none.",
        ),
        acts("event-ttl", Kind::Duration, "1h0m0s", "How long events are kept."),
        acts("kubelet-certificate-authority", Kind::Text, "", "File with authorities of kubelets' certificates."),
        acts("kubelet-client-certificate", Kind::Text, "", "File with the certificate to show to kubelets."),
        acts("kubelet-client-key", Kind::Text, "", "File with its key."),
        acts(
            "kubelet-preferred-address-types",
            Kind::Strings,
            "Hostname,InternalDNS,InternalIP,ExternalDNS,ExternalIP",
            "Which addresses of nodes to use, in order.",
        ),
        accepted("kubelet-timeout", Kind::Duration, "5s", "How long kubelets may take to answer."),
        logged(
            "kubernetes-service-node-port",
            Kind::Int,
            "",
            "Node port of the Service kubernetes.",
            "the Service has none",
        ),
        logged(
            "max-connection-bytes-per-sec",
            Kind::Int,
            "",
            "Bytes a second of a long connection.",
            "connections are not slowed down",
        ),
        accepted("peer-advertise-ip", Kind::Text, "", "Address under which other API servers reach this one."),
        accepted("peer-advertise-port", Kind::Text, "", "Port under which other API servers reach this one."),
        accepted("peer-ca-file", Kind::Text, "", "Authorities of the certificates of other API servers."),
        acts("proxy-client-cert-file", Kind::Text, "", "File with the certificate to show to aggregated servers."),
        acts("proxy-client-key-file", Kind::Text, "", "File with its key."),
        refused(
            "service-account-signing-endpoint",
            Kind::Text,
            "",
            "Socket of a signer of tokens.",
            "tokens would be signed by another key: no signer is asked",
        ),
        acts("service-account-signing-key-file", Kind::Text, "", "File with the key that signs tokens."),
        acts(
            "service-cluster-ip-range",
            Kind::Text,
            "",
            "Addresses of which Services get theirs: a range, or one of each family.",
        ),
        acts("service-node-port-range", Kind::PortRange, "30000-32767", "Ports of which Services get node ports."),
    ],
};

/// Global.
pub(super) const GLOBAL: Section = Section {
    title: "Global",
    flags: &[
        Flag { short: Some('h'), ..acts("help", Kind::Bool, "", "Show this help.") },
        acts(
            "version",
            Kind::Version,
            "",
            "Show the version; as raw, all about it. As v1.36.3-..., the version that /version states.",
        ),
    ],
};
