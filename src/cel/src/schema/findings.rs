//! The findings of a walk over an object: the violations of rules, within their bounds.

use super::violation::Violation;
use crate::limits::VIOLATIONS_BYTES_MAX;

/// The result of a walk. Errors and warnings are bounded by [`VIOLATIONS_BYTES_MAX`] each: one rule may be broken by
/// very many values, each with a message of kilobytes.
#[derive(Debug, Default)]
pub struct Findings {
    /// The errors.
    pub errors: Vec<Violation>,
    /// Violations in unchanged values, which are only warnings (ratcheting).
    pub warnings: Vec<Violation>,
    /// The remaining budget; -1 if rules were skipped, since the budget was used up or there were enough errors.
    pub remaining: i64,
    error_bytes: usize,
    warning_bytes: usize,
}

impl Findings {
    /// Returns an empty result with a budget.
    pub fn within(budget: i64) -> Self {
        Self { remaining: budget, ..Self::default() }
    }

    /// Adds an error. Returns `Err` if there are enough errors now, so that evaluation must stop.
    pub(super) fn error(&mut self, violation: Violation) -> Result<(), Stopped> {
        self.error_bytes += violation.bytes();
        self.errors.push(violation);
        if self.error_bytes < VIOLATIONS_BYTES_MAX { Ok(()) } else { Err(Stopped) }
    }

    /// Adds a warning.
    pub(super) fn warn(&mut self, violation: Violation) {
        if self.warning_bytes < VIOLATIONS_BYTES_MAX {
            self.warning_bytes += violation.bytes();
            self.warnings.push(violation);
        }
    }
}

/// The signal to evaluate no more rules.
pub(super) struct Stopped;
