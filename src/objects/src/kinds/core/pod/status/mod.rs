//! Preparation and validation of writes to a pod's status. `conditions` makes the conditions that the server writes.

pub(super) mod conditions;

use std::collections::HashSet;

use flotilla_proto::value::{Map, Value};

use super::spec::Options;
use super::{dropped, security, update};
use crate::field::{Errors, Path};
use crate::rules::defaulting::{object, objects};
use crate::rules::restore::keep;
use crate::rules::{addresses, names};

/// Longest message of a device's health, in bytes.
const HEALTH_MESSAGE_BYTES_MAX: usize = 1024;
const STATES: [&str; 3] = ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"];

/// Restores the fields that a status write cannot change.
pub fn prepare(pod: &mut Value, old: &Value) {
    if pod.str_at(&["status", "qosClass"]).is_empty() {
        keep(pod, old, &["status", "qosClass"]);
    }
    keep(pod, old, &["metadata", "ownerReferences"]);
    keep_observed_generations(pod, old);
    dropped::drop_from_status(pod, old);
}

/// Keeps the observed generations of the pod and of its conditions if the client does not send them.
fn keep_observed_generations(pod: &mut Value, old: &Value) {
    const KEY: &str = "observedGeneration";
    let Some(status) = pod.as_object_mut().and_then(|pod| object(pod, "status")) else { return };
    let observed = |value: &Value| value.int_at(&[KEY]).unwrap_or(0);
    let fill = |holder: &mut Map, generation: i64| {
        if generation != 0 && holder.get(KEY).and_then(Value::as_int).unwrap_or(0) == 0 {
            holder.insert(KEY, generation);
        }
    };
    fill(status, observed(old.at(&["status"])));
    let mut left: Vec<(&str, i64)> = old
        .list_at(&["status", "conditions"])
        .iter()
        .map(|condition| (condition.str_at(&["type"]), observed(condition)))
        .collect();
    for condition in objects(status, "conditions") {
        let kind = condition.get("type").and_then(Value::as_str).unwrap_or("");
        if let Some(at) = left.iter().position(|(other, _)| *other == kind) {
            let (_, generation) = left.remove(at);
            fill(condition, generation);
        }
    }
}

/// Checks a status write.
pub fn validate(pod: &Value, old: &Value, errors: &mut Errors) {
    update::annotation_change(pod, old, &Options::of_update(pod, old), errors);
    let status = pod.at(&["status"]);
    let path = Path::root("status");
    conditions(status.list_at(&["conditions"]), &path.child("conditions"), errors);
    nominated_node(pod, old, &path.child("nominatedNodeName"), errors);
    let generation = status.int_at(&["observedGeneration"]).unwrap_or(0);
    if generation < 0 {
        errors.invalid(&path.child("observedGeneration"), &generation.into(), "must be a non-negative integer");
    }
    let (class, old_class) = (status.at(&["qosClass"]), old.at(&["status", "qosClass"]));
    if class.as_str().unwrap_or("") != old_class.as_str().unwrap_or("") {
        errors.invalid_str(&path.child("qosClass"), class.as_str().unwrap_or(""), "field is immutable");
    }
    transitions(pod, old, &path, errors);
    resource_claims(pod, &path.child("resourceClaimStatuses"), errors);
    extended_claims(pod, &path.child("extendedResourceClaimStatus"), errors);
    pod_ips(status, old, &path, errors);
    host_ips(status, old, &path, errors);
    for list in STATES {
        users(pod, list, &path.child(list), errors);
    }
    allocated(pod, "containerStatuses", "containers", &path, errors);
    allocated(pod, "initContainerStatuses", "initContainers", &path, errors);
    let ephemeral = path.child("ephemeralContainerStatuses");
    for (n, container) in status.list_at(&["ephemeralContainerStatuses"]).iter().enumerate() {
        if !container.list_at(&["allocatedResourcesStatus"]).is_empty() {
            let why = "must not be specified in container status";
            errors.forbidden(&ephemeral.index(n).child("allocatedResourcesStatus"), why);
        }
    }
}

fn conditions(conditions: &[Value], path: &Path<'_>, errors: &mut Errors) {
    for (n, condition) in conditions.iter().enumerate() {
        let path = path.index(n);
        let generation = condition.int_at(&["observedGeneration"]).unwrap_or(0);
        if generation < 0 {
            errors.invalid(&path.child("observedGeneration"), &generation.into(), "must be a non-negative integer");
        }
        let kind = condition.str_at(&["type"]);
        if !matches!(kind, "PodScheduled" | "Ready" | "Initialized") {
            names::check(&path.child("Type"), kind, names::qualified_name, errors);
        }
    }
}

fn nominated_node(pod: &Value, old: &Value, path: &Path<'_>, errors: &mut Errors) {
    let of = |pod: &'_ Value| pod.str_at(&["status", "nominatedNodeName"]).to_owned();
    let name = of(pod);
    if name == of(old) || name.is_empty() {
        return;
    }
    names::check(path, &name, names::dns1123_subdomain, errors);
    if !old.str_at(&["spec", "nodeName"]).is_empty() {
        errors.forbidden(path, "may not be set on pods that are already bound to a node");
    }
}

/// Checks that a terminated container stays terminated, unless its restart policy allows a restart.
fn transitions(pod: &Value, old: &Value, path: &Path<'_>, errors: &mut Errors) {
    let mut before = STATES.iter().flat_map(|list| old.list_at(&["status", list]));
    if before.all(|status| status.at(&["state", "terminated"]).is_null()) {
        return;
    }
    let spec = old.at(&["spec"]);
    let lists = [("containerStatuses", "containers"), ("initContainerStatuses", "initContainers")];
    let restarts_all = lists.iter().flat_map(|(_, list)| spec.list_at(&[list])).any(|container| {
        let rules = container.list_at(&["restartPolicyRules"]);
        rules.iter().any(|rule| rule.str_at(&["action"]) == "RestartAllContainers")
    });
    for (statuses, list) in lists.into_iter().chain([("ephemeralContainerStatuses", "")]) {
        if restarts_all && !list.is_empty() {
            continue;
        }
        let path = path.child(statuses);
        for (n, was) in old.list_at(&["status", statuses]).iter().enumerate() {
            let ended = was.at(&["state", "terminated"]);
            if ended.is_null() {
                continue;
            }
            let name = was.str_at(&["name"]);
            let runs = |status: &Value| status.at(&["state", "terminated"]).is_null();
            let mut same = pod.list_at(&["status", statuses]).iter().filter(|status| status.str_at(&["name"]) == name);
            let code = ended.int_at(&["exitCode"]).unwrap_or(0);
            let container = spec.list_at(&[list]).iter().find(|container| container.str_at(&["name"]) == name);
            if same.any(runs) && !container.is_some_and(|container| may_restart(container, spec, code)) {
                errors.forbidden(&path.index(n).child("state"), "may not be transitioned to non-terminated state");
            }
        }
    }
}

fn may_restart(container: &Value, spec: &Value, code: i64) -> bool {
    let by_policy = |policy: &str| match policy {
        "OnFailure" => code != 0,
        "Never" => false,
        _ => true,
    };
    let Some(own) = container.at(&["restartPolicy"]).as_str() else {
        return by_policy(spec.str_at(&["restartPolicy"]));
    };
    let rule = container.list_at(&["restartPolicyRules"]).iter().find(|rule| {
        let listed = rule.list_at(&["exitCodes", "values"]).iter().any(|value| value.as_int() == Some(code));
        match rule.str_at(&["exitCodes", "operator"]) {
            "In" => listed,
            "NotIn" => !listed,
            _ => false,
        }
    });
    let restarts = |rule: &Value| matches!(rule.str_at(&["action"]), "Restart" | "RestartAllContainers");
    rule.is_some_and(restarts) || by_policy(own)
}

fn resource_claims(pod: &Value, path: &Path<'_>, errors: &mut Errors) {
    let claims = pod.list_at(&["spec", "resourceClaims"]);
    let mut seen = HashSet::new();
    for (n, status) in pod.list_at(&["status", "resourceClaimStatuses"]).iter().enumerate() {
        let path = path.index(n);
        let name = status.str_at(&["name"]);
        if !claims.iter().any(|claim| claim.str_at(&["name"]) == name) {
            let why = "must match the name of an entry in `spec.resourceClaims`";
            errors.invalid_str(&path.child("name"), name, why);
        }
        if !seen.insert(name) {
            errors.duplicate(&path.child("name"), &name.into());
        }
        if let Some(claim) = status.at(&["resourceClaimName"]).as_str() {
            names::check(&path.child("resourceClaimName"), claim, names::dns1123_subdomain, errors);
        }
    }
}

fn extended_claims(pod: &Value, path: &Path<'_>, errors: &mut Errors) {
    const UNKNOWN_RESOURCE: &str = "must match the extended resource name of an entry in \
        spec.initContainers.resources.requests or spec.containers.resources.requests";
    const UNKNOWN_CONTAINER: &str =
        "must match the name of an entry in spec.initContainers.name or spec.containers.name";
    let status = pod.at(&["status", "extendedResourceClaimStatus"]);
    if status.is_null() {
        return;
    }
    let mappings_path = path.child("requestMappings");
    let mappings = status.list_at(&["requestMappings"]);
    if mappings.is_empty() {
        errors.required(&mappings_path, "at least one request mapping is required");
    }
    let lists = ["containers", "initContainers"].map(|list| pod.list_at(&["spec", list]));
    let mut seen = HashSet::new();
    for (n, mapping) in mappings.iter().enumerate() {
        let item = mappings_path.index(n);
        let key = ["containerName", "resourceName", "requestName"].map(|key| mapping.str_at(&[key]));
        match lists.iter().copied().flatten().find(|container| container.str_at(&["name"]) == key[0]) {
            None => errors.invalid_str(&item.child("containerName"), key[0], UNKNOWN_CONTAINER),
            Some(container) if container.at(&["resources", "requests", key[1]]).is_null() => {
                errors.invalid_str(&item.child("resourceName"), key[1], UNKNOWN_RESOURCE);
            }
            Some(_) => {}
        }
        names::check(&path.child("requestName"), key[2], names::dns1123_label, errors);
        if !seen.insert(key) {
            for (name, value) in ["containerName", "resourceName", "requestName"].into_iter().zip(key) {
                errors.duplicate(&item.child(name), &value.into());
            }
        }
    }
    match status.str_at(&["resourceClaimName"]) {
        "" => errors.required(&path.child("resourceClaimName"), ""),
        name => names::check(&path.child("resourceClaimName"), name, names::dns1123_subdomain, errors),
    }
}

/// Returns the addresses in a list of `{ip}`.
fn ips(list: &[Value]) -> Vec<Value> {
    list.iter().map(|entry| entry.at(&["ip"]).clone()).collect()
}

/// Checks that there is at most one address of each family.
fn one_per_family(list: &Value, structure: &str, path: &Path<'_>, errors: &mut Errors) {
    let entries = list.as_array().unwrap_or(&[]);
    if entries.len() < 2 {
        return;
    }
    let families: Vec<_> = entries.iter().map(|entry| addresses::family(entry.str_at(&["ip"]))).collect();
    if let Some(bad) = families.iter().position(Option::is_none) {
        let ip = entries[bad].str_at(&["ip"]);
        let why = format!("failed to check for dual stack with error:invalid IP[{bad}]: {ip}");
        errors.push(crate::field::ErrorKind::Internal, path, "", why);
    }
    let same = families.windows(2).all(|pair| pair[0] == pair[1]);
    if entries.len() > 2 || same || families.contains(&None) {
        let shown: Vec<String> = entries.iter().map(|entry| crate::rules::shown::text(structure, entry)).collect();
        let why = "may specify no more than one IP for each IP family";
        errors.push(crate::field::ErrorKind::Invalid, path, format!("[{}]", shown.join(",")), why);
    }
}

fn pod_ips(status: &Value, old: &Value, path: &Path<'_>, errors: &mut Errors) {
    let path = path.child("podIPs");
    let known = ips(old.list_at(&["status", "podIPs"]));
    for (n, entry) in status.list_at(&["podIPs"]).iter().enumerate() {
        addresses::check_legacy(&path.index(n), entry.str_at(&["ip"]), &known, errors);
    }
    one_per_family(status.at(&["podIPs"]), "PodIP", &path, errors);
}

fn host_ips(status: &Value, old: &Value, path: &Path<'_>, errors: &mut Errors) {
    let list = status.list_at(&["hostIPs"]);
    let Some(first) = list.first() else { return };
    let path = path.child("hostIPs");
    let ip = first.str_at(&["ip"]);
    if status.str_at(&["hostIP"]) != ip {
        errors.invalid_str(&path.index(0).child("ip"), ip, "must be equal to `hostIP`");
    }
    let known = ips(old.list_at(&["status", "hostIPs"]));
    for (n, entry) in list.iter().enumerate() {
        addresses::check_legacy(&path.index(n), entry.str_at(&["ip"]), &known, errors);
    }
    one_per_family(status.at(&["hostIPs"]), "HostIP", &path, errors);
}

fn users(pod: &Value, list: &str, path: &Path<'_>, errors: &mut Errors) {
    let os = match pod.at(&["spec", "os"]) {
        Value::Null => "linux",
        os => os.str_at(&["name"]),
    };
    for (n, status) in pod.list_at(&["status", list]).iter().enumerate() {
        let user = status.at(&["user", "linux"]);
        if user.is_null() {
            continue;
        }
        let item = path.index(n);
        let user_path = item.child("user");
        let path = user_path.child("linux");
        match os {
            "windows" => errors.forbidden(&path, "cannot be set for a windows pod"),
            "linux" => {
                security::id(&path.child("uid"), user.at(&["uid"]), errors);
                security::id(&path.child("gid"), user.at(&["gid"]), errors);
                let groups = path.child("supplementalGroups");
                for (n, group) in user.list_at(&["supplementalGroups"]).iter().enumerate() {
                    security::id(&groups.index(n), group, errors);
                }
            }
            _ => {}
        }
    }
}

fn allocated(pod: &Value, statuses: &str, containers: &str, path: &Path<'_>, errors: &mut Errors) {
    let path = path.child(statuses);
    for (n, status) in pod.list_at(&["status", statuses]).iter().enumerate() {
        let resources = status.list_at(&["allocatedResourcesStatus"]);
        if resources.is_empty() {
            continue;
        }
        let item = path.index(n);
        let path = item.child("allocatedResourcesStatus");
        let name = status.str_at(&["name"]);
        let containers = pod.list_at(&["spec", containers]);
        let container = containers.iter().find(|container| container.str_at(&["name"]) == name);
        for (n, resource) in resources.iter().enumerate() {
            let path = path.index(n);
            if let Some(container) = container {
                allocated_name(resource.str_at(&["name"]), container, &path.child("name"), errors);
            }
            health(resource.list_at(&["resources"]), &path.child("resources"), errors);
        }
    }
}

fn allocated_name(name: &str, container: &Value, path: &Path<'_>, errors: &mut Errors) {
    let (known, why) = match name.strip_prefix("claim:") {
        Some(name) => {
            let known = container.list_at(&["resources", "claims"]).iter().any(|claim| {
                let request = claim.str_at(&["request"]);
                let rest = name.strip_prefix(claim.str_at(&["name"]));
                rest.is_some_and(|rest| {
                    if request.is_empty() { rest.is_empty() } else { rest.strip_prefix('/') == Some(request) }
                })
            });
            let form = "'claim:<claimName>/<request>' or 'claim:<claimName>' if request is empty";
            (known, format!("must match one of the container's resource claims in a format {form}"))
        }
        None => {
            let requests = container.map_at(&["resources", "requests"]);
            let known = requests.is_some_and(|requests| requests.contains_key(name));
            (known, "must match one of the container's resource requests".to_owned())
        }
    };
    if !known {
        errors.invalid_str(path, name, why);
    }
}

fn health(devices: &[Value], path: &Path<'_>, errors: &mut Errors) {
    let mut seen = HashSet::new();
    for (n, device) in devices.iter().enumerate() {
        let path = path.index(n);
        let state = device.str_at(&["health"]);
        let states = ["Healthy", "Unhealthy", "Unknown"];
        if !states.contains(&state) {
            errors.not_supported(&path.child("health"), state, &states);
        }
        match device.at(&["message"]).as_str() {
            Some("") => errors.required(&path.child("message"), "must be non-empty if specified"),
            Some(text) if text.len() > HEALTH_MESSAGE_BYTES_MAX => {
                errors.too_long(&path.child("message"), HEALTH_MESSAGE_BYTES_MAX);
            }
            _ => {}
        }
        let id = device.str_at(&["resourceID"]);
        if !seen.insert(id) {
            errors.duplicate(&path.child("resourceID"), &id.into());
        }
    }
}

/// Warns of addresses that are not written canonically.
pub fn warn(pod: &Value, into: &mut Vec<String>) {
    let status = Path::root("status");
    for list in ["podIPs", "hostIPs"] {
        let path = status.child(list);
        for (n, entry) in pod.list_at(&["status", list]).iter().enumerate() {
            addresses::warn_address(&path.index(n).child("ip"), entry.str_at(&["ip"]), into);
        }
    }
}
