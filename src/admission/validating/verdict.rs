//! What a policy says of a write.

use std::time::Duration;

use super::annotations::Annotation;
use crate::expressions::OUT_OF_BUDGET;

/// How an expression came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Evaluation {
    /// It holds.
    Admit,
    /// It does not hold.
    Deny,
    /// It failed.
    Error,
}

/// What one validation says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// Whether the binding's actions are taken.
    pub denies: bool,
    /// How the expression came out.
    pub evaluation: Evaluation,
    /// For people.
    pub message: String,
    /// Why, as a `Status` says it.
    pub reason: &'static str,
    /// How long it took.
    pub elapsed: Duration,
}

/// What a policy says of a write.
#[derive(Debug, Default)]
pub struct Judged {
    /// One for each validation, or one that says why there are none.
    pub decisions: Vec<Decision>,
    /// What the audit log is told.
    pub annotations: Vec<Annotation>,
}

impl Decision {
    /// The write may go on.
    pub const fn admits(elapsed: Duration) -> Self {
        Self { denies: false, evaluation: Evaluation::Admit, message: String::new(), reason: "Invalid", elapsed }
    }

    /// A failure that refuses.
    pub const fn failed(message: String, elapsed: Duration) -> Self {
        Self { denies: true, evaluation: Evaluation::Error, message, reason: "Invalid", elapsed }
    }

    /// What metrics call the error.
    pub fn error_type(&self) -> &'static str {
        match self.evaluation {
            Evaluation::Admit => "no_error",
            _ if self.message.starts_with("compilation") => "compile_error",
            _ if self.message.starts_with(OUT_OF_BUDGET.split(',').next().unwrap_or_default()) => "out_of_budget",
            _ => "invalid_error",
        }
    }
}

impl Judged {
    /// Nothing but a failure.
    pub fn failed(message: String, ignores_failure: bool) -> Self {
        let decision = Decision { denies: !ignores_failure, ..Decision::failed(message, Duration::ZERO) };
        Self { decisions: vec![decision], annotations: Vec::new() }
    }
}
