//! The end of a definition: its objects are deleted before it is.

use flotilla_proto::value::Value;

use super::conditions::{Condition, set};

/// The finalizer that stands for the objects of a definition.
pub const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";
/// The condition that tells of the end.
const TERMINATING: &str = "Terminating";

/// What is told once a definition is marked for deletion.
const PENDING: Condition<'static> = Condition {
    kind: TERMINATING,
    status: true,
    reason: "InstanceDeletionPending",
    message: "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
};
/// While its objects are being deleted.
pub const IN_PROGRESS: Condition<'static> = Condition {
    kind: TERMINATING,
    status: true,
    reason: "InstanceDeletionInProgress",
    message: "CustomResource deletion is in progress",
};
/// Once all of them are gone.
pub const COMPLETED: Condition<'static> = Condition {
    kind: TERMINATING,
    status: false,
    reason: "InstanceDeletionCompleted",
    message: "removed all instances",
};

/// A definition as it is once its deletion was asked for: it goes when its objects have.
pub fn marked(definition: &Value, now: &str) -> Value {
    let mut marked = definition.clone();
    marked.set_at(&["metadata", "deletionTimestamp"], now);
    let mut finalizers = marked.list_at(&["metadata", "finalizers"]).to_vec();
    if !finalizers.iter().any(|one| one.as_str() == Some(CLEANUP)) {
        finalizers.push(CLEANUP.into());
    }
    marked.set_at(&["metadata", "finalizers"], finalizers);
    set(&mut marked, PENDING, now);
    marked
}
