//! The limits of admission.

use std::time::Duration;

/// Bytes of the answer of an admission webhook.
pub const ADMISSION_ANSWER_BYTES: usize = 16 << 20;

/// Validating webhooks that are called concurrently for one write.
pub const WEBHOOKS_AT_ONCE: usize = 64;

/// How often a webhook that tells the client to try later is called again, within its timeout. As many times as clients
/// of Kubernetes retry.
pub const WEBHOOK_RETRIES: usize = 10;

/// Pods of a namespace that are checked when its pod security standard becomes stricter, as in the reference. If there
/// are more, a warning tells the client.
pub const NAMESPACE_PODS_CHECKED: usize = 3_000;

/// How long that check may take.
pub const NAMESPACE_PODS_CHECK: Duration = Duration::from_secs(1);

/// Cost of all expressions of a plugin for one write, in units of CEL: ten times the cost that the expressions of one
/// policy may have with one parameter. The reference bounds only the latter.
pub const WRITE_COST: u64 = 100_000_000;

/// Parameters that one binding may select for a write; with more, the policy cannot be evaluated.
pub const POLICY_PARAMETERS: usize = 10_000;

/// Decisions of the authorizer about one write that are cached.
pub const DECISIONS_KEPT: usize = 1_000;

/// Bytes of the warnings and audit annotations that policies and webhooks may add to one write.
pub const NOTICES_BYTES: usize = 1 << 20;

/// Bytes of an answer of the webhook for images.
pub const IMAGE_ANSWER_BYTES: usize = 1 << 20;

/// Answers of the webhook for images that are kept.
pub const IMAGE_ANSWERS: usize = 1_024;

/// Bytes of the reason and of the audit annotations in an answer that is kept.
pub const IMAGE_REASON_BYTES: usize = 4_096;

/// Combinations of labels in the metrics of policies and webhooks; further ones are counted under the name `others`.
pub const ADMISSION_SERIES: usize = 10_000;

/// Kinds of a rule of a policy that are checked.
pub const POLICY_KINDS_CHECKED: usize = 10;

/// Combinations of the names of a rule of a policy that are tried.
pub const POLICY_NAMES_TRIED: usize = 10_000;

/// Bytes that are kept of the value of an audit annotation that a policy makes.
pub const POLICY_ANNOTATION_BYTES: usize = 10 << 10;

/// The longest message that an expression of a policy may make, in bytes.
pub const POLICY_MESSAGE_BYTES: usize = 5 << 10;

/// The greatest cost of one evaluation of an expression of a policy, in units of CEL, checked after each step.
pub const POLICY_CALL_COST: u64 = 2_000_000;

/// How long a call of the webhook for images may take.
pub const IMAGE_TIMEOUT: Duration = Duration::from_secs(30);

/// The timeout of an admission webhook without `timeoutSeconds`, in seconds.
pub const ADMISSION_TIMEOUT_SECONDS: i64 = 10;

/// Keys that a limit of the rate of events remembers unless the configuration says otherwise.
pub const EVENT_RATE_KEYS: usize = 4096;
