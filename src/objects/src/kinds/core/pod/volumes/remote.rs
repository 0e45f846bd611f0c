//! Validation of volumes on network storage and of drivers that are not part of Kubernetes.

use flotilla_proto::value::Value;

use super::required;
use crate::field::{Errors, Path};
use crate::rules::names;

/// Highest logical unit number.
const UNIT_MAX: i64 = 255;
/// Longest tenant of a Quobyte volume.
const TENANT_BYTES_MAX: usize = 64;
/// Longest name of a CSI driver.
const DRIVER_BYTES_MAX: usize = 63;

/// Checks a volume source; `key` says of which type.
pub fn validate(key: &str, source: &Value, path: &Path<'_>, errors: &mut Errors) {
    match key {
        "gitRepo" => {
            required(source, &["repository"], path, errors);
            super::paths::descending(&path.child("directory"), source.str_at(&["directory"]), errors);
        }
        "gcePersistentDisk" => disk(source, "pdName", path, errors),
        "awsElasticBlockStore" => disk(source, "volumeID", path, errors),
        "nfs" => nfs(source, path, errors),
        "iscsi" => iscsi(source, path, errors),
        "glusterfs" => required(source, &["endpoints", "path"], path, errors),
        "flocker" => flocker(source, path, errors),
        "rbd" => {
            monitors(source, path, errors);
            required(source, &["image"], path, errors);
        }
        "cephfs" => monitors(source, path, errors),
        "cinder" => {
            required(source, &["volumeID"], path, errors);
            secret(source, path, errors);
        }
        "quobyte" => quobyte(source, path, errors),
        "fc" => fibre_channel(source, path, errors),
        "flexVolume" => flex(source, path, errors),
        "azureFile" => required(source, &["secretName", "shareName"], path, errors),
        "vsphereVolume" => required(source, &["volumePath"], path, errors),
        "photonPersistentDisk" => required(source, &["pdID"], path, errors),
        "portworxVolume" => required(source, &["volumeID"], path, errors),
        "azureDisk" => azure_disk(source, path, errors),
        "storageos" => storage_os(source, path, errors),
        "scaleIO" => required(source, &["gateway", "system", "volumeName"], path, errors),
        "csi" => csi(source, path, errors),
        _ => {}
    }
}

fn monitors(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    if source.list_at(&["monitors"]).is_empty() {
        errors.required(&path.child("monitors"), "");
    }
}

fn secret(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    if !source.at(&["secretRef"]).is_null() {
        required(source.at(&["secretRef"]), &["name"], &path.child("secretRef"), errors);
    }
}

fn disk(source: &Value, id: &str, path: &Path<'_>, errors: &mut Errors) {
    required(source, &[id], path, errors);
    if let Some(partition) = source.int_at(&["partition"]).filter(|number| !(0..=255).contains(number)) {
        errors.invalid(&path.child("partition"), &partition.into(), names::between(1, 255));
    }
}

fn nfs(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    required(source, &["server", "path"], path, errors);
    let target = source.str_at(&["path"]);
    if !target.starts_with('/') {
        errors.invalid_str(&path.child("path"), target, "must be an absolute path");
    }
}

/// Returns whether an iSCSI name has the form that its prefix demands (RFC 3721).
fn is_iscsi_name(name: &str) -> bool {
    let alphanumeric = |text: &str, length: usize| {
        text.chars().count() == length + 1 && text.chars().skip(1).all(|c| c.is_ascii_alphanumeric())
    };
    match name.get(..3) {
        Some("eui") => alphanumeric(&name[3..], 16),
        Some("naa") => alphanumeric(&name[3..], 32),
        _ => name.match_indices("iqn.").any(|(at, _)| is_qualified_iscsi_name(&name[at + 4..])),
    }
}

/// Returns whether a text has the form `yyyy-mm.authority:anything`.
fn is_qualified_iscsi_name(rest: &str) -> bool {
    let bytes = rest.as_bytes();
    let digits =
        |range: std::ops::Range<usize>| bytes.get(range).is_some_and(|digits| digits.iter().all(u8::is_ascii_digit));
    if !digits(0..4) || bytes.get(4) != Some(&b'-') || !digits(5..7) || bytes.get(7) != Some(&b'.') {
        return false;
    }
    let Some((authority, name)) = rest[8..].split_once(':') else { return false };
    !authority.is_empty()
        && authority.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.'))
        && !name.is_empty()
        && !name.contains([',', ';', '*', '&', '$', '|', ' ', '\t', '\n', '\u{b}', '\u{c}', '\r'])
}

fn iscsi_name(name: &str, path: &Path<'_>, errors: &mut Errors) {
    if !["iqn", "eui", "naa"].iter().any(|prefix| name.starts_with(prefix)) {
        errors.invalid_str(path, name, "must be valid format starting with iqn, eui, or naa");
    } else if !is_iscsi_name(name) {
        errors.invalid_str(path, name, "must be valid format");
    }
}

fn iscsi(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    required(source, &["targetPortal", "iqn"], path, errors);
    let name = source.str_at(&["iqn"]);
    if !name.is_empty() {
        iscsi_name(name, &path.child("iqn"), errors);
    }
    let unit = source.int_at(&["lun"]).unwrap_or(0);
    if !(0..=UNIT_MAX).contains(&unit) {
        errors.invalid(&path.child("lun"), &unit.into(), names::between(0, UNIT_MAX));
    }
    let authenticates = source.is_true_at(&["chapAuthDiscovery"]) || source.is_true_at(&["chapAuthSession"]);
    if authenticates && source.at(&["secretRef"]).is_null() {
        errors.required(&path.child("secretRef"), "");
    }
    if let Some(initiator) = source.at(&["initiatorName"]).as_str() {
        iscsi_name(initiator, &path.child("initiatorname"), errors);
    }
}

fn flocker(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    let (name, id) = (source.str_at(&["datasetName"]), source.str_at(&["datasetUUID"]));
    match (name.is_empty(), id.is_empty()) {
        (true, true) => errors.required(path, "one of datasetName and datasetUUID is required"),
        (false, false) => {
            let why = "datasetName and datasetUUID can not be specified simultaneously";
            errors.invalid_str(path, "resource", why);
        }
        _ => {}
    }
    if name.contains('/') {
        errors.invalid_str(&path.child("datasetName"), name, "must not contain '/'");
    }
}

/// Returns whether a text is `host:port`, with an IPv6 host in brackets.
fn is_host_and_port(text: &str) -> bool {
    match text.strip_prefix('[') {
        Some(rest) => rest.split_once(']').is_some_and(|(host, port)| {
            !host.contains('[') && port.starts_with(':') && !port[1..].contains([':', '[', ']'])
        }),
        None => text.matches(':').count() == 1 && !text.contains(['[', ']']),
    }
}

fn quobyte(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    const REGISTRY: &str = "must be a host:port pair or multiple pairs separated by commas";
    let registry = source.str_at(&["registry"]);
    if registry.is_empty() {
        errors.required(&path.child("registry"), REGISTRY);
    } else if source.str_at(&["tenant"]).len() > TENANT_BYTES_MAX {
        let why = "must be a UUID and may not exceed a length of 64 characters";
        errors.required(&path.child("tenant"), why);
    } else {
        for _ in registry.split(',').filter(|pair| !is_host_and_port(pair)) {
            errors.invalid_str(&path.child("registry"), registry, REGISTRY);
        }
    }
    required(source, &["volume"], path, errors);
}

fn fibre_channel(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    let (targets, ids) = (source.list_at(&["targetWWNs"]), source.list_at(&["wwids"]));
    let targets_path = path.child("targetWWNs");
    if targets.is_empty() && ids.is_empty() {
        errors.required(&targets_path, "must specify either targetWWNs or wwids, but not both");
    }
    if !targets.is_empty() && !ids.is_empty() {
        let why = "targetWWNs and wwids can not be specified simultaneously";
        errors.invalid(&targets_path, source.at(&["targetWWNs"]), why);
    }
    if !targets.is_empty() {
        match source.int_at(&["lun"]) {
            None => errors.required(&path.child("lun"), "lun is required if targetWWNs is specified"),
            Some(unit) if !(0..=UNIT_MAX).contains(&unit) => {
                errors.invalid(&path.child("lun"), &unit.into(), names::between(0, UNIT_MAX));
            }
            Some(_) => {}
        }
    }
}

fn flex(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    required(source, &["driver"], path, errors);
    let options = path.child("options");
    for key in source.map_at(&["options"]).into_iter().flat_map(|map| map.keys()) {
        let namespace = key.split_once('/').map_or(key, |(namespace, _)| namespace);
        let namespace = format!(".{}", namespace.to_lowercase());
        if namespace.ends_with(".kubernetes.io") || namespace.ends_with(".k8s.io") {
            errors.invalid_str(&options.key(key), key, "kubernetes.io and k8s.io namespaces are reserved");
        }
    }
}

fn azure_disk(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    required(source, &["diskName", "diskURI"], path, errors);
    for (key, allowed) in
        [("cachingMode", ["None", "ReadOnly", "ReadWrite"]), ("kind", ["Dedicated", "Managed", "Shared"])]
    {
        if let Some(word) = source.at(&[key]).as_str().filter(|word| !allowed.contains(word)) {
            errors.not_supported(&path.child(key), word, &allowed);
        }
    }
    let uri = source.str_at(&["diskURI"]);
    let (start, form) = match source.at(&["kind"]).as_str() {
        None => return,
        Some("Managed") => (
            "/subscriptions/",
            "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}",
        ),
        Some(_) => ("https://", "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"),
    };
    if !uri.starts_with(start) {
        errors.not_supported(&path.child("diskURI"), uri, &[form]);
    }
}

fn storage_os(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    required(source, &["volumeName"], path, errors);
    for key in ["volumeName", "volumeNamespace"] {
        let name = source.str_at(&[key]);
        if !name.is_empty() {
            names::check(&path.child(key), name, names::dns1123_label, errors);
        }
    }
    secret(source, path, errors);
}

fn csi(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    let driver = source.str_at(&["driver"]);
    let driver_path = path.child("driver");
    if driver.is_empty() {
        errors.required(&driver_path, "");
    } else {
        if driver.len() > DRIVER_BYTES_MAX {
            errors.too_long(&driver_path, DRIVER_BYTES_MAX);
        }
        names::check(&driver_path, driver, |name| names::dns1123_subdomain(&name.to_lowercase()), errors);
    }
    let reference = source.at(&["nodePublishSecretRef"]);
    if reference.is_null() {
        return;
    }
    match reference.str_at(&["name"]) {
        "" => errors.required(&path.child("nodePublishSecretRef").child("name"), ""),
        name => names::check(&path.child("name"), name, names::dns1123_subdomain, errors),
    }
}
