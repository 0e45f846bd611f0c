//! Flags about authentication and authorization.

use super::{Kind, Section, accepted, acts};

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
            "How long the webhook's answers about tokens are kept.",
        ),
        acts(
            "authentication-token-webhook-config-file",
            Kind::Text,
            "",
            "Kubeconfig of the webhook that finds the users of tokens.",
        ),
        acts(
            "authentication-token-webhook-version",
            Kind::Text,
            "v1beta1",
            "API version of the reviews that this webhook gets.",
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
        acts("oidc-groups-prefix", Kind::Text, "", "Prefix of the names of groups."),
        acts("oidc-issuer-url", Kind::Text, "", "Issuer of tokens of OpenID Connect."),
        acts("oidc-required-claim", Kind::Pairs, "", "Claims that a token must have."),
        acts("oidc-signing-algs", Kind::Strings, "RS256", "Algorithms by which tokens may be signed."),
        acts("oidc-username-claim", Kind::Text, "sub", "Claim that holds the user's name."),
        acts("oidc-username-prefix", Kind::Text, "", "Prefix of the names of users."),
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
            "File with the authorities of the certificates of proxies, which state the user in headers.",
        ),
        acts(
            "requestheader-extra-headers-prefix",
            Kind::Strings,
            "",
            "Prefixes of the headers that state extra attributes of the user.",
        ),
        acts("requestheader-group-headers", Kind::Strings, "", "Headers that state the user's groups."),
        acts("requestheader-uid-headers", Kind::Strings, "", "Headers that state the user's UID."),
        acts("requestheader-username-headers", Kind::Strings, "", "Headers that state the user's name."),
        acts(
            "service-account-extend-token-expiration",
            Kind::Bool,
            "true",
            "Let the tokens of pods be valid for longer than kubelets request.",
        ),
        acts(
            "service-account-issuer",
            Kind::Texts,
            "",
            "Issuer that tokens name; the first one issues, all are accepted.",
        ),
        acts("service-account-jwks-uri", Kind::Text, "", "URL of the keys that the discovery document states."),
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
            "Check that the service account of a token exists; the server always does.",
        ),
        acts("service-account-max-token-expiration", Kind::Duration, "", "Longest validity of a requested token."),
        acts("token-auth-file", Kind::Text, "", "File with tokens and their users."),
    ],
};

/// Authorization.
pub(super) const AUTHORIZATION: Section = Section {
    title: "Authorization",
    flags: &[
        acts("authorization-config", Kind::Text, "", "File that names the authorizers."),
        acts(
            "authorization-mode",
            Kind::Strings,
            "",
            "Authorizers, in order: ABAC, AlwaysAllow, AlwaysDeny, Node, RBAC, Webhook.",
        ),
        acts("authorization-policy-file", Kind::Text, "", "File with the policies of the mode ABAC, one on each line."),
        acts(
            "authorization-webhook-cache-authorized-ttl",
            Kind::Duration,
            "5m0s",
            "How long the webhook's answers that allow a request are kept.",
        ),
        acts(
            "authorization-webhook-cache-unauthorized-ttl",
            Kind::Duration,
            "30s",
            "How long the webhook's other answers are kept.",
        ),
        acts(
            "authorization-webhook-config-file",
            Kind::Text,
            "",
            "Kubeconfig of the webhook that decides in the mode Webhook.",
        ),
        acts(
            "authorization-webhook-version",
            Kind::Text,
            "v1beta1",
            "API version of the reviews that this webhook gets.",
        ),
    ],
};
