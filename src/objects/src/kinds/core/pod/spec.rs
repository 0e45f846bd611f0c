//! Validation of the spec of a pod, alone or in a template.

use std::collections::HashSet;

use flotilla_proto::value::Value;

use super::resources::requirements;
use super::scheduling::spread;
use super::security::{host, windows};
use super::{containers, network, scheduling, security, volumes};
use crate::field::{Errors, Path};
use crate::kinds::core::capabilities;
use crate::rules::{names, shown};

/// Longest deadline, in seconds.
const DEADLINE_SECONDS_MAX: i64 = i32::MAX as i64;

/// Deviations from the rules. There are exceptions for pods, as opposed to templates, and for stored objects that
/// already break a rule. There is one further restriction if this server forbids privileged containers.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// A pod is checked, not a template.
    pub is_pod: bool,
    /// The deletion cost may have any value.
    pub any_deletion_cost: bool,
    /// Selectors in affinity terms may have values that no label can have.
    pub any_selector_value: bool,
    /// Required node affinity may have values that no label can have.
    pub any_node_affinity_value: bool,
    /// Amounts of huge pages need not be multiples of the page.
    pub uneven_huge_pages: bool,
    /// Selectors of spread constraints are not checked.
    pub any_spread_selector: bool,
    /// Label keys of spread constraints are checked by the older rule.
    pub old_spread_keys: bool,
    /// Paths of projected tokens may leave the volume.
    pub any_token_path: bool,
    /// Sysctls may contradict the host's namespaces.
    pub any_sysctl: bool,
    /// Init containers may ask for a restart when they are resized.
    pub init_restart_on_resize: bool,
    /// Containers of pods with user namespaces may have volume devices.
    pub devices_without_host_users: bool,
    /// Pods with user namespaces may use the host's network.
    pub host_network_without_host_users: bool,
    /// Any SELinux change policy may be chosen.
    pub any_selinux_policy: bool,
    /// Containers must be neither privileged nor processes of the host.
    pub no_privileged: bool,
}

impl Options {
    /// Returns the exceptions for a pod, given the stored one.
    pub fn of_pod(old: Option<&Value>) -> Self {
        Self { is_pod: true, ..Self::of_template(old) }
    }

    /// Returns the exceptions for an update of a pod. If the update does not change the spec, which is then not
    /// checked, computes only the exceptions for the rest.
    pub fn of_update(pod: &Value, old: &Value) -> Self {
        if !is_shared(pod, old) {
            return Self::of_pod(Some(old));
        }
        let any_deletion_cost = !super::annotations::is_deletion_cost_valid(old.at(&["metadata", "annotations"]));
        Self { is_pod: true, any_deletion_cost, ..Self::of_all() }
    }

    /// Returns the exceptions that apply to every pod and template.
    fn of_all() -> Self {
        Self { no_privileged: capabilities::refuses_privileged(), ..Self::default() }
    }

    /// Returns the exceptions for a template, given the stored object.
    pub fn of_template(old: Option<&Value>) -> Self {
        let Some(old) = old else { return Self::of_all() };
        let spec = old.at(&["spec"]);
        Self {
            is_pod: false,
            any_deletion_cost: !super::annotations::is_deletion_cost_valid(old.at(&["metadata", "annotations"])),
            any_selector_value: scheduling::has_invalid_selector(spec),
            any_node_affinity_value: scheduling::has_impossible_node_affinity(spec),
            uneven_huge_pages: requirements::has_uneven_huge_pages(spec),
            any_spread_selector: spread::has_invalid_selector(spec),
            old_spread_keys: spread::has_invalid_keys(spec),
            any_token_path: super::volumes::projected::has_token_outside(spec),
            any_sysctl: security::has_contradicting_sysctl(spec),
            init_restart_on_resize: containers::has_init_restart_on_resize(spec),
            devices_without_host_users: !has_host_users(spec) && has_volume_devices(spec),
            host_network_without_host_users: !has_host_users(spec) && spec.is_true_at(&["hostNetwork"]),
            any_selinux_policy: !spec.at(&["securityContext", "seLinuxChangePolicy"]).is_null(),
            ..Self::of_all()
        }
    }
}

/// Returns whether a pod and its stored object share one spec, so that the update leaves it unchanged. A shared spec is
/// not checked again: it passed stricter checks when it was stored. A pod that becomes a mirror pod, or ceases to be
/// one, counts as changed, since other rules apply.
pub fn is_shared(pod: &Value, old: &Value) -> bool {
    let is_mirror = |pod: &Value| super::annotations::is_mirror(pod.at(&["metadata"]));
    pod.at(&["spec"]).is_same(old.at(&["spec"])) && is_mirror(pod) == is_mirror(old)
}

/// Returns whether a pod uses the host's user namespace.
pub fn has_host_users(spec: &Value) -> bool {
    spec.at(&["hostUsers"]) != &Value::Bool(false)
}

fn has_volume_devices(spec: &Value) -> bool {
    let mut found = false;
    for_each_container(spec, &Path::root("spec"), |container, _| {
        found |= !container.list_at(&["volumeDevices"]).is_empty();
    });
    found
}

/// Calls `visit` with every container and its path, in the order in which the reference walks them.
pub fn for_each_container(spec: &Value, path: &Path<'_>, mut visit: impl FnMut(&Value, &Path<'_>)) {
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        let path = path.child(list);
        for (n, container) in spec.list_at(&[list]).iter().enumerate() {
            visit(container, &path.index(n));
        }
    }
}

/// Facts about a pod that the checks of its parts need.
#[derive(Debug)]
pub struct Surroundings<'a> {
    /// The exceptions from the rules.
    pub options: &'a Options,
    /// Valid volumes by name.
    pub volumes: volumes::Volumes<'a>,
    /// Names of the pod's resource claims.
    pub claims: Vec<&'a str>,
    /// Grace period in seconds, if there is one.
    pub grace_period: Option<i64>,
    /// Restart policy of the pod.
    pub restart_policy: &'a str,
    /// The operating system, if it is stated.
    pub os: Option<&'a str>,
    /// Whether the pod uses the host's user namespace.
    pub host_users: bool,
}

/// Checks the spec of a pod. `metadata` is that of the pod. It is `None` for a template.
pub fn validate(spec: &Value, metadata: Option<&Value>, path: &Path<'_>, options: &Options, errors: &mut Errors) {
    let grace_period = spec.int_at(&["terminationGracePeriodSeconds"]);
    if grace_period.is_none() {
        errors.required(&path.child("terminationGracePeriodSeconds"), "");
    }
    let claims = spec.list_at(&["resourceClaims"]);
    let around = Surroundings {
        options,
        volumes: volumes::validate(spec.list_at(&["volumes"]), metadata, &path.child("volumes"), options, errors),
        claims: claims.iter().map(|claim| claim.str_at(&["name"])).filter(|name| !name.is_empty()).collect(),
        grace_period,
        restart_policy: spec.str_at(&["restartPolicy"]),
        os: spec.at(&["os"]).as_object().map(|_| spec.str_at(&["os", "name"])),
        host_users: has_host_users(spec),
    };
    resource_claims(claims, metadata, &path.child("resourceClaims"), errors);
    containers::validate(spec, path, &around, errors);
    requirements::validate_pod(spec, path, &around, errors);
    host::host_network_ports(spec, path, options, errors);
    let restart = ["Always", "OnFailure", "Never"];
    choice(&path.child("restartPolicy"), around.restart_policy, &restart, errors);
    let dns = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
    choice(&path.child("dnsPolicy"), spec.str_at(&["dnsPolicy"]), &dns, errors);
    crate::rules::labels::validate_labels(spec.at(&["nodeSelector"]), &path.child("nodeSelector"), errors);
    security::validate_pod(spec, &path.child("securityContext"), options, errors);
    scheduling::validate_affinity(spec.at(&["affinity"]), &path.child("affinity"), options, errors);
    network::validate_dns(spec, &path.child("dnsConfig"), errors);
    gates(spec, path, errors);
    let constraints = spec.list_at(&["topologySpreadConstraints"]);
    spread::validate(constraints, &path.child("topologySpreadConstraints"), options, errors);
    windows::host_process(spec, path, options, errors);
    host::without_host_users(spec, path, options, errors);
    network::hostname_override(spec, path, errors);
    plain_fields(spec, path, errors);
    later_fields(spec, path, &around, errors);
}

/// Checks that a word is one of those allowed; an empty one is reported as missing.
pub fn choice(path: &Path<'_>, word: &str, allowed: &[&str], errors: &mut Errors) {
    if word.is_empty() {
        errors.required(path, "");
    } else if !allowed.contains(&word) {
        errors.not_supported(path, word, allowed);
    }
}

fn resource_claims(claims: &[Value], metadata: Option<&Value>, path: &Path<'_>, errors: &mut Errors) {
    let mut seen = HashSet::new();
    for (n, claim) in claims.iter().enumerate() {
        let path = path.index(n);
        if metadata.is_some_and(super::annotations::is_mirror) {
            errors.forbidden(&Path::root("[]"), "static pods do not support resource claims");
            continue;
        }
        let name = claim.str_at(&["name"]);
        if name.is_empty() {
            errors.required(&path.child("name"), "");
        } else if !seen.insert(name) {
            errors.duplicate(&path.child("name"), claim.at(&["name"]));
        } else {
            names::check(&path.child("name"), name, names::dns1123_label, errors);
        }
        let (direct, template) = (claim.at(&["resourceClaimName"]), claim.at(&["resourceClaimTemplateName"]));
        let why = match (direct.as_str(), template.as_str()) {
            (Some(_), Some(_)) => "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified",
            (None, None) => "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`",
            _ => "",
        };
        if !why.is_empty() {
            let shown = shown::text("PodResourceClaim", claim);
            errors.push(crate::field::ErrorKind::Invalid, &path, shown, why);
        }
        for key in ["resourceClaimName", "resourceClaimTemplateName"] {
            if let Some(name) = claim.at(&[key]).as_str() {
                names::check(&path.child(key), name, names::dns1123_subdomain, errors);
            }
        }
    }
}

fn gates(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let readiness = path.child("readinessGates");
    for (n, gate) in spec.list_at(&["readinessGates"]).iter().enumerate() {
        let path = readiness.index(n);
        names::check(&path.child("conditionType"), gate.str_at(&["conditionType"]), names::qualified_name, errors);
    }
    let scheduling = path.child("schedulingGates");
    let mut seen = HashSet::new();
    for (n, gate) in spec.list_at(&["schedulingGates"]).iter().enumerate() {
        let name = gate.str_at(&["name"]);
        names::check(&scheduling.index(n), name, names::qualified_name, errors);
        if !seen.insert(name) {
            errors.duplicate(&scheduling.index(n), &name.into());
        }
    }
}

fn plain_fields(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    for key in ["serviceAccountName", "nodeName"] {
        let name = spec.str_at(&[key]);
        if !name.is_empty() {
            names::check(&path.child(key), name, names::dns1123_subdomain, errors);
        }
    }
    if let Some(seconds) = spec.int_at(&["activeDeadlineSeconds"])
        && !(1..=DEADLINE_SECONDS_MAX).contains(&seconds)
    {
        let why = names::between(1, DEADLINE_SECONDS_MAX);
        errors.invalid(&path.child("activeDeadlineSeconds"), &seconds.into(), why);
    }
    for key in ["hostname", "subdomain"] {
        let name = spec.str_at(&[key]);
        if !name.is_empty() {
            names::check(&path.child(key), name, names::dns1123_label, errors);
        }
    }
}

fn later_fields(spec: &Value, path: &Path<'_>, around: &Surroundings<'_>, errors: &mut Errors) {
    scheduling::validate_tolerations(spec.list_at(&["tolerations"]), &path.child("tolerations"), errors);
    network::host_aliases(spec.list_at(&["hostAliases"]), &path.child("hostAliases"), errors);
    let priority_class = spec.str_at(&["priorityClassName"]);
    if !priority_class.is_empty() {
        names::check(&path.child("priorityClassName"), priority_class, names::dns1123_subdomain, errors);
    }
    if let Some(class) = spec.at(&["runtimeClassName"]).as_str() {
        names::check(&path.child("runtimeClassName"), class, names::dns1123_subdomain, errors);
    }
    if let Some(policy) = spec.at(&["preemptionPolicy"]).as_str() {
        choice(&path.child("preemptionPolicy"), policy, &["PreemptLowerPriority", "Never"], errors);
    }
    requirements::validate_overhead(spec.at(&["overhead"]), &path.child("overhead"), around.options, errors);
    match around.os {
        None => {}
        Some("") => errors.required(&path.child("os").child("name"), ""),
        Some("linux") => windows::validate_linux(spec, path, errors),
        Some("windows") => windows::validate_windows(spec, path, errors),
        Some(other) => errors.not_supported(&path.child("os"), other, &["linux", "windows"]),
    }
    containers::env_files(spec, path, errors);
}
