//! Calls to a webhook that are repeated as long as the failure may be temporary. Kubernetes does this for webhooks that
//! kubeconfigs name.

use std::time::{Duration, Instant};

use flotilla_proto::value::Value;

use super::{Backend, Backoff, CallError};
use crate::limits;
use crate::outbound::Outbound;

/// The bounds of the calls to a webhook.
#[derive(Debug, Clone, Copy)]
pub struct Persistence {
    /// The time for one call.
    pub timeout: Duration,
    /// Bytes of the longest answer.
    pub bytes_max: usize,
    /// The wait before the second call.
    pub first_wait: Duration,
    /// The time by which the webhook must have answered. `None` if only the number of calls and the time of each call
    /// are bounded.
    pub ends: Option<Instant>,
}

impl Backend {
    /// Sends a review and returns the answer. Repeats the call, after waits that grow, if its failure may be temporary.
    /// `tell` gets the outcome of each call and the time that it took.
    ///
    /// # Errors
    /// The error of the last call.
    pub async fn ask_persistently(
        &self,
        outbound: &Outbound,
        review: &Value,
        how: Persistence,
        mut tell: impl FnMut(Result<&Value, &CallError>, Duration),
    ) -> Result<Value, CallError> {
        let mut backoff = Backoff::new(how.first_wait);
        let mut attempts = 1..limits::WEBHOOK_ATTEMPTS;
        loop {
            let began = Instant::now();
            let left = how.ends.map_or(how.timeout, |ends| ends.saturating_duration_since(began));
            let asked = self.ask(outbound, review, how.timeout, how.bytes_max);
            let late = || CallError::unreachable("context deadline exceeded".to_owned());
            let answered = tokio::time::timeout(left, asked).await.unwrap_or_else(|_| Err(late()));
            tell(answered.as_ref(), began.elapsed());
            let failed = match answered {
                Ok(answer) => return Ok(answer),
                Err(failed) => failed,
            };
            if !is_passing(&failed) || attempts.next().is_none() {
                return Err(failed);
            }
            let wait = backoff.wait();
            if how.ends.is_some_and(|ends| Instant::now() + wait >= ends) {
                return Err(failed);
            }
            tokio::time::sleep(wait).await;
        }
    }
}

/// Returns whether a call that failed may succeed later.
fn is_passing(failed: &CallError) -> bool {
    let is_refused = matches!(failed.code, 429 | 500..) && failed.code != 503;
    is_refused || failed.message.ends_with("connection reset by peer")
}
