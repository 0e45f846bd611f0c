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
        accepted(
            "coordinated-leadership-renew-deadline",
            Kind::Duration,
            "10s",
            "How long a leader may try to renew such a lease.",
        ),
        accepted("coordinated-leadership-retry-period", Kind::Duration, "2s", "How often renewal is tried."),
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
            "Whether this server keeps the endpoints of the Service kubernetes: yes with lease or master-count, no with none.",
        ),
        acts("event-ttl", Kind::Duration, "1h0m0s", "How long events are kept."),
        acts("kubelet-certificate-authority", Kind::Text, "", "File with authorities of kubelets' certificates."),
        acts("kubelet-client-certificate", Kind::Text, "", "File with the certificate to show to kubelets."),
        acts("kubelet-client-key", Kind::Text, "", "File with the key of --kubelet-client-certificate."),
        acts(
            "kubelet-preferred-address-types",
            Kind::Strings,
            "Hostname,InternalDNS,InternalIP,ExternalDNS,ExternalIP",
            "Types of node addresses to use, in order.",
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
        acts("proxy-client-key-file", Kind::Text, "", "File with the key of --proxy-client-cert-file."),
        refused(
            "service-account-signing-endpoint",
            Kind::Text,
            "",
            "Socket of a signer of tokens.",
            "external signers are not supported, and another key would sign the tokens",
        ),
        acts("service-account-signing-key-file", Kind::Text, "", "File with the key that signs tokens."),
        acts(
            "service-cluster-ip-range",
            Kind::Text,
            "",
            "Range of the cluster IPs of Services: one, or one of each IP family.",
        ),
        acts("service-node-port-range", Kind::PortRange, "30000-32767", "Range of the node ports of Services."),
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
            "Show the version, with =raw in full; with =v1.36.3-..., set the version that /version states.",
        ),
    ],
};
