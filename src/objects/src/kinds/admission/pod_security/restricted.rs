//! Checks of the level `restricted`: it demands the present best practices for hardening pods.

use std::collections::BTreeSet;

use flotilla_proto::value::Value;

use super::baseline::{add_others, added, explicit_seccomp, seccomp_types, unmasked_proc};
use super::violation::{Pod, Violation, containers, plural, quoted, security, setters};

/// The minor version since which the checks exempt pods for Windows from requirements that do not exist there.
const WINDOWS: u32 = 25;
/// The minor version since which pods with a user namespace of their own may run as root.
const OWN_USERS: u32 = 35;

/// Types of volumes that the level allows.
const VOLUMES: [&str; 9] = [
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "image",
    "persistentVolumeClaim",
    "projected",
    "secret",
];

/// Types of volumes that the level forbids.
const OTHER_VOLUMES: [&str; 21] = [
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "gitRepo",
    "nfs",
    "iscsi",
    "glusterfs",
    "rbd",
    "flexVolume",
    "cinder",
    "cephfs",
    "flocker",
    "fc",
    "azureFile",
    "vsphereVolume",
    "quobyte",
    "azureDisk",
    "photonPersistentDisk",
    "portworxVolume",
    "scaleIO",
    "storageos",
];

fn is_exempt_windows(pod: &Pod<'_>, version: u32) -> bool {
    version >= WINDOWS && pod.is_windows()
}

pub(super) fn privilege_escalation(pod: &Pod<'_>, version: u32) -> Option<Violation> {
    let names = pod.names(|container| security(container, "allowPrivilegeEscalation").as_bool() != Some(false));
    if names.is_empty() || is_exempt_windows(pod, version) {
        return None;
    }
    let why = format!("{} must set securityContext.allowPrivilegeEscalation=false", containers(&names));
    Violation::new("allowPrivilegeEscalation != false", why)
}

pub(super) fn capabilities(pod: &Pod<'_>, version: u32) -> Option<Violation> {
    if is_exempt_windows(pod, version) {
        return None;
    }
    let drops_all = |container: &Value| {
        let dropped = container.list_at(&["securityContext", "capabilities", "drop"]);
        dropped.iter().any(|capability| capability.as_str() == Some("ALL"))
    };
    let keeping = pod.names(|container| !drops_all(container));
    let mut other = BTreeSet::new();
    let adding = pod.names(|container| add_others(container, &["NET_BIND_SERVICE"], &mut other));
    let mut details = Vec::new();
    if !keeping.is_empty() {
        details.push(format!("{} must set securityContext.capabilities.drop=[\"ALL\"]", containers(&keeping)));
    }
    if !adding.is_empty() {
        details.push(added(&adding, &other));
    }
    if details.is_empty() { None } else { Violation::new("unrestricted capabilities", details.join("; ")) }
}

pub(super) fn proc_mount(pod: &Pod<'_>, _: u32) -> Option<Violation> {
    unmasked_proc(pod)
}

pub(super) fn volumes(pod: &Pod<'_>, _: u32) -> Option<Violation> {
    let has = |volume: &Value, sort: &&str| !volume.at(&[sort]).is_null();
    let volumes = pod.spec.list_at(&["volumes"]).iter();
    let bad: Vec<&Value> = volumes.filter(|volume| !VOLUMES.iter().any(|sort| has(volume, sort))).collect();
    if bad.is_empty() {
        return None;
    }
    let sort = |volume: &&Value| OTHER_VOLUMES.into_iter().find(|sort| has(volume, sort)).unwrap_or("unknown");
    let sorts: BTreeSet<&str> = bad.iter().map(sort).collect();
    let names =
        format!("{} {}", plural("volume", bad.len()), quoted(bad.iter().map(|volume| volume.str_at(&["name"]))));
    let uses = if bad.len() == 1 { "uses" } else { "use" };
    let sorts = format!("{} {}", plural("restricted volume type", sorts.len()), quoted(sorts.iter()));
    Violation::new("restricted volume types", format!("{names} {uses} {sorts}"))
}

pub(super) fn run_as_non_root(pod: &Pod<'_>, version: u32) -> Option<Violation> {
    const REASON: &str = "runAsNonRoot != true";
    if version >= OWN_USERS && pod.has_own_users() {
        return None;
    }
    let (of_pod, own) =
        (pod.security("runAsNonRoot").as_bool(), |container| security(container, "runAsNonRoot").as_bool());
    let explicit = pod.names(|container| own(container) == Some(false));
    if let Some(who) = setters(of_pod == Some(false), &explicit) {
        return Violation::new(REASON, format!("{who} must not set securityContext.runAsNonRoot=false"));
    }
    let implicit = pod.names(|container| own(container).is_none() && of_pod != Some(true));
    if implicit.is_empty() {
        return None;
    }
    Violation::new(REASON, format!("pod or {} must set securityContext.runAsNonRoot=true", containers(&implicit)))
}

pub(super) fn run_as_user(pod: &Pod<'_>, version: u32) -> Option<Violation> {
    if version >= OWN_USERS && pod.has_own_users() {
        return None;
    }
    let names = pod.names(|container| security(container, "runAsUser").as_int() == Some(0));
    let who = setters(pod.security("runAsUser").as_int() == Some(0), &names)?;
    Violation::new("runAsUser=0", format!("{who} must not set runAsUser=0"))
}

pub(super) fn seccomp(pod: &Pod<'_>, version: u32) -> Option<Violation> {
    if is_exempt_windows(pod, version) {
        return None;
    }
    let bad = seccomp_types(*pod);
    if let Some(violation) = explicit_seccomp(&bad) {
        return Some(violation);
    }
    let set = !pod.security("seccompProfile").is_null();
    let implicit = pod.names(|container| !set && security(container, "seccompProfile").is_null());
    if implicit.is_empty() {
        return None;
    }
    let who = containers(&implicit);
    let why =
        format!("pod or {who} must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\"");
    Violation::new("seccompProfile", why)
}
