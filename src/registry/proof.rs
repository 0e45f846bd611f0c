//! Says which decisions depend only on the object that is written. The store proves these: it makes the write only if
//! the object is still the same.

use flotilla_proto::value::Value;

use super::{Registry, Target};
use crate::rules::UpdateBasis;

impl Registry {
    /// Returns whether decisions about updates and deletions depend on the object alone, apart from the updates for
    /// which [`Registry::is_decided_by_tables`] returns true. The store then proves a decision: it makes the write only
    /// if the object is unchanged.
    pub fn is_proved_by_writing(&self, target: Target<'_>) -> bool {
        let needs_tables = matches!(target.served.strategy.update_basis, UpdateBasis::Tables);
        !needs_tables && !self.admission.updates_need_tables(target)
    }

    /// Returns whether the decision about this change depends on other objects, because a plugin or the strategy of the
    /// kind says this. Few changes of the resource are decided in this way.
    pub(super) fn is_decided_by_tables(&self, target: Target<'_>, object: &Value, old: &Value) -> bool {
        let needs_tables = match target.served.strategy.update_basis {
            UpdateBasis::TablesFor(holds) => holds(target.subresource, object, old),
            UpdateBasis::Tables | UpdateBasis::Object => false,
        };
        needs_tables || self.admission.change_needs_tables(target, object, old)
    }
}

#[cfg(test)]
#[path = "proof_tests.rs"]
mod tests;
