//! Validation of containers: init, ordinary and ephemeral ones.
//!
//! `env` checks environment variables, `handlers` probes and lifecycle hooks, `mounts` the volumes that a container
//! mounts. `image` parses the names of images for the default pull policy.

pub(super) mod env;
mod handlers;
pub(super) mod image;
mod mounts;

use std::collections::HashSet;

use flotilla_proto::value::Value;

use super::resources::requirements;
use super::security;
use super::spec::{Surroundings, choice, for_each_container};
use crate::field::{Errors, Path};
use crate::rules::names;

/// Most restart rules of a container.
const RESTART_RULES_MAX: usize = 20;
/// Most exit codes in a restart rule.
const EXIT_CODES_MAX: usize = 255;
/// Fields that an ephemeral container cannot have.
const NOT_EPHEMERAL: [&str; 9] = [
    "ports",
    "resources",
    "resizePolicy",
    "restartPolicy",
    "restartPolicyRules",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
];

/// Checks all containers of a pod spec.
pub fn validate(spec: &Value, path: &Path<'_>, around: &Surroundings<'_>, errors: &mut Errors) {
    regular(spec.list_at(&["containers"]), &path.child("containers"), around, errors);
    init(spec, &path.child("initContainers"), around, errors);
    ephemeral(spec, &path.child("ephemeralContainers"), around, errors);
}

fn name_of(container: &Value) -> &str {
    container.str_at(&["name"])
}

fn is_sidecar(container: &Value) -> bool {
    container.str_at(&["restartPolicy"]) == "Always"
}

fn regular(containers: &[Value], path: &Path<'_>, around: &Surroundings<'_>, errors: &mut Errors) {
    if containers.is_empty() {
        return errors.required(path, "");
    }
    let mut seen = HashSet::new();
    for (n, container) in containers.iter().enumerate() {
        let path = path.index(n);
        common(container, &path, around, errors);
        if !seen.insert(name_of(container)) {
            errors.duplicate(&path.child("name"), container.at(&["name"]));
        }
        handlers::validate_container(container, &path, around, errors);
        restart_rules(container, &path, errors);
    }
    host_port_conflicts(containers, path, errors);
}

fn init(spec: &Value, path: &Path<'_>, around: &Surroundings<'_>, errors: &mut Errors) {
    let containers = spec.list_at(&["initContainers"]);
    if containers.is_empty() {
        return;
    }
    let mut seen: HashSet<&str> = spec.list_at(&["containers"]).iter().map(name_of).collect();
    for (n, container) in containers.iter().enumerate() {
        let list = path;
        let path = path.index(n);
        common(container, &path, around, errors);
        if container.at(&["restartPolicy"]).is_null() {
            if !container.list_at(&["restartPolicyRules"]).is_empty() {
                errors.required(&path.child("restartPolicy"), "must specify restartPolicy when restart rules are used");
            }
        } else {
            restart_rules(container, &path, errors);
        }
        let name = name_of(container);
        if seen.contains(name) {
            errors.duplicate(&path.child("name"), container.at(&["name"]));
        } else if !name.is_empty() {
            seen.insert(name);
        }
        host_port_conflicts(std::slice::from_ref(container), list, errors);
        if is_sidecar(container) {
            handlers::validate_container(container, &path, around, errors);
        } else {
            only_sidecars(container, &path, around, errors);
        }
    }
}

/// Checks that an init container that is no sidecar has no fields of sidecars.
fn only_sidecars(container: &Value, path: &Path<'_>, around: &Surroundings<'_>, errors: &mut Errors) {
    for key in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
        if !container.at(&[key]).is_null() {
            errors.forbidden(&path.child(key), "may not be set for init containers without restartPolicy=Always");
        }
    }
    if around.options.init_restart_on_resize {
        return;
    }
    let policies = path.child("resizePolicy");
    for (n, policy) in container.list_at(&["resizePolicy"]).iter().enumerate() {
        if policy.str_at(&["restartPolicy"]) == "RestartContainer" {
            let why = "must not be set to 'RestartContainer' for non-sidecar initContainers";
            errors.invalid_str(&policies.index(n).child("restartPolicy"), "RestartContainer", why);
        }
    }
}

/// Returns whether an init container of the stored object has a resize policy with a restart.
pub fn has_init_restart_on_resize(spec: &Value) -> bool {
    let restarts = |policy: &Value| policy.str_at(&["restartPolicy"]) == "RestartContainer";
    let mut containers = spec.list_at(&["initContainers"]).iter().filter(|container| !is_sidecar(container));
    containers.any(|container| container.list_at(&["resizePolicy"]).iter().any(restarts))
}

fn ephemeral(spec: &Value, path: &Path<'_>, around: &Surroundings<'_>, errors: &mut Errors) {
    let containers = spec.list_at(&["ephemeralContainers"]);
    if containers.is_empty() {
        return;
    }
    let lists = [spec.list_at(&["containers"]), spec.list_at(&["initContainers"])];
    let others: HashSet<&str> = lists.into_iter().flatten().map(name_of).collect();
    let mut seen = others.clone();
    for (n, container) in containers.iter().enumerate() {
        let path = path.index(n);
        common(container, &path, around, errors);
        only_for_pod(container, &path, errors);
        if !seen.insert(name_of(container)) {
            errors.duplicate(&path.child("name"), container.at(&["name"]));
        }
        let target = container.str_at(&["targetContainerName"]);
        if !target.is_empty() && !others.contains(target) {
            errors.not_found(&path.child("targetContainerName"), &target.into());
        }
        for key in NOT_EPHEMERAL {
            let value = container.at(&[key]);
            // Resources are always there; without any they are empty.
            let is_unset = value.is_null() || (key == "resources" && value == &Value::object());
            if !is_unset {
                errors.forbidden(&path.child(key), "cannot be set for an Ephemeral Container");
            }
        }
        let mounts = path.child("volumeMounts");
        for (n, mount) in container.list_at(&["volumeMounts"]).iter().enumerate() {
            for key in ["subPath", "subPathExpr"] {
                if !mount.str_at(&[key]).is_empty() {
                    let path = mounts.index(n);
                    errors.forbidden(&path.child(key), "cannot be set for an Ephemeral Container");
                }
            }
        }
    }
}

fn common(container: &Value, path: &Path<'_>, around: &Surroundings<'_>, errors: &mut Errors) {
    let name = name_of(container);
    if name.is_empty() {
        errors.required(&path.child("name"), "");
    } else {
        names::check(&path.child("name"), name, names::dns1123_label, errors);
    }
    if container.str_at(&["image"]).is_empty() {
        errors.required(&path.child("image"), "");
    }
    let policies = ["File", "FallbackToLogsOnError"];
    let policy = container.str_at(&["terminationMessagePolicy"]);
    choice(&path.child("terminationMessagePolicy"), policy, &policies, errors);
    ports(container.list_at(&["ports"]), &path.child("ports"), errors);
    env::validate(container.list_at(&["env"]), &path.child("env"), errors);
    env::validate_from(container.list_at(&["envFrom"]), &path.child("envFrom"), errors);
    mounts::validate(container, path, &around.volumes, errors);
    pull_policy(&path.child("imagePullPolicy"), container.str_at(&["imagePullPolicy"]), errors);
    let resources = container.at(&["resources"]);
    requirements::validate_container(resources, &around.claims, &path.child("resources"), around.options, errors);
    resize_policies(container, &path.child("resizePolicy"), around.restart_policy, errors);
    let context = path.child("securityContext");
    security::validate_container(container.at(&["securityContext"]), &context, around, errors);
}

/// Checks when an image is pulled.
pub fn pull_policy(path: &Path<'_>, policy: &str, errors: &mut Errors) {
    choice(path, policy, &["Always", "IfNotPresent", "Never"], errors);
}

/// Checks that an image name has no surrounding spaces. This applies to pods, not to templates.
pub fn only_for_pod(container: &Value, path: &Path<'_>, errors: &mut Errors) {
    let image = container.str_at(&["image"]);
    if image.trim() != image {
        errors.invalid_str(&path.child("image"), image, "must not have leading or trailing whitespace");
    }
}

fn ports(ports: &[Value], path: &Path<'_>, errors: &mut Errors) {
    let mut seen = HashSet::new();
    for (n, port) in ports.iter().enumerate() {
        let path = path.index(n);
        let name = port.str_at(&["name"]);
        if !name.is_empty() {
            let messages = names::port_name(name);
            if messages.is_empty() {
                if !seen.insert(name) {
                    errors.duplicate(&path.child("name"), &name.into());
                }
            } else {
                messages.into_iter().for_each(|why| errors.invalid_str(&path.child("name"), name, why));
            }
        }
        match port.int_at(&["containerPort"]).unwrap_or(0) {
            0 => errors.required(&path.child("containerPort"), ""),
            number => port_number(&path.child("containerPort"), number, errors),
        }
        match port.int_at(&["hostPort"]).unwrap_or(0) {
            0 => {}
            number => port_number(&path.child("hostPort"), number, errors),
        }
        choice(&path.child("protocol"), port.str_at(&["protocol"]), &["SCTP", "TCP", "UDP"], errors);
    }
}

/// Checks the number of a port.
pub fn port_number(path: &Path<'_>, number: i64, errors: &mut Errors) {
    for why in names::port_number(number) {
        errors.invalid(path, &number.into(), why);
    }
}

fn host_port_conflicts(containers: &[Value], path: &Path<'_>, errors: &mut Errors) {
    let mut seen = HashSet::new();
    for (n, container) in containers.iter().enumerate() {
        let path = path.index(n);
        let ports = path.child("ports");
        for (n, port) in container.list_at(&["ports"]).iter().enumerate() {
            let number = port.int_at(&["hostPort"]).unwrap_or(0);
            let (protocol, address) = (port.str_at(&["protocol"]), port.str_at(&["hostIP"]));
            if number != 0 && !seen.insert((protocol, address, number)) {
                let shown = Value::from(format!("{protocol}/{address}/{number}"));
                errors.duplicate(&ports.index(n).child("hostPort"), &shown);
            }
        }
    }
}

fn resize_policies(container: &Value, path: &Path<'_>, pod_restart_policy: &str, errors: &mut Errors) {
    let mut seen = HashSet::new();
    for (n, policy) in container.list_at(&["resizePolicy"]).iter().enumerate() {
        let resource = policy.str_at(&["resourceName"]);
        if !seen.insert(resource) {
            errors.duplicate(&path.index(n), &resource.into());
        }
        choice(path, resource, &["cpu", "memory"], errors);
        let restart = policy.str_at(&["restartPolicy"]);
        choice(path, restart, &["NotRequired", "RestartContainer"], errors);
        if pod_restart_policy == "Never" && restart != "NotRequired" {
            errors.invalid_str(path, restart, "must be 'NotRequired' when pod `restartPolicy` is 'Never'");
        }
    }
}

fn restart_rules(container: &Value, path: &Path<'_>, errors: &mut Errors) {
    let rules = container.list_at(&["restartPolicyRules"]);
    match container.at(&["restartPolicy"]).as_str() {
        None if rules.is_empty() => return,
        None => errors.required(&path.child("restartPolicy"), "must specify restartPolicy when restart rules are used"),
        Some(policy) => {
            let allowed = ["Always", "Never", "OnFailure"];
            if !allowed.contains(&policy) {
                errors.not_supported(&path.child("restartPolicy"), policy, &allowed);
            }
        }
    }
    let path = path.child("restartPolicyRules");
    if rules.len() > RESTART_RULES_MAX {
        errors.too_many(&path, rules.len(), RESTART_RULES_MAX);
    }
    for (n, rule) in rules.iter().enumerate() {
        let path = path.index(n);
        let (action, actions) = (rule.str_at(&["action"]), ["Restart", "RestartAllContainers"]);
        if !actions.contains(&action) {
            errors.not_supported(&path.child("action"), action, &actions);
        }
        let codes = rule.at(&["exitCodes"]);
        let path = path.child("exitCodes");
        if codes.is_null() {
            errors.required(&path, "must be specified");
            continue;
        }
        let operator = codes.str_at(&["operator"]);
        if !matches!(operator, "In" | "NotIn") {
            errors.not_supported(&path.child("operator"), operator, &["In", "NotIn"]);
        }
        let count = codes.list_at(&["values"]).len();
        if count > EXIT_CODES_MAX {
            errors.too_many(&path.child("values"), count, EXIT_CODES_MAX);
        }
    }
}

/// Checks that files with environment variables lie in `emptyDir` volumes.
pub fn env_files(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    for_each_container(spec, path, |container, path| {
        let variables = path.child("env");
        for (n, variable) in container.list_at(&["env"]).iter().enumerate() {
            let file = variable.at(&["valueFrom", "fileKeyRef"]);
            if file.is_null() {
                continue;
            }
            let name = file.str_at(&["volumeName"]);
            let variable = variables.index(n);
            let source = variable.child("valueFrom");
            let reference = source.child("fileKeyRef");
            let path = reference.child("volumeName");
            match spec.list_at(&["volumes"]).iter().rfind(|volume| volume.str_at(&["name"]) == name) {
                None => errors.not_found(&path, &name.into()),
                Some(volume) if volume.at(&["emptyDir"]).is_null() => {
                    errors.invalid_str(&path, name, "referenced volume must be of type emptyDir");
                }
                Some(_) => {}
            }
        }
    });
}
