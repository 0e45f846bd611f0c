//! The outcome of authorization.

/// The opinion of an authorizer about a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The request is allowed.
    Allow,
    /// The request is denied. No further authorizer is asked.
    Deny,
    /// The next authorizer decides. If none allows the request, it is refused.
    NoOpinion,
}

/// The decision of an authorizer, or of all together, about a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// The opinion.
    pub verdict: Verdict,
    /// The reason, for reviews, the audit log and the end of a refusal's message; may be empty.
    pub reason: String,
    /// The error that kept an authorizer from deciding; empty if there was none.
    pub error: String,
}

impl Decision {
    /// Allows the request.
    pub const fn allow(reason: String) -> Self {
        Self { verdict: Verdict::Allow, reason, error: String::new() }
    }

    /// Denies the request because of an error.
    pub const fn deny(error: String) -> Self {
        Self { verdict: Verdict::Deny, reason: String::new(), error }
    }

    /// Neither allows nor denies the request.
    pub const fn no_opinion(reason: String) -> Self {
        Self { verdict: Verdict::NoOpinion, reason, error: String::new() }
    }

    /// Returns whether the request is allowed.
    pub const fn is_allowed(&self) -> bool {
        matches!(self.verdict, Verdict::Allow)
    }
}
