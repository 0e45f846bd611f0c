//! Validation of the volumes of a pod.
//!
//! `projected` checks volumes whose files come from objects of the API, `remote` those on network storage and of other
//! drivers, and `paths` the paths of files within them. `warnings` warns about volumes that are valid but likely wrong.

pub(super) mod paths;
pub(super) mod projected;
mod remote;
pub mod warnings;

use std::collections::{HashMap, HashSet};

use flotilla_proto::value::Value;

use super::containers;
use super::spec::Options;
use crate::field::{Errors, Path};
use crate::rules::{names, resources};

/// Valid volumes by name.
pub type Volumes<'a> = HashMap<&'a str, &'a Value>;

/// The types of volumes in the order in which they are checked. Each has its field, its name in the error about a
/// second type, and its name in errors about the type itself.
const SOURCES: [(&str, &str, &str); 29] = [
    ("hostPath", "hostPath", "hostPath"),
    ("gitRepo", "gitRepo", "gitRepo"),
    ("gcePersistentDisk", "gcePersistentDisk", "persistentDisk"),
    ("awsElasticBlockStore", "awsElasticBlockStore", "awsElasticBlockStore"),
    ("secret", "secret", "secret"),
    ("nfs", "nfs", "nfs"),
    ("iscsi", "iscsi", "iscsi"),
    ("glusterfs", "glusterfs", "glusterfs"),
    ("flocker", "flocker", "flocker"),
    ("persistentVolumeClaim", "persistentVolumeClaim", "persistentVolumeClaim"),
    ("rbd", "rbd", "rbd"),
    ("cinder", "cinder", "cinder"),
    ("cephfs", "cephFS", "cephfs"),
    ("quobyte", "quobyte", "quobyte"),
    ("downwardAPI", "downwarAPI", "downwardAPI"),
    ("fc", "fc", "fc"),
    ("flexVolume", "flexVolume", "flexVolume"),
    ("configMap", "configMap", "configMap"),
    ("azureFile", "azureFile", "azureFile"),
    ("vsphereVolume", "vsphereVolume", "vsphereVolume"),
    ("photonPersistentDisk", "photonPersistentDisk", "photonPersistentDisk"),
    ("portworxVolume", "portworxVolume", "portworxVolume"),
    ("azureDisk", "azureDisk", "azureDisk"),
    ("storageos", "storageos", "storageos"),
    ("projected", "projected", "projected"),
    ("scaleIO", "scaleIO", "scaleIO"),
    ("csi", "csi", "csi"),
    ("ephemeral", "ephemeral", "ephemeral"),
    ("image", "image", "image"),
];
/// Most bytes in a volume's name and its iSCSI portal together, if the volume names an initiator.
const ISCSI_BYTES_MAX: usize = 64;

/// Checks the volumes of a pod. Returns the valid ones by name.
pub fn validate<'a>(
    volumes: &'a [Value],
    metadata: Option<&Value>,
    path: &Path<'_>,
    options: &Options,
    errors: &mut Errors,
) -> Volumes<'a> {
    let pod = metadata.map_or("", |metadata| metadata.str_at(&["name"]));
    let mut valid = Volumes::with_capacity(volumes.len());
    for (n, volume) in volumes.iter().enumerate() {
        let path = path.index(n);
        let name = volume.str_at(&["name"]);
        let before = errors.0.len();
        source(volume, name, pod, &path, options, errors);
        if name.is_empty() {
            errors.required(&path.child("name"), "");
        } else {
            names::check(&path.child("name"), name, names::dns1123_label, errors);
        }
        if valid.contains_key(name) {
            errors.duplicate(&path.child("name"), &name.into());
        }
        if errors.0.len() == before {
            valid.insert(name, volume);
        }
        let claim = volume.str_at(&["persistentVolumeClaim", "claimName"]);
        if !pod.is_empty() && !claim.is_empty() && is_made_for(claim, pod, volumes) {
            let why = "must not reference a PVC that gets created for an ephemeral volume";
            errors.invalid_str(&path.child("persistentVolumeClaim").child("claimName"), claim, why);
        }
    }
    valid
}

/// Returns whether a claim is the one that is created for an ephemeral volume of the pod.
fn is_made_for(claim: &str, pod: &str, volumes: &[Value]) -> bool {
    let Some(volume) = claim.strip_prefix(pod).and_then(|rest| rest.strip_prefix('-')) else { return false };
    volumes.iter().any(|other| other.get("ephemeral").is_some() && other.str_at(&["name"]) == volume)
}

fn source(volume: &Value, name: &str, pod: &str, path: &Path<'_>, options: &Options, errors: &mut Errors) {
    let empty_dir = volume.at(&["emptyDir"]);
    let mut found = !empty_dir.is_null();
    if resources::amount(empty_dir.at(&["sizeLimit"])).sign() < 0 {
        let why = "SizeLimit field must be a valid resource quantity";
        errors.forbidden(&path.child("emptyDir").child("sizeLimit"), why);
    }
    let members = volume.as_object();
    let candidates = members.is_some_and(|members| members.len() > 1 + usize::from(found));
    for (key, second, shown) in SOURCES.iter().filter(|_| candidates) {
        let source = volume.at(&[key]);
        if source.is_null() {
            continue;
        }
        if std::mem::replace(&mut found, true) {
            errors.forbidden(&path.child(second), "may not specify more than 1 volume type");
        } else {
            one(key, source, &path.child(shown), options, errors);
            if *key == "ephemeral" && !pod.is_empty() && !name.is_empty() {
                let claim = format!("{pod}-{name}");
                for why in names::dns1123_subdomain(&claim) {
                    errors.invalid_str(&path.child("name"), name, format!("PVC name \"{claim}\": {why}"));
                }
            }
        }
        let portal = source.str_at(&["targetPortal"]);
        if *key == "iscsi"
            && !source.at(&["initiatorName"]).is_null()
            && name.len() + 1 + portal.len() > ISCSI_BYTES_MAX
        {
            let why = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if \
                iscsi.initiatorName is specified.";
            errors.invalid_str(&path.child("name"), name, why);
        }
    }
    if !found {
        errors.required(path, "must specify a volume type");
    }
}

fn one(key: &str, source: &Value, path: &Path<'_>, options: &Options, errors: &mut Errors) {
    match key {
        "hostPath" => host_path(source, path, errors),
        "secret" => keyed(source, "secretName", path, errors),
        "configMap" => keyed(source, "name", path, errors),
        "persistentVolumeClaim" => required(source, &["claimName"], path, errors),
        "downwardAPI" => projected::validate_downward(source, path, errors),
        "projected" => projected::validate(source, path, options, errors),
        "ephemeral" => ephemeral(source, path, errors),
        "image" => {
            if options.is_pod {
                required(source, &["reference"], path, errors);
            }
            containers::pull_policy(&path.child("pullPolicy"), source.str_at(&["pullPolicy"]), errors);
        }
        other => remote::validate(other, source, path, errors),
    }
}

/// Checks that texts are not empty.
pub fn required(source: &Value, keys: &[&str], path: &Path<'_>, errors: &mut Errors) {
    for key in keys {
        if source.str_at(&[key]).is_empty() {
            errors.required(&path.child(key), "");
        }
    }
}

fn host_path(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    let target = source.str_at(&["path"]);
    if target.is_empty() {
        return errors.required(&path.child("path"), "");
    }
    paths::no_backsteps(&path.child("path"), target, errors);
    let types = ["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"];
    if let Some(kind) = source.at(&["type"]).as_str().filter(|kind| !types.contains(kind)) {
        errors.not_supported(&path.child("type"), kind, &types);
    }
}

/// Checks a volume of a Secret or ConfigMap.
fn keyed(source: &Value, name: &str, path: &Path<'_>, errors: &mut Errors) {
    required(source, &[name], path, errors);
    paths::mode(&path.child("defaultMode"), source.int_at(&["defaultMode"]), errors);
    let items = path.child("items");
    for (n, item) in source.list_at(&["items"]).iter().enumerate() {
        key_to_path(item, &items.index(n), errors);
    }
}

/// Checks the mapping of a key to a file.
pub fn key_to_path(item: &Value, path: &Path<'_>, errors: &mut Errors) {
    required(item, &["key", "path"], path, errors);
    paths::not_reserved(&path.child("path"), item.str_at(&["path"]), errors);
    paths::mode(&path.child("mode"), item.int_at(&["mode"]), errors);
}

fn ephemeral(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    let template = source.at(&["volumeClaimTemplate"]);
    let path = path.child("volumeClaimTemplate");
    if template.is_null() {
        return errors.required(&path, "");
    }
    let metadata = path.child("metadata");
    let members = template.at(&["metadata"]);
    crate::rules::labels::validate_annotations(members.at(&["annotations"]), &metadata.child("annotations"), errors);
    crate::rules::labels::validate_labels(members.at(&["labels"]), &metadata.child("labels"), errors);
    let mut other = HashSet::new();
    for (key, value) in members.as_object().into_iter().flat_map(|members| members.iter()) {
        if !matches!(key, "annotations" | "labels") && !value.is_null() && other.insert(key) {
            // The reference derives this name from that of the Go field.
            let shown = if key == "uid" { "uID" } else { key };
            errors.forbidden(&metadata.child(shown), "cannot be set");
        }
    }
    crate::kinds::core::persistent_volume_claim::validate_spec(
        template.at(&["spec"]),
        Default::default(),
        false,
        &path.child("spec"),
        errors,
    );
}
