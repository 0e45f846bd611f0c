//! The configuration of one webhook.

use std::time::Duration;

use flotilla_proto::value::Value;

use crate::limits;
use crate::webhooks::Hook;

/// An admission webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Webhook {
    /// Its name.
    pub name: String,
    /// Name of its configuration.
    pub configuration: String,
    /// Whether it may change objects.
    pub mutating: bool,
    /// Whether a write goes on when the call fails.
    pub ignores_failure: bool,
    /// Whether it is called again if the object changes afterwards.
    pub is_reinvoked: bool,
    /// Whether it has no side effects, at least in a dry run.
    pub takes_dry_run: bool,
    /// Timeout of a call.
    pub timeout: Duration,
    /// Version of the reviews that it receives. `None` if this server supports none of the versions that it accepts.
    pub review: Option<&'static str>,
    /// Its address.
    pub hook: Hook,
}

impl Webhook {
    /// Reads one webhook of a configuration, which already has its defaults.
    pub fn of(configuration: &str, mutating: bool, webhook: &Value) -> Self {
        let versions = webhook.list_at(&["admissionReviewVersions"]).iter().filter_map(Value::as_str);
        let review =
            versions.filter_map(|version| ["v1", "v1beta1"].into_iter().find(|known| *known == version)).next();
        let seconds = webhook.int_at(&["timeoutSeconds"]).unwrap_or(limits::ADMISSION_TIMEOUT_SECONDS);
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

    /// Returns the label that metrics use for the kind of webhook.
    pub const fn phase(&self) -> &'static str {
        if self.mutating { "admit" } else { "validating" }
    }
}
