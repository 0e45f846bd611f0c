//! Conversion of custom resources by webhooks (ConversionReview).
//!
//! Objects are converted ahead, by whoever can wait: [`Registry::convert_ahead`] asks the webhook about those whose
//! conversion is not known, and what comes of it is kept by the object's content. Showing and storing objects then
//! finds it there. Whoever asks for what somebody else has asked for already waits for the same answer.

pub mod kept;

use flotilla_proto::value::Value;

use super::Hook;

/// The webhook of a definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conversion {
    /// Where it is.
    pub hook: Hook,
    /// Version of the reviews that it is sent; `None` when it knows none of ours.
    pub review: Option<&'static str>,
}

impl Conversion {
    /// The webhook that a definition names, if it converts by one.
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
