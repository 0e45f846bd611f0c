//! Says which decisions depend only on the object that is written. The store proves these: it makes the write only if
//! the object is still the same.

use flotilla_proto::value::Value;

use super::{Registry, Target, allocation, claim_status};
use crate::access::rbac;

impl Registry {
    /// Returns whether decisions about updates and deletions depend on the object alone, apart from the updates for
    /// which [`Registry::is_decided_by_tables`] returns true. The store then proves a decision: it makes the write only
    /// if the object is still the same.
    pub fn is_proved_by_writing(&self, target: Target<'_>) -> bool {
        // Whether a user may grant permissions depends on all roles and bindings. Their deletions take the same path.
        let is_grant = target.served.group() == rbac::GROUP;
        !self.admission.updates_need_tables(target) && !is_grant && !allocation::is_service(target)
    }

    /// Returns whether the decision about this change depends on other objects, as it does for few changes of the
    /// resource: if a plugin says so, or if the change grants a claim the access of an administrator, which the
    /// namespace of the claim must allow.
    pub(super) fn is_decided_by_tables(&self, target: Target<'_>, object: &Value, old: &Value) -> bool {
        self.admission.change_needs_tables(target, object, old)
            || claim_status::admin_access(target, object, Some(old)).is_some()
    }
}

#[cfg(test)]
#[path = "proof_tests.rs"]
mod tests;
