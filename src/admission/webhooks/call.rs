//! Calls one admission webhook and handles its failures.

use std::time::{Duration, Instant};

use flotilla_proto::value::Value;

use super::{ReviewRequest, ReviewResponse, Webhook, patched};
use crate::admission::Admission;
use crate::field::quote;
use crate::limits;
use crate::prometheus::families;
use crate::request::Notices;
use crate::status::{ApiError, ApiResult};

/// The reasons why a write fails after the call of a webhook.
#[derive(Debug, Clone, PartialEq)]
pub enum Failure {
    /// The call failed, or the answer is invalid: the message, and the status code that metrics record.
    Calling(String, u16),
    /// The webhook refuses the write.
    Refused(ApiError),
    /// The webhook asks for a change that is impossible.
    Internal(ApiError),
}

/// The outcome of calling a webhook.
#[derive(Debug, Clone, PartialEq)]
pub enum WebhookOutcome {
    /// The write may go on unchanged.
    Allowed,
    /// The write may go on with this object, which is not decoded yet. The bytes are the patch that made it.
    Patched(Value, Vec<u8>),
    /// The call failed, and the webhook's failure policy ignores that.
    Ignored,
}

impl Failure {
    /// Returns a failure of the call, in the reference's wording.
    pub fn calling(webhook: &str, why: &str, code: u16) -> Self {
        Self::Calling(format!("failed calling webhook {}: {why}", quote(webhook)), code)
    }

    /// Returns the error for the client.
    pub fn into_error(self) -> ApiError {
        match self {
            Self::Calling(message, _) => ApiError::internal(message),
            Self::Refused(error) | Self::Internal(error) => error,
        }
    }
}

impl Webhook {
    /// Calls the webhook about a write, within the remaining time of the request. Adds its warnings and audit
    /// annotations to `notices`. A refusal is an error.
    ///
    /// # Errors
    /// The error for the client.
    pub async fn call(
        &self,
        admission: &Admission,
        request: &ReviewRequest<'_>,
        left: Option<Duration>,
        notices: &mut Notices,
    ) -> ApiResult<WebhookOutcome> {
        let began = Instant::now();
        let judged = self.ask(admission, request, left.unwrap_or(self.timeout)).await.and_then(|response| {
            response.warnings.iter().for_each(|text| notices.warn(text.clone()));
            for (key, value) in &response.annotations {
                notices.annotate(format!("{}/{key}", self.name), value.clone());
            }
            match response.allowed {
                true => patched(&self.name, &response, request.object).map(|patched| {
                    patched.map_or(WebhookOutcome::Allowed, |object| WebhookOutcome::Patched(object, response.patch))
                }),
                false => Err(Failure::Refused(response.refusal(&self.name))),
            }
        });
        self.measure(admission, request.operation, began.elapsed(), judged.as_ref().err());
        match judged {
            Ok(answer) => Ok(answer),
            Err(failure) => self.apply_failure_policy(admission, failure).map(|()| WebhookOutcome::Ignored),
        }
    }

    /// Returns `Ok` for a failed call if the webhook's failure policy ignores it.
    fn apply_failure_policy(&self, admission: &Admission, failure: Failure) -> Result<(), ApiError> {
        let Failure::Calling(message, _) = &failure else { return Err(failure.into_error()) };
        if !self.ignores_failure {
            tracing::warn!(webhook = self.name, why = message, "a webhook could not be called: the write fails");
            return Err(failure.into_error());
        }
        tracing::warn!(webhook = self.name, why = message, "a webhook could not be called: the write goes on");
        let labels = admission.tables.metrics.bounded([("name", &*self.name), ("type", self.phase())]);
        admission.tables.metrics.meter().counter(families::WEBHOOK_FAIL_OPEN, &labels).increment(1);
        Ok(())
    }

    async fn ask(
        &self,
        admission: &Admission,
        request: &ReviewRequest<'_>,
        left: Duration,
    ) -> Result<ReviewResponse, Failure> {
        if request.dry_run && !self.takes_dry_run {
            let why = format!("admission webhook {} does not support dry run", quote(&self.name));
            return Err(Failure::Internal(ApiError::bad_request(why)));
        }
        let failed = |why: String, code: u16| Failure::calling(&self.name, &why, code);
        let Some(version) = self.review else {
            let why = "could not create admission objects: webhook does not accept known AdmissionReview versions (v1, v1beta1)";
            return Err(failed(why.into(), 400));
        };
        let uid = uuid::Uuid::new_v4().to_string();
        let review = request.review(version, &uid);
        let (timeout, peer) = (self.timeout.min(left), self.hook.peer(admission.tables.resolver()));
        let users = admission.configuration.users(self.mutating);
        let user = self.hook.target().and_then(|target| users.of(&target));
        let bytes_max = limits::ADMISSION_ANSWER_BYTES;
        let answer = self.hook.ask(&admission.tables.outbound, peer, user, &review, timeout, bytes_max).await;
        if answer.as_ref().is_err_and(|error| error.is_of_nameless) {
            admission.tables.metrics.meter().counter(families::WEBHOOK_NAMELESS, &[]).increment(1);
        }
        let answer =
            answer.map_err(|error| failed(format!("failed to call webhook: {}", error.message), error.code))?;
        let response = ReviewResponse::read(&answer, version, &uid, self.mutating);
        response.map_err(|unread| failed(unread.message(), 503))
    }

    fn measure(&self, admission: &Admission, operation: &str, took: Duration, failure: Option<&Failure>) {
        let (code, kind) = match failure {
            None => (200, ""),
            Some(Failure::Calling(_, code)) => (*code, "calling_webhook_error"),
            Some(Failure::Refused(error)) => (error.code, "no_error"),
            Some(Failure::Internal(_)) => (0, "apiserver_internal_error"),
        };
        let is_ignored = self.ignores_failure && matches!(failure, Some(Failure::Calling(..)));
        let is_rejected = failure.is_some() && !is_ignored;
        let (code, rejected) = (code.min(600).to_string(), if is_rejected { "true" } else { "false" });
        let (metrics, meter) = (&admission.tables.metrics, admission.tables.metrics.meter());
        let (name, of, phase) = (("name", &*self.name), ("operation", operation), ("type", self.phase()));
        let labels = metrics.bounded([name, of, ("rejected", rejected), phase]);
        meter.histogram(&families::WEBHOOK_DURATION, &labels).observe(took.as_nanos() as u64);
        let labels = metrics.bounded([("code", &*code), name, of, ("rejected", rejected), phase]);
        meter.counter(families::WEBHOOK_REQUESTS, &labels).increment(1);
        if is_rejected {
            let labels = metrics.bounded([("error_type", kind), name, of, ("rejection_code", &*code), phase]);
            meter.counter(families::WEBHOOK_REJECTIONS, &labels).increment(1);
        }
    }
}
