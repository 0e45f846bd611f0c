//! The questions to webhooks that decisions about one request raise, and their answers.
//!
//! A decision is a function of what is known and waits for nobody. One that needs the answer of a webhook leaves its
//! question here and decides nothing for now. Whoever called for it awaits the answer ([`Inquiry::pending`]) and
//! decides again: see `docs/decisions/asked-authorizers.md`.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use flotilla_proto::value::Value;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;

use super::decision::Decision;
use super::webhook::AccessWebhook;
use crate::limits;
use crate::webhooks::answers::Key;

/// A question to a webhook.
#[derive(Debug)]
pub struct Question {
    /// The webhook.
    pub webhook: Arc<AccessWebhook>,
    /// What is asked: the specification of a SubjectAccessReview.
    pub spec: Value,
    /// The digest of what is asked.
    pub key: Key,
    /// Whether the answer may be kept for other requests.
    pub is_kept: bool,
}

/// The questions that decisions about one request raise, and their answers. It takes no memory before there are any. A
/// clone begins without questions.
#[derive(Debug, Default)]
pub struct Inquiry(Mutex<Option<Box<State>>>);

#[derive(Debug, Default)]
struct State {
    answers: HashMap<(u64, Key), Decision>,
    open: Option<Question>,
    /// Whether the request has raised more questions than are asked. All others are answered with a refusal then.
    is_exhausted: bool,
}

impl Clone for Inquiry {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Inquiry {
    /// Returns the answer of a webhook in this inquiry.
    pub(super) fn answer(&self, webhook: &AccessWebhook, key: &Key) -> Option<Decision> {
        let state = self.0.lock();
        let state = state.as_ref()?;
        let known = state.answers.get(&(webhook.number(), *key)).cloned();
        known.or_else(|| state.is_exhausted.then(|| Decision::deny("the request raises too many questions".to_owned())))
    }

    /// Leaves a question. If there is one already, does nothing: once it is answered, all is decided again.
    pub(super) fn raise(&self, question: Question) {
        self.0.lock().get_or_insert_default().open.get_or_insert(question);
    }

    /// Returns whether a decision waits for an answer, and decided nothing.
    pub fn is_open(&self) -> bool {
        self.0.lock().as_ref().is_some_and(|state| state.open.is_some())
    }

    /// Asks the question that is open; `None` if there is none. `ends` is the end of the request.
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

    /// Takes the open question. `None` if the request has raised too many: then it is answered with a refusal.
    fn take(&self) -> Option<Question> {
        let mut state = self.0.lock();
        let state = state.get_or_insert_default();
        let question = state.open.take()?;
        state.is_exhausted = state.answers.len() >= limits::QUESTIONS;
        (!state.is_exhausted).then_some(question)
    }

    /// Asks the question that is open, if there is one, and returns whether there was: then all must be decided again.
    pub async fn asks(&self, ends: Option<Instant>) -> bool {
        match self.pending(ends) {
            Some(asking) => {
                asking.await;
                true
            }
            None => false,
        }
    }

    /// Calls `decide` until it waits for no answer.
    pub async fn settled<T>(&self, ends: Option<Instant>, mut decide: impl FnMut(&Self) -> T) -> T {
        loop {
            let decided = decide(self);
            if !self.asks(ends).await {
                return decided;
            }
        }
    }
}
