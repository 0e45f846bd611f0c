//! The webhook that decides which images pods may have, and its last answers (`imagePolicy` of the configuration of
//! ImagePolicyWebhook).

use std::path::Path as FilePath;
use std::time::{Duration, Instant};

use flotilla_proto::duration;
use flotilla_proto::json;
use flotilla_proto::value;
use flotilla_proto::value::{Map, Value};

use crate::field::{Errors, Path};
use crate::limits;
use crate::outbound::Outbound;
use crate::pki::KubeconfigError;
use crate::webhooks::answers::{self, Answers};
use crate::webhooks::{Backend, CallError, Persistence, typed};

const API_VERSION: &str = "imagepolicy.k8s.io/v1alpha1";

/// A span of time that the configuration states as a number: its name, unit, bounds and default.
struct Span {
    field: &'static str,
    unit: i64,
    max: i64,
    default: Duration,
    min: i64,
}

const SECOND: i64 = 1_000_000_000;
const ALLOW: Span =
    Span { field: "allowTTL", unit: SECOND, min: SECOND, max: 1_800 * SECOND, default: Duration::from_secs(300) };
const DENY: Span =
    Span { field: "denyTTL", unit: SECOND, min: SECOND, max: 1_800 * SECOND, default: Duration::from_secs(30) };
const BACKOFF: Span =
    Span { field: "retryBackoff", unit: 1_000_000, min: 1, max: 300 * SECOND, default: Duration::from_millis(500) };

/// The settings of the webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The kubeconfig that names it.
    pub kubeconfig: String,
    allow_ttl: Duration,
    deny_ttl: Duration,
    backoff: Duration,
    default_allow: bool,
}

/// The webhook, and its last answers.
#[derive(Debug)]
pub struct ImagePolicy {
    settings: Settings,
    backend: Backend,
    answers: Answers<ImageDecision>,
}

/// The decision of the webhook about the images of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageDecision {
    /// Whether the pod may have them.
    pub allowed: bool,
    /// The reason of a refusal; may be empty.
    pub reason: String,
    /// Audit annotations: keys, to which [`AUDIT_PREFIX`] is added, and values.
    pub annotations: Vec<(String, String)>,
}

/// The beginning of the keys of audit annotations.
pub const AUDIT_PREFIX: &str = "imagepolicywebhook.image-policy.k8s.io/";

impl Settings {
    /// Reads the settings; adds an error for each that is wrong.
    pub fn read(document: &Value, errors: &mut Errors) -> Self {
        let (root, of) = (Path::root("imagePolicy"), document.at(&["imagePolicy"]));
        let kubeconfig = of.str_at(&["kubeConfigFile"]);
        if kubeconfig.is_empty() {
            errors.required(&root.child("kubeConfigFile"), "");
        }
        let allows = of.at(&["defaultAllow"]);
        if !allows.is_null() && allows.as_bool().is_none() {
            errors.invalid(&root.child("defaultAllow"), allows, "must be true or false");
        }
        Self {
            kubeconfig: kubeconfig.to_owned(),
            allow_ttl: ALLOW.read(of, &root, errors),
            deny_ttl: DENY.read(of, &root, errors),
            backoff: BACKOFF.read(of, &root, errors),
            default_allow: allows.as_bool().unwrap_or(false),
        }
    }
}

impl Span {
    /// Reads the span. 0 stands for the default, -1 for a span of zero.
    fn read(&self, of: &Value, root: &Path<'_>, errors: &mut Errors) -> Duration {
        let (path, stated) = (root.child(self.field), of.at(&[self.field]));
        let Some(number) = stated.as_int().or_else(|| stated.is_null().then_some(0)) else {
            errors.invalid(&path, stated, "must be a whole number");
            return self.default;
        };
        let nanos = match number {
            0 => return self.default,
            -1 => return Duration::ZERO,
            number => number.checked_mul(self.unit).unwrap_or(i64::MAX),
        };
        if !(self.min..=self.max).contains(&nanos) {
            let text = duration::format;
            let (min, max, got) = (text(self.min), text(self.max), text(nanos));
            errors.invalid(&path, stated, format!("valid value is between {min} and {max}, got {got}"));
        }
        Duration::from_nanos(nanos.unsigned_abs())
    }
}

impl ImagePolicy {
    /// Reads the kubeconfig that the settings name.
    ///
    /// # Errors
    /// It cannot be used.
    pub fn new(settings: Settings) -> Result<Self, KubeconfigError> {
        let backend = Backend::read(FilePath::new(&settings.kubeconfig))?;
        Ok(Self { settings, backend, answers: Answers::new(limits::IMAGE_ANSWERS) })
    }

    /// Returns whether pods are allowed while the webhook fails.
    pub const fn allows_by_default(&self) -> bool {
        self.settings.default_allow
    }

    /// Asks the webhook about images, unless it has answered the same question lately. `ends` is the end of the
    /// request.
    ///
    /// # Errors
    /// The last call failed: the webhook cannot be reached or does not answer with a review.
    pub async fn ask(
        &self,
        outbound: &Outbound,
        spec: Value,
        ends: Option<Instant>,
    ) -> Result<ImageDecision, CallError> {
        let key = answers::key(&json::to_vec(&spec));
        if let Some(known) = self.answers.get(&key, Instant::now()) {
            return Ok(known);
        }
        let review = value!({
            "kind": "ImageReview", "apiVersion": API_VERSION, "metadata": {}, "spec": spec, "status": {"allowed": false}
        });
        let (bytes_max, first_wait) = (limits::IMAGE_ANSWER_BYTES, self.settings.backoff);
        let how = Persistence { timeout: limits::IMAGE_TIMEOUT, bytes_max, first_wait, ends };
        let answer = self.backend.ask_persistently(outbound, &review, how, |_, _| ()).await?;
        let decision = read(&answer).map_err(CallError::unreachable)?;
        let ttl = if decision.allowed { self.settings.allow_ttl } else { self.settings.deny_ttl };
        let annotations = decision.annotations.iter().map(|(key, value)| key.len() + value.len());
        if decision.reason.len() + annotations.sum::<usize>() <= limits::IMAGE_REASON_BYTES {
            self.answers.keep(key, decision.clone(), Instant::now(), ttl);
        }
        Ok(decision)
    }
}

/// The members of an answer that matter, with their types.
const MEMBERS: [typed::TypedMember; 4] = [
    typed::TypedMember {
        path: &["status", "allowed"],
        of: "ImageReviewStatus",
        called: "bool",
        takes: |value| value.as_bool().is_some(),
    },
    typed::TypedMember {
        path: &["status", "reason"],
        of: "ImageReviewStatus",
        called: "string",
        takes: |value| value.as_str().is_some(),
    },
    typed::TypedMember {
        path: &["status", "auditAnnotations"],
        of: "ImageReviewStatus",
        called: "map[string]string",
        takes: |value| value.as_object().is_some(),
    },
    typed::TypedMember {
        path: &["status", "auditAnnotations", "{}"],
        of: "ImageReviewStatus",
        called: "string",
        takes: |value| value.as_str().is_some(),
    },
];

fn read(answer: &Value) -> Result<ImageDecision, String> {
    typed::check(answer, &MEMBERS)?;
    let allowed = answer.at(&["status", "allowed"]).as_bool().unwrap_or(false);
    let annotations = answer.map_at(&["status", "auditAnnotations"]).into_iter().flat_map(Map::iter);
    let annotations = annotations.map(|(key, value)| (key.to_owned(), value.as_str().unwrap_or_default().to_owned()));
    let reason = answer.str_at(&["status", "reason"]).to_owned();
    Ok(ImageDecision { allowed, reason, annotations: annotations.collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(of: Value) -> (Settings, Vec<String>) {
        let mut errors = Errors::default();
        let settings = Settings::read(&value!({"imagePolicy": of}), &mut errors);
        (settings, errors.0.iter().map(|error| format!("{}: {}", error.field, error.detail)).collect())
    }

    #[test]
    fn spans_have_bounds_and_defaults() {
        let (read, errors) = settings(value!({"kubeConfigFile": "/f", "allowTTL": (-1), "retryBackoff": 250}));
        assert!(errors.is_empty(), "{errors:?}");
        assert_eq!((read.allow_ttl, read.deny_ttl), (Duration::ZERO, Duration::from_secs(30)));
        assert_eq!((read.backoff, read.default_allow), (Duration::from_millis(250), false));
        let wrong = value!({"allowTTL": 1_801, "denyTTL": (-2), "retryBackoff": "1s", "defaultAllow": "yes"});
        let expected = [
            "imagePolicy.kubeConfigFile: ",
            "imagePolicy.defaultAllow: must be true or false",
            "imagePolicy.allowTTL: valid value is between 1s and 30m0s, got 30m1s",
            "imagePolicy.denyTTL: valid value is between 1s and 30m0s, got -2s",
            "imagePolicy.retryBackoff: must be a whole number",
        ];
        assert_eq!(settings(wrong).1, expected);
    }

    #[test]
    fn answers_are_read() {
        let read = |status: Value| read(&value!({"status": status}));
        let noted = read(value!({"allowed": true, "auditAnnotations": {"a": "b"}})).unwrap();
        let annotations = vec![("a".to_owned(), "b".to_owned())];
        assert_eq!(noted, ImageDecision { allowed: true, reason: String::new(), annotations });
        assert!(!read(Value::Null).unwrap().allowed);
        let why = "json: cannot unmarshal string into Go struct field ImageReviewStatus.status.allowed of type bool";
        assert_eq!(read(value!({"allowed": "yes"})).unwrap_err(), why);
    }
}
