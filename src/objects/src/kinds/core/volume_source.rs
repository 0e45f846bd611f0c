//! Sources of PersistentVolumes: the required fields and defaults of each type.

use flotilla_proto::value::{Map, Value};

use crate::field::{Errors, Path};
use crate::rules::names;

type SourceCheck = fn(source: &Value, path: &Path<'_>, errors: &mut Errors);

/// A type of source: its field, its name in errors about its members, its name in the error about a second source, and
/// its check.
struct VolumeSource(&'static str, &'static str, &'static str, SourceCheck);

const SOURCES: [VolumeSource; 22] = [
    VolumeSource("hostPath", "hostPath", "hostPath", host_path),
    VolumeSource("gcePersistentDisk", "persistentDisk", "gcePersistentDisk", |s, p, e| disk(s, "pdName", p, e)),
    VolumeSource("awsElasticBlockStore", "awsElasticBlockStore", "awsElasticBlockStore", |s, p, e| {
        disk(s, "volumeID", p, e)
    }),
    VolumeSource("glusterfs", "glusterfs", "glusterfs", glusterfs),
    VolumeSource("flocker", "flocker", "flocker", flocker),
    VolumeSource("nfs", "nfs", "nfs", nfs),
    VolumeSource("rbd", "rbd", "rbd", |s, p, e| require(s, &["monitors", "image"], p, e)),
    VolumeSource("quobyte", "quobyte", "quobyte", quobyte),
    VolumeSource("cephfs", "cephfs", "cephFS", |s, p, e| require(s, &["monitors"], p, e)),
    VolumeSource("iscsi", "iscsi", "iscsi", iscsi),
    VolumeSource("cinder", "cinder", "cinder", |s, p, e| {
        require(s, &["volumeID"], p, e);
        secret(s, p, e);
    }),
    VolumeSource("fc", "fc", "fc", fibre_channel),
    VolumeSource("flexVolume", "flexVolume", "flexVolume", flex_volume),
    VolumeSource("azureFile", "azureFile", "azureFile", azure_file),
    VolumeSource("vsphereVolume", "vsphereVolume", "vsphereVolume", |s, p, e| require(s, &["volumePath"], p, e)),
    VolumeSource("photonPersistentDisk", "photonPersistentDisk", "photonPersistentDisk", |s, p, e| {
        require(s, &["pdID"], p, e)
    }),
    VolumeSource("portworxVolume", "portworxVolume", "portworxVolume", |s, p, e| require(s, &["volumeID"], p, e)),
    VolumeSource("azureDisk", "azureDisk", "azureDisk", azure_disk),
    VolumeSource("scaleIO", "scaleIO", "scaleIO", |s, p, e| require(s, &["gateway", "system", "volumeName"], p, e)),
    VolumeSource("local", "local", "local", local),
    VolumeSource("storageos", "storageos", "storageos", storage_os),
    VolumeSource("csi", "csi", "csi", csi),
];

/// Sets the defaults of a volume's source.
pub fn default(spec: &mut Value) {
    let defaults: [(&str, &[(&str, &str)]); 5] = [
        ("hostPath", &[("type", "")]),
        ("iscsi", &[("iscsiInterface", "default")]),
        ("rbd", &[("pool", "rbd"), ("user", "admin"), ("keyring", "/etc/ceph/keyring")]),
        ("azureDisk", &[("cachingMode", "ReadWrite"), ("kind", "Shared"), ("fsType", "ext4")]),
        ("scaleIO", &[("storageMode", "ThinProvisioned"), ("fsType", "xfs")]),
    ];
    for (name, fields) in defaults {
        let Some(source) = spec.get_mut(name).filter(|source| !source.is_null()) else { continue };
        for (field, value) in fields {
            let unset = match source.at(&[field]) {
                Value::Null => true,
                value => name != "azureDisk" && value.as_str() == Some(""),
            };
            if unset {
                source.set_at(&[field], *value);
            }
        }
        if name == "azureDisk" && source.at(&["readOnly"]).is_null() {
            source.set_at(&["readOnly"], false);
        }
    }
}

/// Returns the sources that a volume states.
pub fn stated(spec: &Value) -> impl Iterator<Item = (&'static str, &Value)> {
    SOURCES.iter().map(|source| (source.0, spec.at(&[source.0]))).filter(|(_, source)| !source.is_null())
}

/// Checks that a volume has one source, and that the source is complete. `name` is the name of the volume.
pub fn validate(spec: &Value, name: &str, path: &Path<'_>, errors: &mut Errors) {
    let mut count = 0;
    for VolumeSource(field, inside, other, check) in &SOURCES {
        let source = spec.at(&[field]);
        if source.is_null() {
            continue;
        }
        if count > 0 && *field != "flexVolume" {
            errors.forbidden(&path.child(other), "may not specify more than 1 volume type");
            continue;
        }
        count += 1;
        check(source, &path.child(inside), errors);
        if *field == "iscsi" {
            initiator(source, name, &path.child(inside), errors);
        }
        if *field == "local" && spec.at(&["nodeAffinity"]).is_null() {
            errors.required(&path.child("nodeAffinity"), "Local volume requires node affinity");
        }
    }
    if count == 0 {
        errors.required(path, "must specify a volume type");
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Str(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        _ => false,
    }
}

fn require(source: &Value, fields: &[&str], path: &Path<'_>, errors: &mut Errors) {
    for field in fields.iter().filter(|field| is_empty(source.at(&[field]))) {
        errors.required(&path.child(field), "");
    }
}

/// Checks that a reference to a secret has a name and a namespace.
fn secret(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    let reference = source.at(&["secretRef"]);
    if !reference.is_null() {
        require(reference, &["name", "namespace"], &path.child("secretRef"), errors);
    }
}

/// Checks that a path has no part `..`.
pub fn no_backsteps(text: &str, path: &Path<'_>, errors: &mut Errors) {
    if text.split('/').any(|part| part == "..") {
        errors.invalid_str(path, text, "must not contain '..'");
    }
}

fn host_path(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    let types = ["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"];
    if source.str_at(&["path"]).is_empty() {
        errors.required(&path.child("path"), "");
        return;
    }
    no_backsteps(source.str_at(&["path"]), &path.child("path"), errors);
    let kind = source.str_at(&["type"]);
    if !types.contains(&kind) {
        errors.not_supported(&path.child("type"), kind, &types);
    }
}

fn disk(source: &Value, id: &str, path: &Path<'_>, errors: &mut Errors) {
    require(source, &[id], path, errors);
    let partition = source.int_at(&["partition"]).unwrap_or(0);
    if !(0..=255).contains(&partition) {
        errors.invalid(&path.child("partition"), &partition.into(), names::between(1, 255));
    }
}

fn glusterfs(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    require(source, &["endpoints", "path"], path, errors);
    let path = path.child("endpointsNamespace");
    match source.at(&["endpointsNamespace"]).as_str() {
        None => {}
        Some("") => {
            errors.invalid_str(&path, "", "if the endpointnamespace is set, it must be a valid namespace name");
        }
        Some(namespace) => names::check(&path, namespace, names::dns1123_label, errors),
    }
}

fn flocker(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    let (name, uuid) = (source.str_at(&["datasetName"]), source.str_at(&["datasetUUID"]));
    if name.is_empty() && uuid.is_empty() {
        errors.required(path, "one of datasetName and datasetUUID is required");
    }
    if !name.is_empty() && !uuid.is_empty() {
        errors.invalid_str(path, "resource", "datasetName and datasetUUID can not be specified simultaneously");
    }
    if name.contains('/') {
        errors.invalid_str(&path.child("datasetName"), name, "must not contain '/'");
    }
}

fn nfs(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    require(source, &["server", "path"], path, errors);
    let text = source.str_at(&["path"]);
    if !text.starts_with('/') {
        errors.invalid_str(&path.child("path"), text, "must be an absolute path");
    }
}

fn quobyte(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    const PAIRS: &str = "must be a host:port pair or multiple pairs separated by commas";
    let registry = source.str_at(&["registry"]);
    if registry.is_empty() {
        errors.required(&path.child("registry"), PAIRS);
    } else if source.str_at(&["tenant"]).len() >= 65 {
        let why = "must be a UUID and may not exceed a length of 64 characters";
        errors.required(&path.child("tenant"), why);
    } else {
        let is_pair = |pair: &str| match pair.strip_prefix('[') {
            Some(rest) => rest.split_once("]:").is_some_and(|(_, port)| !port.contains(':')),
            None => pair.split(':').count() == 2,
        };
        for _ in registry.split(',').filter(|pair| !is_pair(pair)) {
            errors.invalid_str(&path.child("registry"), registry, PAIRS);
        }
    }
    require(source, &["volume"], path, errors);
}

/// Returns whether a text names an iSCSI node (RFC 3720, 3.2.6.3).
fn is_iscsi_name(text: &str) -> bool {
    let hexes = |rest: &str, count: usize| {
        let mut chars = rest.chars();
        chars.next().is_some() && rest.chars().count() == count + 1 && chars.all(|c| c.is_ascii_alphanumeric())
    };
    if let Some(rest) = text.strip_prefix("eui") {
        return hexes(rest, 16);
    }
    if let Some(rest) = text.strip_prefix("naa") {
        return hexes(rest, 32);
    }
    let Some(rest) = text.strip_prefix("iqn.") else { return false };
    let Some((date, rest)) = rest.split_once('.') else { return false };
    let dated =
        date.len() == 7 && date.bytes().enumerate().all(|(at, b)| if at == 4 { b == b'-' } else { b.is_ascii_digit() });
    let Some((name, tail)) = rest.split_once(':') else { return false };
    let named = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.'));
    let plain = |c: char| !matches!(c, ',' | ';' | '*' | '&' | '$' | '|') && !c.is_ascii_whitespace();
    dated && named && !tail.is_empty() && tail.chars().all(plain)
}

fn iscsi(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    require(source, &["targetPortal"], path, errors);
    let name = source.str_at(&["iqn"]);
    if name.is_empty() {
        errors.required(&path.child("iqn"), "");
    } else if !is_iscsi_name(name) {
        errors.invalid_str(&path.child("iqn"), name, "must be valid format");
    }
    let unit = source.int_at(&["lun"]).unwrap_or(0);
    if !(0..=255).contains(&unit) {
        errors.invalid(&path.child("lun"), &unit.into(), names::between(0, 255));
    }
    let guarded = source.is_true_at(&["chapAuthDiscovery"]) || source.is_true_at(&["chapAuthSession"]);
    let reference = source.at(&["secretRef"]);
    if guarded && reference.is_null() {
        errors.required(&path.child("secretRef"), "");
    }
    if !reference.is_null() {
        require(reference, &["name"], &path.child("secretRef"), errors);
    }
}

fn initiator(source: &Value, volume: &str, path: &Path<'_>, errors: &mut Errors) {
    let Some(name) = source.at(&["initiatorName"]).as_str() else { return };
    let portal = source.str_at(&["targetPortal"]);
    if volume.len() + 1 + portal.len() > 64 {
        let why = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if \
            iscsi.initiatorName is specified.";
        errors.invalid_str(&path.child("targetportal"), portal, why);
    }
    if !is_iscsi_name(name) {
        errors.invalid_str(&path.child("initiatorname"), name, "must be valid format");
    }
}

fn fibre_channel(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    let (targets, wide) = (source.list_at(&["targetWWNs"]), source.list_at(&["wwids"]));
    if targets.is_empty() && wide.is_empty() {
        let why = "must specify either targetWWNs or wwids, but not both";
        errors.required(&path.child("targetWWNs"), why);
    }
    if targets.is_empty() {
        return;
    }
    if !wide.is_empty() {
        let why = "targetWWNs and wwids can not be specified simultaneously";
        errors.invalid(&path.child("targetWWNs"), source.at(&["targetWWNs"]), why);
    }
    match source.int_at(&["lun"]) {
        None => errors.required(&path.child("lun"), "lun is required if targetWWNs is specified"),
        Some(0..=255) => {}
        Some(unit) => errors.invalid(&path.child("lun"), &unit.into(), names::between(0, 255)),
    }
}

fn flex_volume(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    require(source, &["driver"], path, errors);
    for key in source.map_at(&["options"]).into_iter().flat_map(Map::keys) {
        let domain = key.split_once('/').map_or(key, |(domain, _)| domain);
        let domain = format!(".{}", domain.to_lowercase());
        if domain.ends_with(".kubernetes.io") || domain.ends_with(".k8s.io") {
            let path = path.child("options");
            errors.invalid_str(&path.key(key), key, "kubernetes.io and k8s.io namespaces are reserved");
        }
    }
}

fn azure_file(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    require(source, &["secretName", "shareName"], path, errors);
    if source.at(&["secretNamespace"]).as_str() == Some("") {
        errors.required(&path.child("secretNamespace"), "");
    }
}

fn azure_disk(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    require(source, &["diskName", "diskURI"], path, errors);
    let choices: [(&str, [&str; 3]); 2] =
        [("cachingMode", ["None", "ReadOnly", "ReadWrite"]), ("kind", ["Dedicated", "Managed", "Shared"])];
    for (field, allowed) in choices {
        if let Some(text) = source.at(&[field]).as_str()
            && !allowed.contains(&text)
        {
            errors.not_supported(&path.child(field), text, &allowed);
        }
    }
    let (kind, uri) = (source.at(&["kind"]).as_str(), source.str_at(&["diskURI"]));
    let managed = "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}";
    let blob = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd";
    match kind {
        Some("Managed") if !uri.starts_with("/subscriptions/") => {
            errors.not_supported(&path.child("diskURI"), uri, &[managed]);
        }
        Some(kind) if kind != "Managed" && !uri.starts_with("https://") => {
            errors.not_supported(&path.child("diskURI"), uri, &[blob]);
        }
        _ => {}
    }
}

fn local(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    require(source, &["path"], path, errors);
    no_backsteps(source.str_at(&["path"]), &path.child("path"), errors);
}

fn storage_os(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    require(source, &["volumeName"], path, errors);
    for field in ["volumeName", "volumeNamespace"] {
        let name = source.str_at(&[field]);
        if !name.is_empty() {
            names::check(&path.child(field), name, names::dns1123_label, errors);
        }
    }
    secret(source, path, errors);
}

/// Checks the name of a CSI driver.
pub fn validate_driver(name: &str, path: &Path<'_>, errors: &mut Errors) {
    if name.is_empty() {
        errors.required(path, "");
        return;
    }
    if name.len() > 63 {
        errors.too_long(path, 63);
    }
    for message in names::dns1123_subdomain(&name.to_lowercase()) {
        errors.invalid_str(path, name, message);
    }
}

fn csi(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    validate_driver(source.str_at(&["driver"]), &path.child("driver"), errors);
    require(source, &["volumeHandle"], path, errors);
    let references =
        ["controllerPublishSecretRef", "controllerExpandSecretRef", "nodePublishSecretRef", "nodeExpandSecretRef"];
    for field in references {
        let reference = source.at(&[field]);
        if reference.is_null() {
            continue;
        }
        let path = path.child(field);
        let forms: [(&str, names::Form); 2] = [("name", names::dns1123_subdomain), ("namespace", names::dns1123_label)];
        for (field, form) in forms {
            match reference.str_at(&[field]) {
                "" => errors.required(&path.child(field), ""),
                name => names::check(&path.child(field), name, form, errors),
            }
        }
    }
}

#[cfg(test)]
#[path = "volume_source_tests.rs"]
mod tests;
