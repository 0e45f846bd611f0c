//! Refusals of authentication, and the steps that precede another attempt.

use std::sync::Arc;

use super::openid::OpenId;
use super::token_owner::TokenOwner;
use super::webhook::TokenAnswer;
use crate::field::joined;
use crate::status::ApiError;

/// The error for a token that nothing knows.
pub(super) const UNKNOWN: &str = "invalid bearer token";

/// The reason why authentication failed.
#[derive(Debug, Clone)]
pub struct Refused {
    pub(super) why: Vec<String>,
    /// The step that must precede another attempt. `None` if no other attempt can succeed.
    pub retry: Option<Retry>,
    /// Whether the webhook was not asked yet. Its answer may still accept the token.
    pub is_unasked: bool,
}

impl Refused {
    /// Returns a refusal for this reason. Another attempt would fail in the same way.
    pub(super) fn of(why: &str) -> Self {
        Self { why: vec![why.to_owned()], retry: None, is_unasked: false }
    }

    /// Refuses a token that one method recognized as invalid and no other method knows. The reference states both
    /// errors.
    pub(super) fn also(why: String) -> Self {
        Self { why: vec![UNKNOWN.to_owned(), why], retry: None, is_unasked: false }
    }

    /// Returns the text that a TokenReview shows.
    pub fn text(&self) -> String {
        joined(self.why.clone())
    }

    /// Returns the owner if the webhook's answer names one. Otherwise adds the webhook's reason to the refusal.
    pub(super) fn unless(mut self, answer: TokenAnswer) -> Result<TokenOwner, Self> {
        self.is_unasked = false;
        match answer {
            TokenAnswer::Valid(user, audiences) => return Ok(TokenOwner { user, audiences, warning: None }),
            TokenAnswer::Invalid(None) => {}
            TokenAnswer::Invalid(Some(why)) | TokenAnswer::Failed(why) => self.why.push(why),
        }
        Err(self)
    }
}

/// The step that this replica must take before it attempts an authentication again.
#[derive(Debug, Clone)]
pub enum Retry {
    /// Catch up with the others: the token depends on stored objects, which may be outdated here.
    AfterCatchingUp,
    /// Fetch the keys of this OpenID Connect provider, which may have new ones.
    WithNewKeys(Arc<OpenId>),
}

impl From<Refused> for ApiError {
    /// Returns 401 without further details.
    fn from(_: Refused) -> Self {
        Self::new(401, "Unauthorized", "Unauthorized")
    }
}
