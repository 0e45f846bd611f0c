//! The questions that one request raises for authorization webhooks, and the webhooks' answers.
//!
//! A decision uses only known answers, and never waits. If it needs an unknown answer, it leaves the question here and
//! decides nothing. Its caller awaits the answer ([`Inquiry::pending`]) and makes the decision again: see
//! `docs/decisions/asked-authorizers.md`.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use flotilla_proto::value::Value;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;

use super::decision::Decision;
use super::webhook::AccessWebhook;
use crate::limits;
use crate::webhooks::answers::QuestionDigest;

/// A question to a webhook.
#[derive(Debug)]
pub struct Question {
    /// The webhook.
    pub webhook: Arc<AccessWebhook>,
    /// The question: the specification of a SubjectAccessReview.
    pub spec: Value,
    /// The digest of the specification.
    pub key: QuestionDigest,
    /// Whether the answer may be kept for other requests.
    pub is_kept: bool,
}

/// The open question of a request, and the answers that webhooks gave to its earlier questions. Allocates nothing
/// before the first question. A clone begins empty.
#[derive(Debug, Default)]
pub struct Inquiry(Mutex<Option<Box<State>>>);

#[derive(Debug, Default)]
struct State {
    answers: HashMap<(u64, QuestionDigest), Decision>,
    open: Option<Question>,
    /// Whether the request has raised too many questions. Each further one is answered with a refusal.
    is_exhausted: bool,
}

impl Clone for Inquiry {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Inquiry {
    /// Returns a webhook's answer to a question of this request. `None` if the webhook must be asked.
    pub(super) fn answer(&self, webhook: &AccessWebhook, key: &QuestionDigest) -> Option<Decision> {
        let state = self.0.lock();
        let state = state.as_ref()?;
        let known = state.answers.get(&(webhook.number(), *key)).cloned();
        known.or_else(|| {
            state.is_exhausted.then(|| Decision::deny("the request needs too many decisions of webhooks".to_owned()))
        })
    }

    /// Leaves a question. Does nothing if one is open already: once that is answered, the whole decision is made again.
    pub(super) fn raise(&self, question: Question) {
        self.0.lock().get_or_insert_default().open.get_or_insert(question);
    }

    /// Returns whether a question is open. The decision that left it has decided nothing.
    pub fn is_open(&self) -> bool {
        self.0.lock().as_ref().is_some_and(|state| state.open.is_some())
    }

    /// Returns a future that asks the open question. `None` if no question is open. The request times out at `ends`.
    pub fn pending(&self, ends: Option<Instant>) -> Option<BoxFuture<'_, ()>> {
        if !self.is_open() {
            return None;
        }
        Some(Box::pin(async move {
            let Some(question) = self.take() else { return };
            let (number, key) = (question.webhook.number(), question.key);
            let decision = Arc::clone(&question.webhook).ask(question, ends).await;
            self.0.lock().get_or_insert_default().answers.insert((number, key), decision);
        }))
    }

    /// Takes the open question. `None` if no question is open, or if the request has raised too many.
    fn take(&self) -> Option<Question> {
        let mut state = self.0.lock();
        let state = state.get_or_insert_default();
        let question = state.open.take()?;
        state.is_exhausted = state.answers.len() >= limits::QUESTIONS;
        (!state.is_exhausted).then_some(question)
    }

    /// Asks the open question. Returns whether one was open: then the decision must be made again.
    pub async fn asks(&self, ends: Option<Instant>) -> bool {
        match self.pending(ends) {
            Some(asking) => {
                asking.await;
                true
            }
            None => false,
        }
    }

    /// Calls `decide`, and asks the question that it leaves. Repeats both until `decide` leaves no question.
    pub async fn settled<T>(&self, ends: Option<Instant>, mut decide: impl FnMut(&Self) -> T) -> T {
        loop {
            let decided = decide(self);
            if !self.asks(ends).await {
                return decided;
            }
        }
    }
}
