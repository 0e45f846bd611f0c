//! The outcome of authorization.

/// What an authorizer says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The user may.
    Allow,
    /// The user may not, whatever others say.
    Deny,
    /// Others decide; if none allows it, the user may not.
    NoOpinion,
}

/// A decision of authorization.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// Whether the user may.
    pub verdict: Verdict,
    /// Why. It is for reviews and the audit log, and ends the message of a refusal; may be empty.
    pub reason: String,
    /// What kept an authorizer from deciding. Empty if nothing did.
    pub error: String,
}

impl Decision {
    /// The user may.
    pub const fn allow(reason: String) -> Self {
        Self { verdict: Verdict::Allow, reason, error: String::new() }
    }

    /// The user may not, whatever others say, because of an error.
    pub const fn deny(error: String) -> Self {
        Self { verdict: Verdict::Deny, reason: String::new(), error }
    }

    /// Nothing says that the user may.
    pub const fn no_opinion(reason: String) -> Self {
        Self { verdict: Verdict::NoOpinion, reason, error: String::new() }
    }

    /// Returns whether the user may.
    pub const fn is_allowed(&self) -> bool {
        matches!(self.verdict, Verdict::Allow)
    }
}
