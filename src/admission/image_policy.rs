//! The webhook that decides which images pods may have, and its last answers (`imagePolicy` of the configuration of
//! ImagePolicyWebhook).

use std::collections::{HashMap, VecDeque};
use std::path::Path as FilePath;
use std::time::{Duration, Instant};

use flotilla_proto::duration;
use flotilla_proto::json;
use flotilla_proto::value;
use flotilla_proto::value::{Map, Value};
use parking_lot::Mutex;
use rand::Rng;
use ring::digest::{SHA256, SHA256_OUTPUT_LEN, digest};

use crate::field::{Errors, Path};
use crate::limits;
use crate::outbound::Outbound;
use crate::pki::KubeconfigError;
use crate::webhooks::{Backend, CallError, typed};

const API_VERSION: &str = "imagepolicy.k8s.io/v1alpha1";
/// The time for one call.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The number of calls, and by how much each wait is longer than the one before.
const ATTEMPTS: u32 = 5;
const FACTOR: f64 = 1.5;
/// The most by which chance makes a wait longer.
const JITTER: f64 = 0.2;

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

/// How the webhook is asked.
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
    answers: Mutex<Answers>,
}

/// What the webhook decides about the images of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// Whether the pod may have them.
    pub allowed: bool,
    /// Why not; may be empty.
    pub reason: String,
    /// Audit annotations: keys, to which [`AUDIT_PREFIX`] is added, and values.
    pub annotations: Vec<(String, String)>,
}

/// The beginning of the keys of audit annotations.
pub const AUDIT_PREFIX: &str = "imagepolicywebhook.image-policy.k8s.io/";

type Key = [u8; SHA256_OUTPUT_LEN];

/// The last answers, by what was asked. The oldest one goes first.
#[derive(Debug, Default)]
struct Answers {
    kept: HashMap<Key, (Verdict, Instant)>,
    by_age: VecDeque<Key>,
}

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
    /// Reads the span. 0 stands for the default, -1 for none.
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
        Ok(Self { settings, backend, answers: Mutex::default() })
    }

    /// Returns whether pods are allowed while the webhook fails.
    pub const fn allows_by_default(&self) -> bool {
        self.settings.default_allow
    }

    /// Asks the webhook about images, unless it has answered the same question lately. `ends` is the end of the
    /// request.
    ///
    /// # Errors
    /// Why the last call failed: the webhook cannot be reached or does not answer with a review.
    pub async fn ask(&self, outbound: &Outbound, spec: Value, ends: Option<Instant>) -> Result<Verdict, CallError> {
        let key = key(&spec);
        if let Some(known) = self.answers.lock().get(&key, Instant::now()) {
            return Ok(known);
        }
        let review = value!({
            "kind": "ImageReview", "apiVersion": API_VERSION, "metadata": {}, "spec": spec, "status": {"allowed": false}
        });
        let verdict = read(&self.call(outbound, &review, ends).await?).map_err(CallError::unreachable)?;
        let ttl = if verdict.allowed { self.settings.allow_ttl } else { self.settings.deny_ttl };
        self.answers.lock().keep(key, &verdict, Instant::now(), ttl);
        Ok(verdict)
    }

    async fn call(&self, outbound: &Outbound, review: &Value, ends: Option<Instant>) -> Result<Value, CallError> {
        let mut wait = self.settings.backoff;
        let mut attempts = 1..ATTEMPTS;
        loop {
            let left = ends.map_or(TIMEOUT, |ends| ends.saturating_duration_since(Instant::now()));
            let asked = self.backend.ask(outbound, review, TIMEOUT, limits::IMAGE_ANSWER_BYTES);
            let failed = match tokio::time::timeout(left, asked).await {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(failed)) => failed,
                Err(_) => return Err(CallError::unreachable("context deadline exceeded".to_owned())),
            };
            if !is_passing(&failed) || attempts.next().is_none() {
                return Err(failed);
            }
            let jittered = wait.mul_f64(1.0 + JITTER * rand::rng().random::<f64>());
            if ends.is_some_and(|ends| Instant::now() + jittered >= ends) {
                return Err(failed);
            }
            tokio::time::sleep(jittered).await;
            wait = wait.mul_f64(FACTOR);
        }
    }
}

/// Returns whether a call that failed may succeed later.
fn is_passing(failed: &CallError) -> bool {
    let is_refused = matches!(failed.code, 429 | 500..) && failed.code != 503;
    is_refused || failed.message.ends_with("connection reset by peer")
}

/// The members of an answer that matter, with their types.
const MEMBERS: [typed::Member; 4] = [
    typed::Member {
        path: &["status", "allowed"],
        of: "ImageReviewStatus",
        called: "bool",
        takes: |value| value.as_bool().is_some(),
    },
    typed::Member {
        path: &["status", "reason"],
        of: "ImageReviewStatus",
        called: "string",
        takes: |value| value.as_str().is_some(),
    },
    typed::Member {
        path: &["status", "auditAnnotations"],
        of: "ImageReviewStatus",
        called: "map[string]string",
        takes: |value| value.as_object().is_some(),
    },
    typed::Member {
        path: &["status", "auditAnnotations", "{}"],
        of: "ImageReviewStatus",
        called: "string",
        takes: |value| value.as_str().is_some(),
    },
];

fn read(answer: &Value) -> Result<Verdict, String> {
    typed::check(answer, &MEMBERS)?;
    let allowed = answer.at(&["status", "allowed"]).as_bool().unwrap_or(false);
    let annotations = answer.map_at(&["status", "auditAnnotations"]).into_iter().flat_map(Map::iter);
    let annotations = annotations.map(|(key, value)| (key.to_owned(), value.as_str().unwrap_or_default().to_owned()));
    let reason = answer.str_at(&["status", "reason"]).to_owned();
    Ok(Verdict { allowed, reason, annotations: annotations.collect() })
}

fn key(spec: &Value) -> Key {
    let mut key = [0; SHA256_OUTPUT_LEN];
    key.copy_from_slice(digest(&SHA256, &json::to_vec(spec)).as_ref());
    key
}

impl Answers {
    fn get(&mut self, key: &Key, now: Instant) -> Option<Verdict> {
        self.kept.get(key).filter(|(_, ends)| now <= *ends).map(|(verdict, _)| verdict.clone())
    }

    /// Keeps an answer for a time. One with many words is not kept.
    fn keep(&mut self, key: Key, verdict: &Verdict, now: Instant, ttl: Duration) {
        let annotations = verdict.annotations.iter().map(|(key, value)| key.len() + value.len());
        if ttl.is_zero() || verdict.reason.len() + annotations.sum::<usize>() > limits::IMAGE_REASON_BYTES {
            return;
        }
        if self.kept.insert(key, (verdict.clone(), now + ttl)).is_some() {
            self.by_age.retain(|known| *known != key);
        }
        self.by_age.push_back(key);
        if self.kept.len() > limits::IMAGE_ANSWERS
            && let Some(oldest) = self.by_age.pop_front()
        {
            self.kept.remove(&oldest);
        }
    }
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
    fn answers_are_kept_for_a_time_and_the_oldest_goes_first() {
        let (mut answers, now) = (Answers::default(), Instant::now());
        let verdict = Verdict { allowed: false, reason: "no".into(), annotations: Vec::new() };
        let key = |number: usize| key(&Value::from(number as i64));
        let (ttl, after) = (Duration::from_secs(2), |seconds| now + Duration::from_secs(seconds));
        answers.keep(key(0), &verdict, now, ttl);
        assert_eq!(answers.get(&key(0), after(2)), Some(verdict.clone()));
        assert_eq!(answers.get(&key(0), after(3)), None);
        for number in 1..=limits::IMAGE_ANSWERS {
            answers.keep(key(number), &verdict, now, ttl);
        }
        assert_eq!((answers.get(&key(0), now), answers.kept.len()), (None, limits::IMAGE_ANSWERS));
        answers.keep(key(0), &verdict, now, Duration::ZERO);
        let long = Verdict { reason: "x".repeat(limits::IMAGE_REASON_BYTES + 1), ..verdict.clone() };
        answers.keep(key(0), &long, now, ttl);
        assert_eq!(answers.get(&key(0), now), None);
    }

    #[test]
    fn answers_are_read() {
        let read = |status: Value| read(&value!({"status": status}));
        let noted = read(value!({"allowed": true, "auditAnnotations": {"a": "b"}})).unwrap();
        let annotations = vec![("a".to_owned(), "b".to_owned())];
        assert_eq!(noted, Verdict { allowed: true, reason: String::new(), annotations });
        assert!(!read(Value::Null).unwrap().allowed);
        let why = "json: cannot unmarshal string into Go struct field ImageReviewStatus.status.allowed of type bool";
        assert_eq!(read(value!({"allowed": "yes"})).unwrap_err(), why);
    }
}
