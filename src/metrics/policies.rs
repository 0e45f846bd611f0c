//! Policies of admission.

use std::time::Duration;

use super::Metrics;
use crate::prometheus::families;

/// The kind of a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sort {
    /// Validating policies, which refuse writes.
    Validating,
    /// Mutating policies, which change objects.
    Mutating,
}

impl Metrics {
    /// Records a run of a policy: policy, binding, type of the error, and for a validation the action that followed.
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
