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

impl Metrics {
    /// Counts and measures what a policy did: policy, binding, type of the error, and of a validation what was done.
    pub fn by_policy(&self, sort: Sort, [policy, binding, error, action]: [&str; 4], elapsed: Duration) {
        let (policy, binding) = (("policy", policy), ("policy_binding", binding));
        let labels = self.bounded([policy, binding, ("error_type", error), ("enforcement_action", action)]);
        let (counter, family, shown) = match sort {
            Sort::Validating => {
                (families::VALIDATING_POLICY_CHECKS, &families::VALIDATING_POLICY_DURATION, &labels[..])
            }
            Sort::Mutating => (families::MUTATING_POLICY_CHECKS, &families::MUTATING_POLICY_DURATION, &labels[..3]),
        };
        self.meter().counter(counter, shown).increment(1);
        self.meter().histogram(family, shown).observe(elapsed.as_nanos() as u64);
    }
}
