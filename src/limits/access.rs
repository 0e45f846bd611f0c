//! The limits of access: of authentication and of authorization.

use std::time::Duration;

/// Certificates in a client's chain; longer chains do not authenticate.
pub const CLIENT_CHAIN_CERTIFICATES: usize = 8;

/// Bytes of a bearer token; longer ones do not authenticate.
pub const TOKEN_BYTES: usize = 65_536;

/// Verified tokens that are cached.
pub const TOKEN_CACHE_ENTRIES: usize = 16_384;

/// Answers of a webhook about tokens that are kept.
pub const TOKEN_ANSWERS: usize = 16_384;

/// Time between two checks whether the files that configure authentication and authorization have changed.
pub const CONFIGURATION_CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// Kept answers of a webhook about the permissions of users.
pub const ACCESS_ANSWERS: usize = 8_192;

/// Questions that webhooks are asked about one request.
pub const QUESTIONS: usize = 256;

/// Different tokens about which a webhook is asked at once.
pub const TOKENS_ASKED_AT_ONCE: usize = 1_024;

/// Bytes of an answer of a webhook about a token or a request.
pub const REVIEW_ANSWER_BYTES: usize = 1 << 20;

/// About how many bytes a kept answer may have. The webhook is asked again for larger ones.
pub const REVIEW_KEPT_BYTES: usize = 8_192;

/// How long an OpenID issuer has to answer one request.
pub const OPENID_TIMEOUT: Duration = Duration::from_secs(10);

/// Longest answer of an OpenID issuer, in bytes.
pub const OPENID_ANSWER_BYTES: usize = 1 << 20;

/// Shortest time between two fetches of the keys of an OpenID issuer, so that tokens with false signatures cause few
/// fetches.
pub const OPENID_FETCH_INTERVAL: Duration = Duration::from_secs(1);

/// Uses of tokens in Secrets that wait until they are recorded there.
pub const LEGACY_TOKEN_USES: usize = 16_384;

/// Bytes of a file with certificates, keys or tokens.
pub const CREDENTIAL_FILE_BYTES: u64 = 4 * 1_048_576;

/// How long a write of a role or a binding waits until the authorizer knows all earlier ones.
pub const GRANTS_WAIT: Duration = Duration::from_secs(5);

/// Users whose mode of impersonation is cached.
pub const IMPERSONATORS: usize = 10_000;

/// Largest number of OpenID issuers.
pub const OPENID_ISSUERS_MAX: usize = 64;

/// The shortest pause before a new OpenID issuer is asked for its keys again.
pub const OPENID_NEW_ISSUER_PAUSE: Duration = Duration::from_secs(1);

/// How long the keys of an OpenID issuer are used before they are fetched again.
pub const OPENID_KEYS_LIFETIME: Duration = Duration::from_secs(3_600);

/// Pause before those keys are fetched again if the issuer has not answered yet.
pub const OPENID_RETRY_INTERVAL: Duration = Duration::from_secs(10);

/// How far the clock of an OpenID issuer may be ahead: a token is accepted this long before its `nbf`.
pub const OPENID_CLOCK_LEEWAY: Duration = Duration::from_secs(300);

/// Longest timeout of a call of an authorization webhook, and the timeout of the webhook that flags configure.
pub const AUTHORIZER_TIMEOUT_MAX: Duration = Duration::from_secs(30);

/// Largest number of match conditions of an authorization webhook.
pub const AUTHORIZER_CONDITIONS_MAX: usize = 64;

/// An answer of a webhook is not kept if the texts in the question that the user chose have this many bytes or more.
pub const QUESTION_KEPT_BYTES: usize = 10_000;

/// The wait before a failed call of a webhook about a token or a request is repeated for the first time.
pub const REVIEW_RETRY_PAUSE: Duration = Duration::from_millis(500);

/// The timeout of a call of a webhook about a token or a request, unless it is configured.
pub const REVIEW_TIMEOUT: Duration = Duration::from_secs(30);

/// The shortest time for which a webhook's answer about a token is kept, as in the reference.
pub const TOKEN_ANSWER_LIFETIME_MIN: Duration = Duration::from_secs(10);

/// Longest part of a group's name after `system:bootstrappers:`, in bytes.
pub const BOOTSTRAP_GROUP_BYTES: usize = 256;

/// How far the clocks of servers that sign and verify tokens may differ. This is also how long a token stays valid
/// after the deletion of an object that it is bound to was requested.
pub const TOKEN_CLOCK_LEEWAY: Duration = Duration::from_secs(60);

/// Validity of a token in seconds, if the request states none.
pub const TOKEN_DEFAULT_SECONDS: i64 = 3_600;

/// The shortest validity of a token that may be requested, in seconds.
pub const TOKEN_MIN_SECONDS: i64 = 600;

/// The longest validity of a token that may be requested, in seconds.
pub const TOKEN_MAX_SECONDS: i64 = 1 << 32;

/// The validity that kubelets request for the tokens of pods, in seconds. These tokens are valid for a year, for
/// programs that read their token only once, and contain the time at which they should be replaced (KEP-1205).
pub const TOKEN_KUBELET_SECONDS: i64 = 3_607;

/// Validity, in seconds, of the tokens that kubelets request for pods.
pub const TOKEN_EXTENDED_SECONDS: i64 = 365 * 86_400;
