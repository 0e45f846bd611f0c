//! The `resize` subresource: CPU and memory of running containers (KEP-1287).

use flotilla_proto::value::{Map, Value};

use crate::field::{Errors, Path};
use crate::kinds::core::pod::resources::pod_level;
use crate::kinds::core::pod::{annotations, dropped, update};
use crate::kinds::templates;
use crate::rules::restore::{keep, keep_metadata, put};
use crate::rules::semantic;

const LISTS: [&str; 2] = ["containers", "initContainers"];
const RESOURCES: [&str; 2] = ["spec", "resources"];

fn list<'a>(pod: &'a Value, list: &str) -> &'a [Value] {
    pod.list_at(&["spec", list])
}

/// Restores everything except resources and resize policies from the old pod, unless the names of the containers
/// differ.
pub fn prepare(pod: &mut Value, old: &Value) {
    if LISTS.iter().all(|key| list(pod, key).len() == list(old, key).len()) {
        let resources = pod.at(&RESOURCES).clone();
        let merged = LISTS.map(|key| merge(list(pod, key), list(old, key)));
        for part in ["spec", "status"] {
            keep(pod, old, &[part]);
        }
        keep_metadata(pod, old);
        put(pod, &RESOURCES, &resources);
        for (key, containers) in LISTS.into_iter().zip(merged) {
            if !containers.is_empty() {
                pod.set_at(&["spec", key], containers);
            }
        }
    }
    dropped::drop_from_spec(pod, Some(old), &["spec"]);
    templates::set_generation(pod, old, !semantic::equal_at(pod, old, &["spec"]));
}

/// Returns the old containers with the new resources. If their names differ, returns the new containers, which
/// validation then refuses.
fn merge(new: &[Value], old: &[Value]) -> Vec<Value> {
    let name = |container: &Value| container.str_at(&["name"]).to_owned();
    if new.iter().zip(old).any(|(new, old)| name(new) != name(old)) {
        return new.to_vec();
    }
    let merge = |(new, old): (&Value, &Value)| {
        let mut merged = old.clone();
        for key in ["resources", "resizePolicy"] {
            put(&mut merged, &[key], new.at(&[key]));
        }
        merged
    };
    new.iter().zip(old).map(merge).collect()
}

/// Checks a resize.
pub fn validate(pod: &Value, old: &Value, errors: &mut Errors) {
    let alone = if annotations::is_mirror(old.at(&["metadata"])) {
        Some("static pods cannot be resized")
    } else if old.str_at(&["spec", "os", "name"]) == "windows" {
        Some("windows pods cannot be resized")
    } else {
        None
    };
    if let Some(why) = alone {
        *errors = Errors::default();
        return errors.forbidden(&Path::root("[]"), why);
    }
    update::common(pod, old, errors);
    let path = Path::root("spec");
    let class = match old.str_at(&["status", "qosClass"]) {
        "" => pod_level::quality_of_service(old),
        class => class,
    };
    if class != pod_level::quality_of_service(pod) {
        let shown = pod.str_at(&["status", "qosClass"]);
        errors.invalid_str(&path, shown, "Pod QOS Class may not change as a result of resizing");
    }
    if !is_supported_by_node(old) {
        errors.forbidden(&path, "Pod running on node without support for resize");
    }
    let mut munged = Value::object();
    munged.set_at(&["spec"], pod.at(&["spec"]).clone());
    pod_level(pod, old, &mut munged, &path, errors);
    if !old.list_at(&["status", "nodeAllocatableResourceClaimStatuses"]).is_empty() {
        errors.forbidden(&path, "pods with node allocatable resource claims cannot be resized");
    }
    if is_reordered(pod, old, &path, errors) {
        return;
    }
    for key in ["initContainers", "containers"] {
        let path = path.child(key);
        for (n, (new, old)) in list(pod, key).iter().zip(list(old, key)).enumerate() {
            nothing_removed(new, old, &path.index(n), errors);
        }
    }
    containers(&mut munged, old, &path, errors);
    init_containers(&mut munged, old, &path, errors);
    if errors.is_empty() && !semantic::equal_at(&munged, old, &["spec"]) {
        errors.forbidden(&path, "only cpu and memory resources are mutable");
    }
}

fn is_supported_by_node(pod: &Value) -> bool {
    let mut statuses = pod.list_at(&["status", "containerStatuses"]).iter();
    statuses
        .find(|status| !status.at(&["state", "running"]).is_null())
        .is_none_or(|status| status.get("resources").is_some())
}

fn has_own_resources(pod: &Value) -> bool {
    ["requests", "limits"]
        .iter()
        .any(|key| pod.map_at(&["spec", "resources", key]).is_some_and(|list| !list.is_empty()))
}

fn is_removed(new: Option<&Map>, old: Option<&Map>) -> bool {
    old.is_some_and(|old| old.keys().any(|name| !new.is_some_and(|new| new.contains_key(name))))
}

fn pod_level(pod: &Value, old: &Value, munged: &mut Value, path: &Path<'_>, errors: &mut Errors) {
    if !has_own_resources(pod) && !has_own_resources(old) {
        return;
    }
    let (new, was) = (pod.at(&RESOURCES), old.at(&RESOURCES));
    let resources = path.child("resources");
    if !was.is_null() {
        if new.is_null() {
            return errors.forbidden(&resources, "pod-level resources cannot be removed");
        }
        for key in ["requests", "limits"] {
            if is_removed(new.map_at(&[key]), was.map_at(&[key])) {
                errors.forbidden(&resources.child(key), format!("pod-level resource {key} cannot be removed"));
            }
        }
    }
    let mut kept = new.clone();
    drop_compute(&mut kept, was);
    if was.is_null() && kept.as_object().is_some_and(|kept| kept.is_empty()) {
        kept = Value::Null;
    }
    if !semantic::equal(&kept, was) {
        errors.forbidden(path, "only cpu and memory resources are mutable at pod-level");
    }
    put(munged, &RESOURCES, &kept);
}

/// Restores the old CPU and memory.
fn drop_compute(resources: &mut Value, old: &Value) {
    for list in ["limits", "requests"] {
        for name in ["cpu", "memory"] {
            put(resources, &[list, name], old.at(&[list, name]));
        }
        if resources.map_at(&[list]).is_some_and(Map::is_empty) && old.at(&[list]).is_null() {
            resources.remove_at(&[list]);
        }
    }
}

fn is_reordered(pod: &Value, old: &Value, path: &Path<'_>, errors: &mut Errors) -> bool {
    let before = errors.0.len();
    for key in LISTS {
        let path = path.child(key);
        let (new, was) = (list(pod, key), list(old, key));
        if new.len() != was.len() {
            errors.forbidden(&path, format!("{key} may not be added or removed on resize"));
            continue;
        }
        for (n, (new, was)) in new.iter().zip(was).enumerate() {
            if new.str_at(&["name"]) != was.str_at(&["name"]) {
                let why = format!("{key} may not be renamed or reordered on resize");
                errors.forbidden(&path.index(n).child("name"), why);
            }
        }
    }
    errors.0.len() > before
}

fn nothing_removed(new: &Value, old: &Value, path: &Path<'_>, errors: &mut Errors) {
    let path = path.child("resources");
    for key in ["requests", "limits"] {
        if is_removed(new.map_at(&["resources", key]), old.map_at(&["resources", key])) {
            errors.forbidden(&path.child(key), format!("resource {key} cannot be removed"));
        }
    }
}

/// Restores the old CPU and memory of a container, and drops its claims, for a comparison of the rest.
fn without_compute(container: &mut Value, old: &Value) {
    if container.at(&["resources"]).is_null() {
        container.set_at(&["resources"], Value::object());
    }
    container.remove_at(&["resources", "claims"]);
    if let Some(resources) = container.get_mut("resources") {
        drop_compute(resources, old.at(&["resources"]));
    }
}

fn each_of<'a>(pod: &'a mut Value, key: &str) -> impl Iterator<Item = &'a mut Value> {
    let list = pod.get_mut("spec").and_then(|spec| spec.get_mut(key)).and_then(Value::as_array_mut);
    list.into_iter().flatten()
}

fn containers(munged: &mut Value, old: &Value, path: &Path<'_>, errors: &mut Errors) {
    for (container, old) in each_of(munged, "containers").zip(list(old, "containers")) {
        without_compute(container, old);
        if !semantic::equal(container, old) {
            errors.forbidden(path, "only cpu and memory resources are mutable");
        }
    }
}

fn init_containers(munged: &mut Value, old: &Value, path: &Path<'_>, errors: &mut Errors) {
    let path = path.child("initContainers");
    for (n, (container, old)) in each_of(munged, "initContainers").zip(list(old, "initContainers")).enumerate() {
        let modified = !semantic::equal(container, old);
        without_compute(container, old);
        if !semantic::equal(container, old) {
            let why = "only cpu and memory resources for init or sidecar containers are mutable";
            errors.forbidden(&path.index(n), why);
        }
        if !modified || container.str_at(&["restartPolicy"]) == "Always" {
            continue;
        }
        for policy in container.list_at(&["resizePolicy"]) {
            if policy.str_at(&["restartPolicy"]) == "RestartContainer" {
                let why = "non-sidecar init containers with a resize policy of RestartContainer cannot be resized";
                errors.forbidden(&path.index(n), why);
            }
        }
    }
}
