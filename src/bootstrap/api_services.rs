//! API services for the group versions that this server serves itself.

use flotilla_proto::value;
use flotilla_proto::value::Value;

use super::{BootstrapInput, BootstrapObject, ReconcileRule};
use crate::discovery::{GroupVersionPriority, priorities};
use crate::embedded::TextError;

/// Returns an API service for each enabled group version.
pub(super) fn objects(input: &BootstrapInput) -> Result<Vec<BootstrapObject>, TextError> {
    let all = priorities()?;
    let on = all.iter().filter(|entry| input.enablement.serves_any(entry.group, entry.version));
    Ok(on.map(|entry| object_of(entry, &input.now)).collect())
}

fn object_of(entry: &GroupVersionPriority<'_>, now: &str) -> BootstrapObject {
    BootstrapObject::new(
        "apiregistration.k8s.io",
        "apiservices",
        local_api_service(entry, "onstart", now),
        ReconcileRule::Spec,
    )
}

/// Returns the API service of a group version that this server serves itself; `managed` is the value of the label that
/// says how it is maintained.
pub fn local_api_service(entry: &GroupVersionPriority<'_>, managed: &str, now: &str) -> Value {
    let mut spec = Value::object();
    if !entry.group.is_empty() {
        spec.set_at(&["group"], entry.group);
    }
    spec.set_at(&["version"], entry.version);
    spec.set_at(&["groupPriorityMinimum"], entry.group_priority);
    spec.set_at(&["versionPriority"], entry.version_priority);
    value!({
        "kind": "APIService",
        "apiVersion": "apiregistration.k8s.io/v1",
        "metadata": {
            "name": (format!("{}.{}", entry.version, entry.group)),
            "labels": {"kube-aggregator.kubernetes.io/automanaged": managed}
        },
        "spec": spec,
        "status": {"conditions": [{
            "type": "Available",
            "status": "True",
            "lastTransitionTime": now,
            "reason": "Local",
            "message": "Local APIServices are always available"
        }]}
    })
}
