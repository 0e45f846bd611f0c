//! Validation of environment variables and their sources.

use flotilla_proto::value::Value;

use crate::field::{Errors, Path};
use crate::kinds::core::pod::volumes::paths;
use crate::rules::{names, resources};

/// Fields of a pod that an environment variable can refer to.
const ENV_FIELDS: [&str; 9] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
/// Fields of a pod that a file of a volume can refer to.
pub const FILE_FIELDS: [&str; 5] =
    ["metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"];
/// All fields of a pod that references can name.
const NAMED_FIELDS: [&str; 14] = [
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.serviceAccountName",
    "spec.schedulerName",
    "status.phase",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
/// Resources of a container that a variable or file can refer to.
const RESOURCES: [&str; 6] = [
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];
const HUGE_PAGES: [&str; 2] = ["limits.hugepages-", "requests.hugepages-"];
const BYTE_DIVISORS: [&str; 13] = ["1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"];
const SOURCES: [&str; 5] = ["fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"];

/// Checks `env`.
pub fn validate(variables: &[Value], path: &Path<'_>, errors: &mut Errors) {
    for (n, variable) in variables.iter().enumerate() {
        let path = path.index(n);
        let name = variable.str_at(&["name"]);
        if name.is_empty() {
            errors.required(&path.child("name"), "");
        } else {
            names::check(&path.child("name"), name, names::env_name, errors);
        }
        let source = variable.at(&["valueFrom"]);
        if !source.is_null() {
            value_from(source, !variable.str_at(&["value"]).is_empty(), &path.child("valueFrom"), errors);
        }
    }
}

fn value_from(source: &Value, has_value: bool, path: &Path<'_>, errors: &mut Errors) {
    let mut count = 0;
    for key in SOURCES {
        let reference = source.at(&[key]);
        if reference.is_null() {
            continue;
        }
        count += 1;
        let path = path.child(key);
        match key {
            "fieldRef" => field_selector(reference, &ENV_FIELDS, &path, errors),
            "resourceFieldRef" => resource_selector(reference, &path, false, errors),
            "fileKeyRef" => file_selector(reference, &path, errors),
            _ => key_selector(reference, &path, errors),
        }
    }
    let why = match (count, has_value) {
        (0, _) => {
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        }
        (_, true) => "may not be specified when `value` is not empty",
        (1, false) => return,
        _ => "may not have more than one field specified at a time",
    };
    errors.invalid_str(path, "", why);
}

/// Splits `metadata.labels['x']` into path and subscript.
fn subscripted(path: &str) -> Option<(&str, &str)> {
    path.strip_suffix("']")?.split_once("['").filter(|(path, _)| !path.is_empty())
}

/// Checks a reference to a field of the pod.
pub fn field_selector(selector: &Value, allowed: &[&str], path: &Path<'_>, errors: &mut Errors) {
    let version = selector.str_at(&["apiVersion"]);
    if version.is_empty() {
        return errors.required(&path.child("apiVersion"), "");
    }
    let field = selector.str_at(&["fieldPath"]);
    let field_path = path.child("fieldPath");
    if field.is_empty() {
        return errors.required(&field_path, "");
    }
    let known = match subscripted(field) {
        _ if version != "v1" => Err(format!("unsupported pod version: {version}")),
        Some(("metadata.annotations" | "metadata.labels", _)) => Ok(field),
        Some(_) => Err(format!("field label does not support subscript: {field}")),
        None if field == "spec.host" => Ok("spec.nodeName"),
        None if NAMED_FIELDS.contains(&field) => Ok(field),
        None => Err(format!("field label not supported: {field}")),
    };
    match known {
        Err(why) => errors.invalid_str(&field_path, field, format!("error converting fieldPath: {why}")),
        Ok(field) => match subscripted(field) {
            Some(("metadata.annotations", key)) => {
                names::check(path, &key.to_lowercase(), names::qualified_name, errors);
            }
            Some((_, key)) => names::check(path, key, names::qualified_name, errors),
            None if !allowed.contains(&field) => errors.not_supported(&field_path, field, allowed),
            None => {}
        },
    }
}

/// Checks a reference to a resource of a container.
pub fn resource_selector(selector: &Value, path: &Path<'_>, in_volume: bool, errors: &mut Errors) {
    let resource = selector.str_at(&["resource"]);
    let is_huge_pages = HUGE_PAGES.iter().any(|prefix| resource.starts_with(prefix));
    if in_volume && selector.str_at(&["containerName"]).is_empty() {
        errors.required(&path.child("containerName"), "");
    } else if resource.is_empty() {
        errors.required(&path.child("resource"), "");
    } else if !RESOURCES.contains(&resource) && !is_huge_pages {
        errors.not_supported(&path.child("resource"), resource, &RESOURCES);
    }
    let divisor = resources::amount(selector.at(&["divisor"]));
    if divisor.sign() == 0 {
        return;
    }
    let text = divisor.to_string();
    let bytes = "only divisor's values 1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei are supported with the";
    let why = match resource {
        "limits.cpu" | "requests.cpu" => (!matches!(&*text, "1" | "1m"))
            .then(|| "only divisor's values 1m and 1 are supported with the cpu resource".into()),
        _ if BYTE_DIVISORS.contains(&&*text) => None,
        "limits.memory" | "requests.memory" => Some(format!("{bytes} memory resource")),
        "limits.ephemeral-storage" | "requests.ephemeral-storage" => {
            Some(format!("{bytes} local ephemeral storage resource"))
        }
        _ if is_huge_pages => Some(format!("{bytes} hugepages resource")),
        _ => None,
    };
    if let Some(why) = why {
        errors.invalid_str(&path.child("divisor"), resource, why);
    }
}

/// Checks a reference to a key of a ConfigMap or Secret.
fn key_selector(selector: &Value, path: &Path<'_>, errors: &mut Errors) {
    names::check(&path.child("name"), selector.str_at(&["name"]), names::dns1123_subdomain, errors);
    let key = selector.str_at(&["key"]);
    if key.is_empty() {
        errors.required(&path.child("key"), "");
    } else {
        names::check(&path.child("key"), key, names::config_map_key, errors);
    }
}

fn file_selector(selector: &Value, path: &Path<'_>, errors: &mut Errors) {
    let text = |key: &str| selector.str_at(&[key]);
    match text("key") {
        "" => errors.required(&path.child("key"), ""),
        key => names::check(&path.child("key"), key, names::env_name, errors),
    }
    match text("volumeName") {
        "" => errors.required(&path.child("volumeName"), ""),
        name => names::check(&path.child("volumeName"), name, names::dns1123_label, errors),
    }
    match text("path") {
        "" => errors.required(&path.child("path"), ""),
        file => paths::no_backsteps(&path.child("path"), file, errors),
    }
}

/// Checks `envFrom`.
pub fn validate_from(sources: &[Value], path: &Path<'_>, errors: &mut Errors) {
    for (n, source) in sources.iter().enumerate() {
        let item = path.index(n);
        let prefix = source.str_at(&["prefix"]);
        if !prefix.is_empty() {
            names::check(&item.child("prefix"), prefix, names::env_name, errors);
        }
        let mut count = 0;
        for key in ["configMapRef", "secretRef"] {
            let reference = source.at(&[key]);
            if reference.is_null() {
                continue;
            }
            count += 1;
            let reference_path = item.child(key);
            match reference.str_at(&["name"]) {
                "" => errors.required(&reference_path.child("name"), ""),
                name => {
                    let form = |name: &str| names::dns1123_subdomain(&names::without_trailing_dash(name));
                    names::check(&reference_path.child("name"), name, form, errors);
                }
            }
        }
        match count {
            0 => errors.invalid_str(path, "", "must specify one of: `configMapRef` or `secretRef`"),
            1 => {}
            _ => errors.invalid_str(path, "", "may not have more than one field specified at a time"),
        }
    }
}
