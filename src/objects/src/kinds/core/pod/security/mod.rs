//! Validation of the security contexts of pods and containers.
//!
//! `app_armor` keeps annotations and fields about AppArmor in step, `windows` checks the fields that depend on the
//! operating system, and `host` the namespaces that a pod shares with its node.

pub(super) mod app_armor;
pub(super) mod host;
pub(super) mod windows;

use std::collections::HashSet;

use flotilla_proto::value::Value;

use super::spec::{Options, Surroundings};
use super::volumes::paths;
use crate::field::{ErrorKind, Errors, Path};
use crate::rules::{names, shown};

/// Largest user or group id.
const ID_MAX: i64 = i32::MAX as i64;
/// Longest name of a sysctl.
const SYSCTL_BYTES_MAX: usize = 253;
const SYSCTL_FORM: &str = "must have at most 253 characters and match regex \
    ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";

/// Checks a user or group id.
pub fn id(path: &Path<'_>, id: &Value, errors: &mut Errors) {
    if id.as_int().is_some_and(|id| !(0..=ID_MAX).contains(&id)) {
        errors.invalid(path, id, names::between(0, ID_MAX));
    }
}

fn one_of(context: &Value, key: &str, allowed: &[&str], path: &Path<'_>, errors: &mut Errors) {
    if let Some(word) = context.at(&[key]).as_str().filter(|word| !allowed.contains(word)) {
        errors.not_supported(&path.child(key), word, allowed);
    }
}

/// Checks the security context of a pod; `path` is that of the context.
pub fn validate_pod(spec: &Value, path: &Path<'_>, options: &Options, errors: &mut Errors) {
    let context = spec.at(&["securityContext"]);
    let has_more = context.as_object().is_some_and(|context| !context.is_empty());
    for key in ["fsGroup", "runAsUser", "runAsGroup"].iter().filter(|_| has_more) {
        id(&path.child(key), context.at(&[key]), errors);
    }
    let groups = path.child("supplementalGroups");
    for (n, group) in context.list_at(&["supplementalGroups"]).iter().enumerate() {
        id(&groups.index(n), group, errors);
    }
    if spec.is_true_at(&["shareProcessNamespace"]) && spec.is_true_at(&["hostPID"]) {
        let why = "ShareProcessNamespace and HostPID cannot both be enabled";
        errors.invalid(&path.child("shareProcessNamespace"), &true.into(), why);
    }
    if !has_more {
        return;
    }
    sysctls(spec, context.list_at(&["sysctls"]), &path.child("sysctls"), options, errors);
    one_of(context, "fsGroupChangePolicy", &["Always", "OnRootMismatch"], path, errors);
    seccomp(context.at(&["seccompProfile"]), &path.child("seccompProfile"), errors);
    windows::validate_options(context.at(&["windowsOptions"]), &path.child("windowsOptions"), errors);
    app_armor_profile(context.at(&["appArmorProfile"]), &path.child("appArmorProfile"), errors);
    one_of(context, "supplementalGroupsPolicy", &["Merge", "Strict"], path, errors);
    let policies: &[&str] = if options.any_selinux_policy { &["MountOption", "Recursive"] } else { &["Recursive"] };
    one_of(context, "seLinuxChangePolicy", policies, path, errors);
}

/// Checks the security context of a container.
pub fn validate_container(context: &Value, path: &Path<'_>, around: &Surroundings<'_>, errors: &mut Errors) {
    if context.is_null() {
        return;
    }
    if around.options.no_privileged && context.is_true_at(&["privileged"]) {
        errors.forbidden(&path.child("privileged"), "disallowed by cluster policy");
    }
    for key in ["runAsUser", "runAsGroup"] {
        id(&path.child(key), context.at(&[key]), errors);
    }
    if let Some(mount) = context.at(&["procMount"]).as_str() {
        let path = path.child("procMount");
        if !matches!(mount, "Default" | "Unmasked") {
            errors.not_supported(&path, mount, &["Default", "Unmasked"]);
        }
        if around.host_users && mount == "Unmasked" {
            errors.invalid_str(&path, mount, "`hostUsers` must be false to use `Unmasked`");
        }
    }
    seccomp(context.at(&["seccompProfile"]), &path.child("seccompProfile"), errors);
    if context.at(&["allowPrivilegeEscalation"]) == &Value::Bool(false) {
        let mut refuse = |why: &str| {
            errors.push(ErrorKind::Invalid, path, shown::text("SecurityContext", context), why);
        };
        if context.is_true_at(&["privileged"]) {
            refuse("cannot set `allowPrivilegeEscalation` to false and `privileged` to true");
        }
        for capability in context.list_at(&["capabilities", "add"]) {
            if capability.as_str() == Some("CAP_SYS_ADMIN") {
                refuse("cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN");
            }
        }
    }
    windows::validate_options(context.at(&["windowsOptions"]), &path.child("windowsOptions"), errors);
    app_armor_profile(context.at(&["appArmorProfile"]), &path.child("appArmorProfile"), errors);
}

fn seccomp(profile: &Value, path: &Path<'_>, errors: &mut Errors) {
    if profile.is_null() {
        return;
    }
    let kind = profile.str_at(&["type"]);
    match kind {
        "Localhost" | "RuntimeDefault" | "Unconfined" => {}
        "" => errors.required(&path.child("type"), "type is required when seccompProfile is set"),
        other => errors.not_supported(&path.child("type"), other, &["Localhost", "RuntimeDefault", "Unconfined"]),
    }
    let local = path.child("localhostProfile");
    match profile.at(&["localhostProfile"]).as_str() {
        None if kind == "Localhost" => errors.required(&local, "must be set when seccomp type is Localhost"),
        Some(file) if kind == "Localhost" => paths::descending(&local, file, errors),
        Some(_) => {
            let why = "can only be set when seccomp type is Localhost";
            errors.push(ErrorKind::Invalid, &local, shown::text("SeccompProfile", profile), why);
        }
        None => {}
    }
}

/// Checks an AppArmor profile.
pub fn app_armor_profile(profile: &Value, path: &Path<'_>, errors: &mut Errors) {
    if profile.is_null() {
        return;
    }
    let local = path.child("localhostProfile");
    let name = profile.at(&["localhostProfile"]).as_str();
    match profile.str_at(&["type"]) {
        "Localhost" => {
            let name = name.unwrap_or("");
            if name.trim() != name {
                errors.invalid_str(&local, name, "must not be padded with whitespace");
            } else if name.is_empty() {
                errors.required(&local, "must be set when AppArmor type is Localhost");
            }
            if name.len() > app_armor::PROFILE_BYTES_MAX {
                errors.too_long(&local, app_armor::PROFILE_BYTES_MAX);
            }
        }
        "RuntimeDefault" | "Unconfined" => {
            if let Some(name) = name {
                errors.invalid_str(&local, name, "can only be set when AppArmor type is Localhost");
            }
        }
        "" => errors.required(&path.child("type"), "type is required when appArmorProfile is set"),
        other => errors.not_supported(&path.child("type"), other, &["Localhost", "RuntimeDefault", "Unconfined"]),
    }
}

fn is_sysctl_name(name: &str) -> bool {
    let edge = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let segment = |text: &str| {
        let bytes = text.as_bytes();
        !bytes.is_empty()
            && edge(bytes[0])
            && edge(bytes[bytes.len() - 1])
            && bytes.iter().all(|b| edge(*b) || matches!(b, b'-' | b'_'))
    };
    name.len() <= SYSCTL_BYTES_MAX && name.split(['.', '/']).all(segment)
}

/// Returns the namespace of the host that a sysctl would change because the pod shares it. Returns `None` if there is
/// none.
fn contradiction(name: &str, spec: &Value) -> Option<&'static str> {
    let slash_first = name.find(['.', '/']).is_some_and(|at| name.as_bytes()[at] == b'/');
    let name: String = if slash_first {
        name.chars()
            .map(|c| {
                if c == '/' {
                    '.'
                } else if c == '.' {
                    '/'
                } else {
                    c
                }
            })
            .collect()
    } else {
        name.to_owned()
    };
    let name = name.split('*').next().unwrap_or("");
    let ipc = [
        "kernel.sem",
        "kernel.shmall",
        "kernel.shmmax",
        "kernel.shmmni",
        "kernel.shm_rmid_forced",
        "kernel.shm",
        "kernel.msgmax",
        "kernel.msgmnb",
        "kernel.msgmni",
        "kernel.msg",
    ];
    if name.starts_with("net.") {
        spec.is_true_at(&["hostNetwork"]).then_some("may not be specified when 'hostNetwork' is true")
    } else if ipc.contains(&name) || name.starts_with("fs.mqueue.") {
        spec.is_true_at(&["hostIPC"]).then_some("may not be specified when 'hostIPC' is true")
    } else {
        None
    }
}

fn sysctls(spec: &Value, list: &[Value], path: &Path<'_>, options: &Options, errors: &mut Errors) {
    let mut seen = HashSet::new();
    for (n, sysctl) in list.iter().enumerate() {
        let item = path.index(n);
        let path = item.child("name");
        let name = sysctl.str_at(&["name"]);
        if name.is_empty() {
            errors.required(&path, "");
        } else if !is_sysctl_name(name) {
            errors.invalid_str(&path, name, SYSCTL_FORM);
        } else if seen.contains(name) {
            errors.duplicate(&path, &name.into());
        }
        if let Some(why) = contradiction(name, spec).filter(|_| !options.any_sysctl) {
            errors.invalid_str(&path, name, why);
        }
        seen.insert(name);
    }
}

/// Returns whether the stored object has a sysctl that would change a namespace of the host.
pub fn has_contradicting_sysctl(spec: &Value) -> bool {
    let sysctls = spec.list_at(&["securityContext", "sysctls"]);
    sysctls.iter().any(|sysctl| contradiction(sysctl.str_at(&["name"]), spec).is_some())
}
