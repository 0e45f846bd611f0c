//! A webhook that authorizes requests.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use flotilla_proto::json;
use flotilla_proto::value;
use flotilla_proto::value::Value;

use super::conditions::Conditions;
use super::{WebhookError, question};
use crate::access::attributes::Attributes;
use crate::access::decision::{Decision, Verdict};
use crate::access::inquiry::{Inquiry, Question};
use crate::access::user::User;
use crate::limits;
use crate::outbound::Outbound;
use crate::prometheus::{Meter, families};
use crate::webhooks::answers::{self, Answers};
use crate::webhooks::{Backend, CallError, Persistence, typed};

/// The API group of the reviews.
const GROUP: &str = "authorization.k8s.io";

/// The settings of a webhook that authorizes requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessWebhookSettings {
    /// Its name, for metrics.
    pub name: String,
    /// The kubeconfig that names it.
    pub kubeconfig: PathBuf,
    /// The version of the reviews: `v1` or `v1beta1`.
    pub version: String,
    /// The timeout of a call.
    pub timeout: Duration,
    /// The time for which an answer that allows a request is kept. With zero, none is kept.
    pub authorized_ttl: Duration,
    /// The time for which any other answer is kept. With zero, none is kept.
    pub unauthorized_ttl: Duration,
    /// The verdict when the webhook cannot be asked: [`Verdict::NoOpinion`] or [`Verdict::Deny`].
    pub on_error: Verdict,
    /// The match conditions: the webhook is asked only about requests for which all of them are true.
    pub conditions: Vec<String>,
}

/// A webhook that authorizes requests, and its last answers.
#[derive(Debug)]
pub struct AccessWebhook {
    /// Distinguishes it from all other webhooks, even from one with the same settings.
    number: u64,
    settings: AccessWebhookSettings,
    conditions: Conditions,
    backend: Backend,
    outbound: Outbound,
    meter: Arc<Meter>,
    answers: Answers<Decision>,
}

impl AccessWebhook {
    /// Reads the kubeconfig and compiles the conditions of the settings.
    ///
    /// # Errors
    /// The kubeconfig cannot be used, the version of the reviews is unknown, or a condition does not compile.
    pub fn new(settings: AccessWebhookSettings, outbound: Outbound, meter: Arc<Meter>) -> Result<Self, WebhookError> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        if !matches!(&*settings.version, "v1" | "v1beta1") {
            return Err(WebhookError::AccessVersion(settings.version));
        }
        let conditions = Conditions::compile(&settings.conditions).map_err(WebhookError::Condition)?;
        Ok(Self {
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            backend: Backend::read(Path::new(&settings.kubeconfig))?,
            conditions,
            outbound,
            meter,
            answers: Answers::new(limits::ACCESS_ANSWERS),
            settings,
        })
    }

    /// Returns the number that distinguishes it from all other webhooks.
    pub(in crate::access) const fn number(&self) -> u64 {
        self.number
    }

    /// Decides by a known answer of the webhook. If it must be asked first, leaves the question in the inquiry.
    pub(in crate::access) fn decide(
        self: &Arc<Self>,
        user: &User,
        attributes: &Attributes<'_>,
        inquiry: &Inquiry,
    ) -> Decision {
        // Once the open question is answered, the whole decision is made again.
        if inquiry.is_open() {
            return Decision::no_opinion(String::new());
        }
        let spec = question::spec(user, attributes);
        let key = answers::key(&json::to_vec(&spec));
        if let Some(answer) = inquiry.answer(self, &key) {
            return answer;
        }
        if !self.conditions.is_empty() {
            match self.matches(&spec) {
                Ok(true) => {}
                Ok(false) => return Decision::no_opinion(String::new()),
                Err(why) => return self.failed(why),
            }
        }
        if let Some(known) = self.answers.get(&key, Instant::now()) {
            return known;
        }
        let is_kept = question::is_kept(attributes);
        inquiry.raise(Question { webhook: Arc::clone(self), spec, key, is_kept });
        Decision::no_opinion(String::new())
    }

    fn matches(&self, spec: &Value) -> Result<bool, String> {
        let labels = [("type", "Webhook"), ("name", &*self.settings.name)];
        let began = Instant::now();
        let matched = self.conditions.matches(&question::shown(spec));
        let took = self.meter.histogram(&families::ACCESS_CONDITIONS_DURATION, &labels);
        took.observe(u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX));
        match matched.as_ref() {
            Ok(true) => {}
            Ok(false) => self.meter.counter(families::ACCESS_CONDITION_EXCLUSIONS, &labels).increment(1),
            Err(_) => self.meter.counter(families::ACCESS_CONDITION_ERRORS, &labels).increment(1),
        }
        matched
    }

    /// Returns the decision for the case that the webhook cannot be asked.
    fn failed(&self, error: String) -> Decision {
        Decision { verdict: self.settings.on_error, reason: String::new(), error }
    }

    /// Asks the webhook, and keeps its answer.
    pub(in crate::access) async fn ask(self: Arc<Self>, asked: Question, ends: Option<Instant>) -> Decision {
        let review = value!({
            "kind": "SubjectAccessReview", "apiVersion": (format!("{GROUP}/{}", self.settings.version)),
            "metadata": {}, "spec": (question::sent(asked.spec, &self.settings.version)), "status": {"allowed": false}
        });
        let (timeout, bytes_max) = (self.settings.timeout, limits::REVIEW_ANSWER_BYTES);
        let how = Persistence { timeout, bytes_max, first_wait: limits::REVIEW_RETRY_PAUSE, ends };
        let mut result = "error";
        let tell = |answered: Result<&Value, &CallError>, took: Duration| {
            result = outcome(answered, ends);
            let labels = [("name", &*self.settings.name), ("result", result)];
            self.meter.counter(families::ACCESS_WEBHOOK_EVALUATIONS, &labels).increment(1);
            let duration = self.meter.histogram(&families::ACCESS_WEBHOOK_DURATION, &labels);
            duration.observe(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
        };
        let answered = self.backend.ask_persistently(&self.outbound, &review, how, tell).await;
        let read = answered.map_err(|failed| failed.message).and_then(|answer| read(&answer));
        match read {
            Ok(decision) => {
                let ttls = (self.settings.authorized_ttl, self.settings.unauthorized_ttl);
                let ttl = if decision.is_allowed() { ttls.0 } else { ttls.1 };
                if asked.is_kept && decision.reason.len() <= limits::REVIEW_KEPT_BYTES {
                    self.answers.keep(asked.key, decision.clone(), Instant::now(), ttl);
                }
                decision
            }
            Err(why) => {
                tracing::error!(webhook = self.settings.name, why, "the webhook for authorization could not be asked");
                // Otherwise a client could bypass the webhook by a short timeout of its request.
                if ends.is_some_and(|ends| Instant::now() >= ends) {
                    return Decision::deny(why);
                }
                if self.settings.on_error == Verdict::NoOpinion {
                    let labels = [("name", &*self.settings.name), ("result", result)];
                    self.meter.counter(families::ACCESS_WEBHOOK_FAIL_OPEN, &labels).increment(1);
                }
                self.failed(why)
            }
        }
    }
}

/// Returns the label for the result of a call.
fn outcome(answered: Result<&Value, &CallError>, ends: Option<Instant>) -> &'static str {
    match answered {
        Ok(_) => "success",
        Err(_) if ends.is_some_and(|ends| Instant::now() >= ends) => "canceled",
        Err(failed) if failed.code == 504 || failed.message.ends_with("context deadline exceeded") => "timeout",
        Err(_) => "error",
    }
}

const fn member(path: &'static [&'static str], called: &'static str, takes: fn(&Value) -> bool) -> typed::TypedMember {
    typed::TypedMember { path, of: "SubjectAccessReviewStatus", called, takes }
}

/// The members of an answer that matter, with their types.
const MEMBERS: [typed::TypedMember; 3] = [
    member(&["status", "allowed"], "bool", |value| value.as_bool().is_some()),
    member(&["status", "denied"], "bool", |value| value.as_bool().is_some()),
    member(&["status", "reason"], "string", |value| value.as_str().is_some()),
];

fn read(answer: &Value) -> Result<Decision, String> {
    typed::check(answer, &MEMBERS)?;
    let says = |member: &str| answer.at(&["status", member]).as_bool() == Some(true);
    let reason = answer.str_at(&["status", "reason"]).to_owned();
    let (verdict, error) = match (says("denied"), says("allowed")) {
        (true, true) => (Verdict::Deny, "webhook subject access review returned both allow and deny response"),
        (true, false) => (Verdict::Deny, ""),
        (false, true) => (Verdict::Allow, ""),
        (false, false) => (Verdict::NoOpinion, ""),
    };
    Ok(Decision { verdict, reason, error: error.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read() {
        let verdict = |status: Value| read(&value!({"status": status})).map(|decision| decision.verdict);
        assert_eq!(verdict(value!({"allowed": true})), Ok(Verdict::Allow));
        assert_eq!(verdict(value!({"allowed": false, "denied": true})), Ok(Verdict::Deny));
        assert_eq!(verdict(value!({"allowed": false})), Ok(Verdict::NoOpinion));
        assert_eq!(verdict(Value::Null), Ok(Verdict::NoOpinion));
        let both = read(&value!({"status": {"allowed": true, "denied": true, "reason": "r"}})).unwrap();
        let error = "webhook subject access review returned both allow and deny response".to_owned();
        assert_eq!(both, Decision { verdict: Verdict::Deny, reason: "r".into(), error });
        assert!(verdict(value!({"allowed": 1})).unwrap_err().starts_with("json: cannot unmarshal number into"));
    }
}
