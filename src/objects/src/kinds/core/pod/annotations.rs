//! Annotations of pods that have a meaning for Kubernetes.

use flotilla_proto::json;
use flotilla_proto::value::{Map, Value};

use super::scheduling;
use super::security::app_armor;
use super::spec::for_each_container;
use super::volumes::paths;
use crate::field::{Errors, Path, quote};

/// Marks a mirror pod, which the kubelet creates for one of its static pods.
pub const MIRROR: &str = "kubernetes.io/config.mirror";
const TOLERATIONS: &str = "scheduler.alpha.kubernetes.io/tolerations";
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
/// Seccomp profile of a pod, before the field existed.
pub const SECCOMP_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
/// Beginning of the annotation with the seccomp profile of one container.
pub const SECCOMP_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";
const SECCOMP_LOCALHOST: &str = "localhost/";

/// Returns whether metadata is that of a mirror pod.
pub fn is_mirror(metadata: &Value) -> bool {
    metadata.at(&["annotations", MIRROR]).as_str().is_some()
}

/// Returns whether the deletion cost is absent or a 32-bit integer in plain form.
pub fn is_deletion_cost_valid(annotations: &Value) -> bool {
    annotations.at(&[DELETION_COST]).as_str().is_none_or(|cost| {
        let plain = cost == "0" || cost.starts_with(|c: char| matches!(c, '-' | '1'..='9'));
        plain && cost.parse::<i32>().is_ok()
    })
}

/// Returns whether any annotation states a seccomp or AppArmor profile. Few pods have one, so this mostly saves a
/// search for the annotation of each container.
pub fn concern_security(annotations: &Value) -> bool {
    let prefixes = [SECCOMP_POD, SECCOMP_CONTAINER, app_armor::ANNOTATION_PREFIX];
    let mut keys = annotations.as_object().into_iter().flat_map(Map::keys);
    keys.any(|key| prefixes.iter().any(|prefix| key.starts_with(prefix)))
}

/// Checks the annotations of a pod or template with this spec.
pub fn validate(annotations: &Value, spec: &Value, any_cost: bool, path: &Path<'_>, errors: &mut Errors) {
    let Some(map) = annotations.as_object() else { return };
    if let Some(value) = map.get(MIRROR).filter(|_| spec.str_at(&["nodeName"]).is_empty()) {
        errors.invalid(&path.key(MIRROR), value, "must set spec.nodeName if mirror pod annotation is set");
    }
    tolerations(map, path, errors);
    if !any_cost && !is_deletion_cost_valid(annotations) {
        errors.invalid(&path.key(DELETION_COST), annotations.at(&[DELETION_COST]), "must be a 32bit integer");
    }
    let profiles = map.iter().filter(|(key, _)| key.starts_with(SECCOMP_CONTAINER));
    for (key, value) in map.get(SECCOMP_POD).map(|value| (SECCOMP_POD, value)).into_iter().chain(profiles) {
        seccomp(value.as_str().unwrap_or(""), &path.child(key), errors);
    }
    for (key, value) in map.iter() {
        let Some(name) = key.strip_prefix(app_armor::ANNOTATION_PREFIX) else { continue };
        let mut found = false;
        for_each_container(spec, &Path::root("spec"), |container, _| found |= container.str_at(&["name"]) == name);
        if !found {
            errors.invalid_str(&path.key(key), name, "container not found");
        }
        let profile = value.as_str().unwrap_or("");
        if !app_armor::is_annotation_value(profile) {
            let why = format!("invalid AppArmor profile name: {}", quote(profile));
            errors.invalid_str(&path.key(key), profile, why);
        }
    }
}

fn tolerations(annotations: &Map, path: &Path<'_>, errors: &mut Errors) {
    let text = annotations.get(TOLERATIONS).and_then(Value::as_str).unwrap_or("");
    if text.is_empty() {
        return;
    }
    match json::parse(text.as_bytes()) {
        Ok(Value::Array(list)) => scheduling::validate_tolerations(&list, &path.child(TOLERATIONS), errors),
        Ok(Value::Null) => {}
        Ok(other) => {
            let kind = other.type_name();
            let why = format!("json: cannot unmarshal {kind} into Go value of type []core.Toleration");
            errors.invalid_str(path, TOLERATIONS, why);
        }
        Err(why) => errors.invalid_str(path, TOLERATIONS, why.to_string()),
    }
}

fn seccomp(profile: &str, path: &Path<'_>, errors: &mut Errors) {
    match profile {
        "runtime/default" | "docker/default" | "unconfined" => {}
        _ => match profile.strip_prefix(SECCOMP_LOCALHOST) {
            Some(file) => paths::descending(path, file, errors),
            None => errors.invalid_str(path, profile, "must be a valid seccomp profile"),
        },
    }
}

/// Checks that the annotations for seccomp and AppArmor agree with the fields.
pub fn agree_with_fields(annotations: &Value, spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let Some(map) = annotations.as_object().filter(|_| concern_security(annotations)) else { return };
    let text = |key: &str| map.get(key).and_then(Value::as_str);
    let field = spec.at(&["securityContext", "seccompProfile"]);
    let context = path.child("securityContext");
    if let Some(annotation) = text(SECCOMP_POD) {
        seccomp_agrees(annotation, field, &context.child("seccompProfile"), errors);
    }
    for_each_container(spec, path, |container, path| {
        let name = container.str_at(&["name"]);
        if let Some(annotation) = text(&format!("{SECCOMP_CONTAINER}{name}")) {
            let field = container.at(&["securityContext", "seccompProfile"]);
            let context = path.child("securityContext");
            seccomp_agrees(annotation, field, &context.child("seccompProfile"), errors);
        }
    });
    if spec.str_at(&["os", "name"]) == "windows" {
        return;
    }
    let of_pod = spec.at(&["securityContext", "appArmorProfile"]);
    for_each_container(spec, path, |container, path| {
        let Some(annotation) = text(&format!("{}{}", app_armor::ANNOTATION_PREFIX, container.str_at(&["name"]))) else {
            return;
        };
        let own = container.at(&["securityContext", "appArmorProfile"]);
        let field = if own.is_null() { of_pod } else { own };
        if field.is_null() {
            return;
        }
        if let Err(part) = app_armor::agrees(field, annotation) {
            let what = if part == "type" { "type" } else { "profile" };
            let context = path.child("securityContext");
            let profile = context.child("appArmorProfile");
            errors.forbidden(&profile.child(part), format!("apparmor {what} in annotation and field must match"));
        }
    });
}

fn seccomp_agrees(annotation: &str, field: &Value, path: &Path<'_>, errors: &mut Errors) {
    let same = match field.str_at(&["type"]) {
        "Unconfined" => annotation == "unconfined",
        "RuntimeDefault" => matches!(annotation, "runtime/default" | "docker/default"),
        "Localhost" => match annotation.strip_prefix(SECCOMP_LOCALHOST) {
            Some(file) if field.at(&["localhostProfile"]).as_str() != Some(file) => {
                let why = "seccomp profile in annotation and field must match";
                return errors.forbidden(&path.child("localhostProfile"), why);
            }
            Some(_) => true,
            None => false,
        },
        _ => true,
    };
    if !same {
        errors.forbidden(&path.child("type"), "seccomp type in annotation and field must match");
    }
}

/// Checks that annotations which are immutable after creation did not change.
pub fn validate_change(new: &Value, old: &Value, path: &Path<'_>, errors: &mut Errors) {
    let null = &Value::Null;
    let entries = |map: &Value| map.as_object().cloned().unwrap_or_default();
    for (key, value) in entries(old).iter().filter(|(key, value)| new.get(key).unwrap_or(null) != *value) {
        let _ = value;
        fixed(key, "may not remove or update AppArmor annotations", "remove or update", path, errors);
    }
    for (key, _) in entries(new).iter().filter(|(key, _)| old.get(key).is_none()) {
        fixed(key, "may not add AppArmor annotations", "add", path, errors);
    }
}

fn fixed(key: &str, app_armor_why: &str, verb: &str, path: &Path<'_>, errors: &mut Errors) {
    if key.starts_with(app_armor::ANNOTATION_PREFIX) {
        errors.forbidden(&path.key(key), app_armor_why);
    }
    if key == MIRROR {
        errors.forbidden(&path.key(key), format!("may not {verb} mirror pod annotation"));
    }
}
