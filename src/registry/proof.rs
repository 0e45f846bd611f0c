//! Says for which resources a write proves the decisions that led to it.

use flotilla_proto::value::Value;

use super::{Registry, Target, allocation, claim_status};
use crate::access::rbac;

impl Registry {
    /// Returns whether the object alone decides updates and deletions, apart from those for which
    /// [`Registry::is_decided_by_tables`] is true. The store then proves the decision by making the write, since it
    /// makes it only if the object is still the same.
    pub fn is_proved_by_writing(&self, target: Target<'_>) -> bool {
        // All roles and bindings decide who may grant what. Deletions of them take the same path.
        let is_grant = target.served.group() == rbac::GROUP;
        !self.updates_need_tables(target) && !is_grant && !allocation::is_service(target)
    }

    /// Returns whether other objects decide this change, although they decide few changes of its resource: a plugin
    /// says so, or the change grants a claim access as an administrator, which its namespace must allow.
    pub(super) fn is_decided_by_tables(&self, target: Target<'_>, object: &Value, old: &Value) -> bool {
        self.change_needs_tables(target, object, old) || claim_status::admin_access(target, object, Some(old)).is_some()
    }
}

#[cfg(test)]
#[path = "proof_tests.rs"]
mod tests;
