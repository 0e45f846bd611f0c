//! PodTolerationRestriction: gives pods the tolerations of their namespace, and refuses tolerations that the namespace
//! does not allow.

use flotilla_proto::value;
use flotilla_proto::value::Value;

use crate::admission::plugin::{DecidesBy, Plugin, Presence, ResourcePart};
use crate::admission::tolerations::{are_allowed, defaults_of, merge, whitelist_of};
use crate::admission::{BuiltInAttributes, Operation};
use crate::kinds::core::pod::resources::pod_level::quality_of_service;
use crate::status::{ApiError, ApiResult};

/// The plugin.
pub const PLUGIN: Plugin = Plugin::new("PodTolerationRestriction", Presence::Off)
    .mutating(decides_by, mutate)
    .validating(decides_by, validate);

/// The taint that pods tolerate unless they are of the class BestEffort.
const MEMORY_PRESSURE: &str = "node.kubernetes.io/memory-pressure";

fn decides_by(part: ResourcePart<'_>, operation: Operation) -> Option<DecidesBy> {
    part.is_written(operation, ("", "pods")).then_some(DecidesBy::Tables)
}

fn mutate(write: &BuiltInAttributes<'_>, pod: &mut Value) -> ApiResult<()> {
    let mut more = Vec::new();
    if write.operation == Operation::Create {
        let stated = defaults_of(&namespace(write)?).map_err(ApiError::unknown)?;
        more = stated.unwrap_or_else(|| write.admission.configuration.tolerations.default.clone());
    }
    let class = match pod.str_at(&["status", "qosClass"]) {
        "" => quality_of_service(pod),
        class => class,
    };
    if class != "BestEffort" {
        more.push(value!({"key": MEMORY_PRESSURE, "operator": "Exists", "effect": "NoSchedule"}));
    }
    if !more.is_empty() {
        let merged = merge(pod.list_at(&["spec", "tolerations"]), &more);
        pod.set_at(&["spec", "tolerations"], merged);
    }
    validate(write, pod)
}

fn validate(write: &BuiltInAttributes<'_>, pod: &Value) -> ApiResult<()> {
    let tolerations = pod.list_at(&["spec", "tolerations"]);
    if tolerations.is_empty() {
        return Ok(());
    }
    let stated = whitelist_of(&namespace(write)?).map_err(ApiError::unknown)?;
    let (whitelist, scope) = match &stated {
        Some(whitelist) => (whitelist, "namespace"),
        None => (&write.admission.configuration.tolerations.whitelist, "cluster"),
    };
    match are_allowed(tolerations, whitelist) {
        true => Ok(()),
        false => Err(ApiError::unknown(format!(
            "pod tolerations (possibly merged with namespace default tolerations) conflict with its {scope} whitelist"
        ))),
    }
}

fn namespace(write: &BuiltInAttributes<'_>) -> ApiResult<Value> {
    let name = write.target.namespace;
    write
        .admission
        .tables
        .look_up("", "namespaces", "", name)?
        .ok_or_else(|| ApiError::not_found("", "namespaces", name))
}
