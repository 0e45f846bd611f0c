//! Conversion of custom resources by webhooks (ConversionReview).
//!
//! Objects are converted before they are needed: `Tables::convert_ahead` asks the webhook for conversions that are
//! not known, and keeps the results by the content of the objects. Showing and storing objects then needs no waiting.
//! Requests that need the same conversion at the same time share one call.

pub mod cache;

use flotilla_proto::value::Value;

use super::Hook;

/// The conversion webhook of a definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conversion {
    /// The address and trust of the webhook.
    pub hook: Hook,
    /// The version of ConversionReview to send. `None` if the webhook accepts no version that this server supports.
    pub review: Option<&'static str>,
}

impl Conversion {
    /// Returns the conversion webhook of a definition. Returns `None` if the definition has another strategy.
    pub fn of(spec: &Value) -> Option<Self> {
        if spec.str_at(&["conversion", "strategy"]) != "Webhook" {
            return None;
        }
        let webhook = spec.at(&["conversion", "webhook"]);
        let versions = webhook.list_at(&["conversionReviewVersions"]).iter().filter_map(Value::as_str);
        let review =
            versions.filter_map(|version| ["v1", "v1beta1"].into_iter().find(|known| *known == version)).next();
        Some(Self { hook: Hook::of(webhook.at(&["clientConfig"])), review })
    }
}
