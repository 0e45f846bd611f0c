//! The results of evaluating a policy for a write.

use std::time::Duration;

use super::annotations::Annotation;
use crate::expressions::OUT_OF_BUDGET;

/// The result of one expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Evaluation {
    /// It holds.
    Admit,
    /// It does not hold.
    Deny,
    /// It failed.
    Error,
}

/// The decision of one validation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// Whether the binding's actions are carried out.
    pub denies: bool,
    /// The result of the expression.
    pub evaluation: Evaluation,
    /// A text for people.
    pub message: String,
    /// The reason of the `Status`.
    pub reason: &'static str,
    /// The duration of the evaluation.
    pub elapsed: Duration,
}

/// The decisions of a policy about a write.
#[derive(Debug, Default)]
pub struct Judged {
    /// One decision for each validation, or one that says why none was evaluated.
    pub decisions: Vec<Decision>,
    /// The audit annotations.
    pub annotations: Vec<Annotation>,
}

impl Decision {
    /// Returns a decision that lets the write go on.
    pub const fn admits(elapsed: Duration) -> Self {
        Self { denies: false, evaluation: Evaluation::Admit, message: String::new(), reason: "Invalid", elapsed }
    }

    /// Returns a failure that refuses the write.
    pub const fn failed(message: String, elapsed: Duration) -> Self {
        Self { denies: true, evaluation: Evaluation::Error, message, reason: "Invalid", elapsed }
    }

    /// Returns the label that metrics use for the error.
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
    /// Returns a result that consists of one failure.
    pub fn failed(message: String, ignores_failure: bool) -> Self {
        let decision = Decision { denies: !ignores_failure, ..Decision::failed(message, Duration::ZERO) };
        Self { decisions: vec![decision], annotations: Vec::new() }
    }
}
