//! Policies of admission.

use std::time::Duration;

use super::Metrics;
use crate::prometheus::families;

/// Which policies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sort {
    /// Those that refuse.
    Validating,
    /// Those that change.
    Mutating,
}

const LABELS: [&str; 4] = ["policy", "policy_binding", "error_type", "enforcement_action"];

impl Metrics {
    /// Counts and measures what a policy did: policy, binding, type of the error, and of a
    /// validation what was done.
    pub fn by_policy(&self, sort: Sort, values: &[&str], elapsed: Duration) {
        let labels: Vec<(&'static str, &str)> = LABELS.into_iter().zip(values.iter().copied()).collect();
        let (counter, family) = match sort {
            Sort::Validating => (families::VALIDATING_POLICY_CHECKS, &families::VALIDATING_POLICY_DURATION),
            Sort::Mutating => (families::MUTATING_POLICY_CHECKS, &families::MUTATING_POLICY_DURATION),
        };
        self.meter().counter(counter, &labels).increment(1);
        self.meter().histogram(family, &labels).observe(elapsed.as_nanos() as u64);
    }
}
