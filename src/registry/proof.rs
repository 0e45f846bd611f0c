//! Says for which resources a write proves the decisions that led to it.

use super::{Registry, Target, allocation};
use crate::access::rbac;

impl Registry {
    /// Returns whether updates and deletions are decided by the object alone, except those of which
    /// [`Registry::change_needs_tables`] says otherwise. The store then proves the decision by making the write,
    /// since it does so only if the object is still the same.
    pub fn is_proved_by_writing(&self, target: Target<'_>) -> bool {
        // All roles and bindings decide who may grant what. Deletions of them take the same path.
        let is_grant = target.served.group() == rbac::GROUP;
        !self.updates_need_tables(target) && !is_grant && !allocation::is_service(target)
    }
}

#[cfg(test)]
#[path = "proof_tests.rs"]
mod tests;
