//! Validation of volume mounts and block devices of containers.

use std::collections::{HashMap, HashSet};

use flotilla_proto::value::Value;

use crate::field::{Errors, Path};
use crate::kinds::core::pod::volumes::{Volumes, paths};

/// Maps each volume to its path in the container; if there are several paths, to the last one.
fn by_name<'a>(list: &'a [Value], path: &str) -> HashMap<&'a str, &'a str> {
    list.iter().map(|item| (item.str_at(&["name"]), item.str_at(&[path]))).collect()
}

/// Checks `volumeMounts` and `volumeDevices` of a container.
pub fn validate(container: &Value, path: &Path<'_>, volumes: &Volumes<'_>, errors: &mut Errors) {
    let (mounts, devices) = (container.list_at(&["volumeMounts"]), container.list_at(&["volumeDevices"]));
    if !mounts.is_empty() {
        let devices = by_name(devices, "devicePath");
        validate_mounts(container, mounts, &devices, volumes, &path.child("volumeMounts"), errors);
    }
    if !devices.is_empty() {
        let mounts = by_name(mounts, "mountPath");
        validate_devices(devices, &mounts, volumes, &path.child("volumeDevices"), errors);
    }
}

fn validate_mounts(
    container: &Value,
    mounts: &[Value],
    devices: &HashMap<&str, &str>,
    volumes: &Volumes<'_>,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    let device_paths: HashSet<&str> = devices.values().copied().collect();
    let mut seen = HashSet::new();
    for (n, mount) in mounts.iter().enumerate() {
        let item = path.index(n);
        let (name, at) = (mount.str_at(&["name"]), mount.str_at(&["mountPath"]));
        if name.is_empty() {
            errors.required(&item.child("name"), "");
        }
        if !volumes.contains_key(name) {
            errors.not_found(&item.child("name"), &name.into());
        }
        if at.is_empty() {
            errors.required(&item.child("mountPath"), "");
        }
        if !seen.insert(at) {
            errors.invalid_str(&item.child("mountPath"), at, "must be unique");
        }
        if devices.contains_key(name) {
            errors.invalid_str(&item.child("name"), name, "must not already exist in volumeDevices");
        }
        if device_paths.contains(at) {
            let why = "must not already exist as a path in volumeDevices";
            errors.invalid_str(&item.child("mountPath"), at, why);
        }
        sub_paths(mount, path, &item, errors);
        propagation(mount, container, &path.child("mountPropagation"), errors);
        recursive_read_only(mount, &path.child("recursiveReadOnly"), errors);
    }
}

/// Checks the paths inside the volume. As in the reference, some errors name the list, not the item.
fn sub_paths(mount: &Value, path: &Path<'_>, item: &Path<'_>, errors: &mut Errors) {
    let (plain, expression) = (mount.str_at(&["subPath"]), mount.str_at(&["subPathExpr"]));
    if !plain.is_empty() {
        paths::descending(&path.child("subPath"), plain, errors);
    }
    if !expression.is_empty() {
        if !plain.is_empty() {
            let why = "subPathExpr and subPath are mutually exclusive";
            errors.invalid_str(&item.child("subPathExpr"), expression, why);
        }
        paths::descending(&path.child("subPathExpr"), expression, errors);
    }
}

fn propagation(mount: &Value, container: &Value, path: &Path<'_>, errors: &mut Errors) {
    let Some(mode) = mount.at(&["mountPropagation"]).as_str() else { return };
    let allowed = ["Bidirectional", "HostToContainer", "None"];
    if !allowed.contains(&mode) {
        errors.not_supported(path, mode, &allowed);
    }
    if mode == "Bidirectional" && !container.is_true_at(&["securityContext", "privileged"]) {
        errors.forbidden(path, "Bidirectional mount propagation is available only to privileged containers");
    }
}

fn recursive_read_only(mount: &Value, path: &Path<'_>, errors: &mut Errors) {
    match mount.at(&["recursiveReadOnly"]).as_str() {
        None | Some("Disabled") => {}
        Some("Enabled" | "IfPossible") => {
            if !mount.is_true_at(&["readOnly"]) {
                errors.forbidden(path, "may only be specified when readOnly is true");
            }
            if !matches!(mount.at(&["mountPropagation"]).as_str(), None | Some("None")) {
                errors.forbidden(path, "may only be specified when mountPropagation is None or not specified");
            }
        }
        Some(other) => errors.not_supported(path, other, &["Disabled", "Enabled", "IfPossible"]),
    }
}

fn validate_devices(
    devices: &[Value],
    mounts: &HashMap<&str, &str>,
    volumes: &Volumes<'_>,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    let mount_paths: HashSet<&str> = mounts.values().copied().collect();
    let (mut seen_names, mut seen_paths) = (HashSet::new(), HashSet::new());
    for (n, device) in devices.iter().enumerate() {
        let item = path.index(n);
        let (name_path, device_path) = (item.child("name"), item.child("devicePath"));
        let (name, at) = (device.str_at(&["name"]), device.str_at(&["devicePath"]));
        if name.is_empty() {
            errors.required(&name_path, "");
        }
        if seen_names.contains(name) {
            errors.invalid_str(&name_path, name, "must be unique");
        }
        match volumes.get(name) {
            None => errors.not_found(&name_path, &name.into()),
            Some(volume) if volume.get("persistentVolumeClaim").is_none() && volume.get("ephemeral").is_none() => {
                let why = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode";
                errors.invalid_str(&name_path, name, why);
            }
            Some(_) => {}
        }
        if at.is_empty() {
            errors.required(&device_path, "");
        }
        if seen_paths.contains(at) {
            errors.invalid_str(&device_path, at, "must be unique");
        }
        if at.split('/').any(|part| part == "..") {
            errors.invalid_str(&device_path, at, "can not contain backsteps ('..')");
        } else {
            seen_paths.insert(at);
        }
        if mounts.contains_key(name) {
            errors.invalid_str(&name_path, name, "must not already exist in volumeMounts");
        }
        if mount_paths.contains(at) {
            errors.invalid_str(&device_path, at, "must not already exist as a path in volumeMounts");
        }
        if !name.is_empty() {
            seen_names.insert(name);
        }
    }
}
