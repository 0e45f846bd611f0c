//! Checks of the level `baseline`: it forbids known ways to raise privileges.

use std::collections::BTreeSet;

use flotilla_proto::value::{Map, Value};

use super::violation::{ForbiddenValues, Pod, Violation, containers, plural, quoted, security, setters};

const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";
const SECCOMP_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
const SECCOMP_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";

const CAPABILITIES: [&str; 13] = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];

/// Kernel parameters that affect only the pod itself, and the minor version since which they are allowed.
const SYSCTLS: [(&str, u32); 12] = [
    ("kernel.shm_rmid_forced", 0),
    ("net.ipv4.ip_local_port_range", 0),
    ("net.ipv4.tcp_syncookies", 0),
    ("net.ipv4.ping_group_range", 0),
    ("net.ipv4.ip_unprivileged_port_start", 0),
    ("net.ipv4.ip_local_reserved_ports", 27),
    ("net.ipv4.tcp_keepalive_time", 29),
    ("net.ipv4.tcp_fin_timeout", 29),
    ("net.ipv4.tcp_keepalive_intvl", 29),
    ("net.ipv4.tcp_keepalive_probes", 29),
    ("net.ipv4.tcp_rmem", 32),
    ("net.ipv4.tcp_wmem", 32),
];

pub(super) fn app_armor(pod: &Pod<'_>, _: u32) -> Option<Violation> {
    let bad = ForbiddenValues::types(*pod, "appArmorProfile", |kind| matches!(kind, "RuntimeDefault" | "Localhost"));
    let allowed = |value: &str| value.is_empty() || value == "runtime/default" || value.starts_with("localhost/");
    let annotations = pod.metadata.map_at(&["annotations"]).into_iter().flat_map(Map::iter);
    let mut forbidden: Vec<String> = annotations
        .filter_map(|(key, value)| Some((key, value.as_str()?)))
        .filter(|(key, value)| key.starts_with(APP_ARMOR) && !allowed(value))
        .map(|(key, value)| format!("{key}={}", crate::field::quote(value)))
        .collect();
    forbidden.sort_unstable();
    let mut who: Vec<String> = setters(bad.pod, &bad.names).into_iter().collect();
    if !forbidden.is_empty() {
        who.push(plural("annotation", forbidden.len()));
    }
    if who.is_empty() {
        return None;
    }
    let values: Vec<String> = bad.values.iter().map(|value| (*value).to_owned()).chain(forbidden).collect();
    let reason = plural("forbidden AppArmor profile", values.len());
    let values = quoted(values.iter());
    Violation::new(reason, format!("{} must not set AppArmor profile type to {values}", who.join(" and ")))
}

pub(super) fn capabilities(pod: &Pod<'_>, _: u32) -> Option<Violation> {
    let mut other = BTreeSet::new();
    let names = pod.names(|container| add_others(container, &CAPABILITIES, &mut other));
    if names.is_empty() {
        return None;
    }
    Violation::new("non-default capabilities", added(&names, &other))
}

/// Collects into `other` the capabilities that a container adds and that are not allowed; returns whether there are
/// any.
pub(super) fn add_others<'a>(container: &'a Value, allowed: &[&str], other: &mut BTreeSet<&'a str>) -> bool {
    let added = container.list_at(&["securityContext", "capabilities", "add"]).iter().filter_map(Value::as_str);
    let bad: Vec<&str> = added.filter(|capability| !allowed.contains(capability)).collect();
    other.extend(&bad);
    !bad.is_empty()
}

pub(super) fn added(names: &[&str], capabilities: &BTreeSet<&str>) -> String {
    let (who, what) = (containers(names), quoted(capabilities.iter()));
    format!("{who} must not include {what} in securityContext.capabilities.add")
}

pub(super) fn host_namespaces(pod: &Pod<'_>, _: u32) -> Option<Violation> {
    let shared: Vec<String> = ["hostNetwork", "hostPID", "hostIPC"]
        .iter()
        .filter(|field| pod.spec.at(&[field]).as_bool() == Some(true))
        .map(|field| format!("{field}=true"))
        .collect();
    if shared.is_empty() { None } else { Violation::new("host namespaces", shared.join(", ")) }
}

pub(super) fn host_paths(pod: &Pod<'_>, _: u32) -> Option<Violation> {
    let volumes = pod.spec.list_at(&["volumes"]).iter().filter(|volume| !volume.at(&["hostPath"]).is_null());
    let names: Vec<&str> = volumes.map(|volume| volume.str_at(&["name"])).collect();
    if names.is_empty() {
        return None;
    }
    Violation::new("hostPath volumes", format!("{} {}", plural("volume", names.len()), quoted(names.iter())))
}

pub(super) fn host_ports(pod: &Pod<'_>, _: u32) -> Option<Violation> {
    let mut ports = BTreeSet::new();
    let names = pod.names(|container| {
        let taken = container.list_at(&["ports"]).iter().filter_map(|port| port.int_at(&["hostPort"]));
        let taken: Vec<String> = taken.filter(|port| *port != 0).map(|port| port.to_string()).collect();
        let takes = !taken.is_empty();
        ports.extend(taken);
        takes
    });
    if names.is_empty() {
        return None;
    }
    let (who, uses) = (containers(&names), if names.len() == 1 { "uses" } else { "use" });
    let all: Vec<&str> = ports.iter().map(String::as_str).collect();
    Violation::new("hostPort", format!("{who} {uses} {} {}", plural("hostPort", all.len()), all.join(", ")))
}

pub(super) fn probe_hosts(pod: &Pod<'_>, version: u32) -> Option<Violation> {
    if version < 34 {
        return None;
    }
    let handlers = [
        &["livenessProbe"][..],
        &["readinessProbe"],
        &["startupProbe"],
        &["lifecycle", "postStart"],
        &["lifecycle", "preStop"],
    ];
    let (mut names, mut hosts) = (BTreeSet::new(), BTreeSet::new());
    for container in pod.containers() {
        let of = |path: &&[&str]| {
            let handler = container.at(path);
            [handler.str_at(&["httpGet", "host"]), handler.str_at(&["tcpSocket", "host"])]
        };
        for host in handlers.iter().flat_map(of).filter(|host| !host.is_empty()) {
            names.insert(container.str_at(&["name"]));
            hosts.insert(host);
        }
    }
    if names.is_empty() {
        return None;
    }
    let (names, uses): (Vec<&str>, _) = (names.into_iter().collect(), "probe or lifecycle host");
    let verb = if names.len() == 1 { "uses" } else { "use" };
    let what = format!("{} {}", plural(uses, hosts.len()), quoted(hosts.iter()));
    Violation::new(uses, format!("{} {verb} {what}", containers(&names)))
}

pub(super) fn privileged(pod: &Pod<'_>, _: u32) -> Option<Violation> {
    let names = pod.names(|container| security(container, "privileged").as_bool() == Some(true));
    if names.is_empty() {
        return None;
    }
    Violation::new("privileged", format!("{} must not set securityContext.privileged=true", containers(&names)))
}

pub(super) fn proc_mount(pod: &Pod<'_>, version: u32) -> Option<Violation> {
    if version >= 35 && pod.has_own_users() { None } else { unmasked_proc(pod) }
}

pub(super) fn unmasked_proc(pod: &Pod<'_>) -> Option<Violation> {
    let mut kinds = BTreeSet::new();
    let names = pod.names(|container| {
        let kind = security(container, "procMount").as_str().filter(|kind| *kind != "Default");
        kinds.extend(kind);
        kind.is_some()
    });
    if names.is_empty() {
        return None;
    }
    let (who, kinds) = (containers(&names), quoted(kinds.iter()));
    Violation::new("procMount", format!("{who} must not set securityContext.procMount to {kinds}"))
}

pub(super) fn se_linux(pod: &Pod<'_>, version: u32) -> Option<Violation> {
    let fits = |kind: &str| {
        matches!(kind, "" | "container_t" | "container_init_t" | "container_kvm_t")
            || version >= 31 && kind == "container_engine_t"
    };
    let (mut types, mut user, mut role) = (BTreeSet::new(), false, false);
    let mut is_bad = |options: &'_ Value| {
        let kind = options.str_at(&["type"]).to_owned();
        let (has_user, has_role) = (!options.str_at(&["user"]).is_empty(), !options.str_at(&["role"]).is_empty());
        user |= has_user;
        role |= has_role;
        let unfit = !fits(&kind);
        if unfit {
            types.insert(kind);
        }
        unfit || has_user || has_role
    };
    let of_pod = is_bad(pod.security("seLinuxOptions"));
    let names = pod.names(|container| is_bad(security(container, "seLinuxOptions")));
    let who = setters(of_pod, &names)?;
    let mut what = Vec::new();
    if !types.is_empty() {
        what.push(format!("{} {}", plural("type", types.len()), quoted(types.iter())));
    }
    what.extend(user.then(|| "user may not be set".to_owned()));
    what.extend(role.then(|| "role may not be set".to_owned()));
    Violation::new("seLinuxOptions", format!("{who} set forbidden securityContext.seLinuxOptions: {}", what.join("; ")))
}

pub(super) fn seccomp(pod: &Pod<'_>, version: u32) -> Option<Violation> {
    if version < 19 {
        return seccomp_annotations(pod);
    }
    explicit_seccomp(&seccomp_types(*pod))
}

/// Returns the types of seccomp profiles that neither level allows, and the parts of the pod that set them.
pub(super) fn seccomp_types(pod: Pod<'_>) -> ForbiddenValues<'_> {
    ForbiddenValues::types(pod, "seccompProfile", |kind| matches!(kind, "RuntimeDefault" | "Localhost"))
}

pub(super) fn explicit_seccomp(bad: &ForbiddenValues<'_>) -> Option<Violation> {
    let who = setters(bad.pod, &bad.names)?;
    let values = quoted(bad.values.iter());
    Violation::new("seccompProfile", format!("{who} must not set securityContext.seccompProfile.type to {values}"))
}

fn seccomp_annotations(pod: &Pod<'_>) -> Option<Violation> {
    let allowed =
        |value: &str| matches!(value, "runtime/default" | "docker/default") || value.starts_with("localhost/");
    let own = pod.containers().map(|container| format!("{SECCOMP_CONTAINER}{}", container.str_at(&["name"])));
    let forbidden: BTreeSet<String> = std::iter::once(SECCOMP_POD.to_owned())
        .chain(own)
        .filter_map(|key| Some((pod.annotation(&key)?, key)))
        .filter(|(value, _)| !allowed(value))
        .map(|(value, key)| format!("{key}={}", crate::field::quote(value)))
        .collect();
    if forbidden.is_empty() {
        return None;
    }
    let all: Vec<&str> = forbidden.iter().map(String::as_str).collect();
    Violation::new("seccompProfile", format!("forbidden {} {}", plural("annotation", all.len()), all.join(", ")))
}

pub(super) fn sysctls(pod: &Pod<'_>, version: u32) -> Option<Violation> {
    let safe = |name: &str| SYSCTLS.iter().any(|(own, since)| *own == name && version >= *since);
    let set = pod.security("sysctls").as_array().unwrap_or(&[]).iter().map(|sysctl| sysctl.str_at(&["name"]));
    let other: Vec<&str> = set.filter(|name| !safe(name)).collect();
    if other.is_empty() { None } else { Violation::new("forbidden sysctls", other.join(", ")) }
}

pub(super) fn windows_host_process(pod: &Pod<'_>, _: u32) -> Option<Violation> {
    let is_host = |options: &Value| options.at(&["hostProcess"]).as_bool() == Some(true);
    let names = pod.names(|container| is_host(security(container, "windowsOptions")));
    let who = setters(is_host(pod.security("windowsOptions")), &names)?;
    Violation::new("hostProcess", format!("{who} must not set securityContext.windowsOptions.hostProcess=true"))
}
