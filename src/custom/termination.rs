//! The deletion of a definition, which stays until its objects are deleted.

use flotilla_proto::value;
use flotilla_proto::value::Value;

use crate::rules::conditions;

/// The finalizer that holds a definition until its objects are deleted.
pub const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// The stage of the deletion of a definition, as its condition `Terminating` shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TerminationStage {
    /// It is marked for deletion.
    Pending,
    /// Its objects are being deleted.
    InProgress,
    /// All of them are gone.
    Completed,
}

impl TerminationStage {
    /// Writes the condition into the status of a definition.
    pub fn tell(self, definition: &mut Value, now: &str) {
        let (status, reason, message) = match self {
            Self::Pending => (
                "True",
                "InstanceDeletionPending",
                "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
            ),
            Self::InProgress => ("True", "InstanceDeletionInProgress", "CustomResource deletion is in progress"),
            Self::Completed => ("False", "InstanceDeletionCompleted", "removed all instances"),
        };
        let condition = value!({
            "type": "Terminating", "status": status, "lastTransitionTime": now, "reason": reason, "message": message
        });
        conditions::set(definition, condition);
    }
}

/// Returns a definition marked for deletion. It stays until its objects are deleted.
pub fn marked(definition: &Value, now: &str) -> Value {
    let mut marked = definition.clone();
    marked.set_at(&["metadata", "deletionTimestamp"], now);
    let mut finalizers = marked.list_at(&["metadata", "finalizers"]).to_vec();
    if !finalizers.iter().any(|one| one.as_str() == Some(CLEANUP)) {
        finalizers.push(CLEANUP.into());
    }
    marked.set_at(&["metadata", "finalizers"], finalizers);
    TerminationStage::Pending.tell(&mut marked, now);
    marked
}
