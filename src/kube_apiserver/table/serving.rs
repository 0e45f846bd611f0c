//! Flags about listening and TLS.

use super::{Kind, Section, accepted, acts, logged};

/// Secure serving.
pub(super) const SECURE_SERVING: Section = Section {
    title: "Secure serving",
    flags: &[
        acts("bind-address", Kind::Ip, "0.0.0.0", "Address to listen on."),
        acts(
            "cert-dir",
            Kind::Text,
            "/var/run/kubernetes",
            "Directory of apiserver.crt and apiserver.key, for servers without --tls-cert-file; made if missing.",
        ),
        acts("disable-http2-serving", Kind::Bool, "", "Serve HTTP/1.1 only."),
        accepted(
            "http2-max-streams-per-connection",
            Kind::Int,
            "",
            "Streams that a client may have open on a connection of HTTP/2.",
        ),
        accepted(
            "permit-address-sharing",
            Kind::Bool,
            "",
            "Listen although connections still use the address; the server always does.",
        ),
        logged(
            "permit-port-sharing",
            Kind::Bool,
            "",
            "Listen on a port that another process listens on.",
            "the port is not shared",
        ),
        acts("secure-port", Kind::Int, "6443", "Port to serve on, with TLS."),
        acts(
            "tls-cert-file",
            Kind::Text,
            "",
            "File with the certificate to serve with, followed by its intermediates.",
        ),
        acts("tls-cipher-suites", Kind::Strings, "", "Cipher suites of TLS 1.2 to offer."),
        acts("tls-curve-preferences", Kind::Integers, "", "Curves for the exchange of keys, by their numbers."),
        acts(
            "tls-min-version",
            Kind::Text,
            "",
            "Oldest version of TLS to accept; older ones than 1.2 are never accepted.",
        ),
        acts("tls-private-key-file", Kind::Text, "", "File with the key of --tls-cert-file."),
        acts("tls-sni-cert-key", Kind::NamedKeys, "", "Certificates for certain host names."),
    ],
};
