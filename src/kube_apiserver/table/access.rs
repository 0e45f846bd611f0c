//! Flags about authentication and authorization.

use super::{Kind, Section, accepted, acts, refused};

/// Authentication.
pub(super) const AUTHENTICATION: Section = Section {
    title: "Authentication",
    flags: &[
        acts(
            "anonymous-auth",
            Kind::Bool,
            "true",
            "Answer requests without credentials, as the user system:anonymous.",
        ),
        acts("api-audiences", Kind::Strings, "", "Audiences that tokens must be meant for."),
        acts("authentication-config", Kind::Text, "", "File that says how users authenticate."),
        acts(
            "authentication-token-webhook-cache-ttl",
            Kind::Duration,
            "2m0s",
            "How long answers about tokens are kept.",
        ),
        acts(
            "authentication-token-webhook-config-file",
            Kind::Text,
            "",
            "Kubeconfig of the server that is asked about tokens.",
        ),
        acts(
            "authentication-token-webhook-version",
            Kind::Text,
            "v1beta1",
            "API version of the questions about tokens.",
        ),
        acts("client-ca-file", Kind::Text, "", "File with authorities of client certificates."),
        acts(
            "enable-bootstrap-token-auth",
            Kind::Bool,
            "",
            "Accept tokens of Secrets of the type bootstrap.kubernetes.io/token in kube-system.",
        ),
        acts("oidc-ca-file", Kind::Text, "", "Authorities of the certificate of the OpenID issuer."),
        acts("oidc-client-id", Kind::Text, "", "Client that tokens of OpenID Connect must be meant for."),
        acts("oidc-groups-claim", Kind::Text, "", "Claim that holds the groups."),
        acts("oidc-groups-prefix", Kind::Text, "", "Put before the names of groups."),
        acts("oidc-issuer-url", Kind::Text, "", "Issuer of tokens of OpenID Connect."),
        acts("oidc-required-claim", Kind::Pairs, "", "Claims that a token must have."),
        acts("oidc-signing-algs", Kind::Strings, "RS256", "Algorithms by which tokens may be signed."),
        acts("oidc-username-claim", Kind::Text, "sub", "Claim that holds the user's name."),
        acts("oidc-username-prefix", Kind::Text, "", "Put before the names of users."),
        acts(
            "requestheader-allowed-names",
            Kind::Strings,
            "",
            "Common names of the certificates of proxies; all when empty.",
        ),
        acts(
            "requestheader-client-ca-file",
            Kind::Text,
            "",
            "File with authorities of the certificates of proxies, which tell in headers who asks.",
        ),
        acts(
            "requestheader-extra-headers-prefix",
            Kind::Strings,
            "",
            "What headers begin with that tell further facts of the user.",
        ),
        acts("requestheader-group-headers", Kind::Strings, "", "Headers that tell the user's groups."),
        acts("requestheader-uid-headers", Kind::Strings, "", "Headers that tell the user's UID."),
        acts("requestheader-username-headers", Kind::Strings, "", "Headers that tell the user's name."),
        acts(
            "service-account-extend-token-expiration",
            Kind::Bool,
            "true",
            "Let mounted tokens last longer than they say.",
        ),
        acts(
            "service-account-issuer",
            Kind::Texts,
            "",
            "Issuer that tokens name; the first one issues, all are accepted.",
        ),
        acts("service-account-jwks-uri", Kind::Text, "", "Where the document of discovery says that the keys are."),
        acts(
            "service-account-key-file",
            Kind::Texts,
            "",
            "File with keys or certificates that tokens may be signed with.",
        ),
        accepted(
            "service-account-lookup",
            Kind::Bool,
            "true",
            "Look whether accounts of tokens exist; this is always done.",
        ),
        acts("service-account-max-token-expiration", Kind::Duration, "", "How long tokens last at most."),
        acts("token-auth-file", Kind::Text, "", "File with tokens and their users."),
    ],
};

/// Authorization.
pub(super) const AUTHORIZATION: Section = Section {
    title: "Authorization",
    flags: &[
        acts("authorization-config", Kind::Text, "", "File that says who decides what users may do."),
        acts(
            "authorization-mode",
            Kind::Strings,
            "",
            "Who decides what users may do, in order: AlwaysAllow, AlwaysDeny, Node, RBAC, Webhook.",
        ),
        refused(
            "authorization-policy-file",
            Kind::Text,
            "",
            "File with rules for the mode ABAC.",
            "its rules would not hold: the mode ABAC is not there",
        ),
        acts(
            "authorization-webhook-cache-authorized-ttl",
            Kind::Duration,
            "5m0s",
            "How long it is remembered that something is allowed.",
        ),
        acts(
            "authorization-webhook-cache-unauthorized-ttl",
            Kind::Duration,
            "30s",
            "How long it is remembered that something is not allowed.",
        ),
        acts(
            "authorization-webhook-config-file",
            Kind::Text,
            "",
            "Kubeconfig of the server that decides for the mode Webhook.",
        ),
        acts("authorization-webhook-version", Kind::Text, "v1beta1", "API version of the questions to that server."),
    ],
};
