//! What a configuration says of a webhook.

use std::time::Duration;

use flotilla_proto::value::Value;

use crate::webhooks::Hook;

/// Seconds that a webhook has where nothing is said.
const TIMEOUT_SECONDS: i64 = 10;

/// A webhook that is asked about writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Webhook {
    /// Its name.
    pub name: String,
    /// Name of the configuration that it stands in.
    pub configuration: String,
    /// Whether it may change objects.
    pub mutating: bool,
    /// Whether a write goes on when it cannot be asked.
    pub ignores_failure: bool,
    /// Whether it is asked again when others changed the object after it.
    pub is_reinvoked: bool,
    /// Whether asking it has no effect on anything, at least in a dry run.
    pub takes_dry_run: bool,
    /// How long it has.
    pub timeout: Duration,
    /// Version of the reviews that it is sent; `None` when it knows none of ours.
    pub review: Option<&'static str>,
    /// Where it is.
    pub hook: Hook,
}

impl Webhook {
    /// Reads one of a configuration's webhooks, which have their defaults.
    pub fn of(configuration: &str, mutating: bool, webhook: &Value) -> Self {
        let versions = webhook.list_at(&["admissionReviewVersions"]).iter().filter_map(Value::as_str);
        let review =
            versions.filter_map(|version| ["v1", "v1beta1"].into_iter().find(|known| *known == version)).next();
        let seconds = webhook.int_at(&["timeoutSeconds"]).unwrap_or(TIMEOUT_SECONDS);
        Self {
            name: webhook.str_at(&["name"]).to_owned(),
            configuration: configuration.to_owned(),
            mutating,
            ignores_failure: webhook.str_at(&["failurePolicy"]) == "Ignore",
            is_reinvoked: webhook.str_at(&["reinvocationPolicy"]) == "IfNeeded",
            takes_dry_run: matches!(webhook.str_at(&["sideEffects"]), "None" | "NoneOnDryRun"),
            timeout: Duration::from_secs(seconds.unsigned_abs()),
            review,
            hook: Hook::of(webhook.at(&["clientConfig"])),
        }
    }

    /// What metrics call the kind of webhook.
    pub const fn phase(&self) -> &'static str {
        if self.mutating { "admit" } else { "validating" }
    }
}
