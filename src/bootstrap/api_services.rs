//! API services of the group versions that this server serves itself, and the order that they give discovery.

use flotilla_proto::value;
use flotilla_proto::value::Value;

use super::text::{TextError, lines};
use super::{BootstrapInput, Seed, Upkeep};

/// How a group version ranks among the others; higher comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupVersionPriority<'a> {
    /// API group; empty for the core group.
    pub group: &'a str,
    /// API version.
    pub version: &'a str,
    /// Rank of the group (`groupPriorityMinimum`).
    pub group_priority: i64,
    /// Rank of the version within its group (`versionPriority`).
    pub version_priority: i64,
}

/// The built-in group versions with their ranks, in the order of discovery. `apiregistration.k8s.io`, which comes
/// before all of them, has no API service and is not listed.
///
/// # Errors
/// When the embedded table does not parse, which the tests of this module rule out.
pub fn priorities() -> Result<Vec<GroupVersionPriority<'static>>, TextError> {
    lines("api services", include_str!("api_services.txt"))
        .map(|line| {
            let group = line.word(0)?;
            Ok(GroupVersionPriority {
                group: if group == "core" { "" } else { group },
                version: line.word(1)?,
                group_priority: line.number(2)?,
                version_priority: line.number(3)?,
            })
        })
        .collect()
}

/// One API service per group version that is switched on.
pub(super) fn seeds(input: &BootstrapInput) -> Result<Vec<Seed>, TextError> {
    let all = priorities()?;
    let on = all.iter().filter(|entry| input.enablement.serves_any(entry.group, entry.version));
    Ok(on.map(|entry| seed(entry, &input.now)).collect())
}

fn seed(entry: &GroupVersionPriority<'_>, now: &str) -> Seed {
    Seed::new("apiregistration.k8s.io", "apiservices", local_api_service(entry, "onstart", now), Upkeep::Spec)
}

/// The API service of a group version that this server serves itself; `managed` says how it is kept.
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
