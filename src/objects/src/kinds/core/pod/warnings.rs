//! Warnings about pod specs: fields without effect, and likely mistakes.

use std::collections::{HashMap, HashSet};

use flotilla_proto::value::{Map, Value};

use super::security::app_armor;
use super::spec::for_each_container;
use super::{annotations, volumes};
use crate::field::{Path, quote};
use crate::limits;
use crate::rules::node_selector::deprecation;
use crate::rules::{addresses, names, resources};

const OLD_ANNOTATIONS: [(&str, &str); 3] = [
    (
        "scheduler.alpha.kubernetes.io/critical-pod",
        "non-functional in v1.16+; use the \"priorityClassName\" field instead",
    ),
    ("security.alpha.kubernetes.io/sysctls", "non-functional in v1.11+; use the \"sysctls\" field instead"),
    ("security.alpha.kubernetes.io/unsafe-sysctls", "non-functional in v1.11+; use the \"sysctls\" field instead"),
];
const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
const NULL_SELECTOR: &str = "a null labelSelector results in matching no pod";

/// Adds the warnings about a new pod.
pub fn of_pod(pod: &Value, into: &mut Vec<String>) {
    app_armor_of_pod(pod, into);
    let messages = names::dns1123_label(pod.str_at(&["metadata", "name"]));
    if !messages.is_empty() {
        let why = "this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is \
            recommended";
        into.push(format!("metadata.name: {why}: [{}]", messages.join(" ")));
    }
    of_both(pod, &Path::root(""), false, into);
}

/// Adds the warnings about a pod template at `path`.
pub fn of_template(template: &Value, path: &Path<'_>, into: &mut Vec<String>) {
    if !template.is_null() {
        of_both(template, path, true, into);
    }
}

fn of_both(holder: &Value, path: &Path<'_>, is_template: bool, into: &mut Vec<String>) {
    let spec = holder.at(&["spec"]);
    let spec_path = path.child("spec");
    node_labels(spec, &spec_path, into);
    spread(spec, &spec_path, into);
    let notes = holder.at(&["metadata", "annotations"]);
    let metadata = path.child("metadata");
    let notes_path = metadata.child("annotations");
    for (key, why) in OLD_ANNOTATIONS {
        if notes.get(key).is_some() {
            into.push(format!("{}: {why}", notes_path.key(key)));
        }
    }
    volumes::warnings::of_volumes(spec.list_at(&["volumes"]), &spec_path.child("volumes"), into);
    duplicates(spec, &spec_path, into);
    fractions(spec.map_at(&["overhead"]), &spec_path.child("overhead"), into);
    containers(spec, &spec_path, notes, &notes_path, is_template, into);
    ports(spec, &spec_path, into);
    if spec.int_at(&["terminationGracePeriodSeconds"]).is_some_and(|seconds| seconds < 0) {
        let path = spec_path.child("terminationGracePeriodSeconds");
        into.push(format!("{path}: must be >= 0; negative values are invalid and will be treated as 1"));
    }
    pod_affinity(spec, &spec_path, into);
    let config = spec_path.child("dnsConfig");
    let servers = config.child("nameservers");
    for (n, server) in spec.list_at(&["dnsConfig", "nameservers"]).iter().enumerate() {
        addresses::warn_address(&servers.index(n), server.as_str().unwrap_or(""), into);
    }
    let aliases = spec_path.child("hostAliases");
    for (n, alias) in spec.list_at(&["hostAliases"]).iter().enumerate() {
        addresses::warn_address(&aliases.index(n).child("ip"), alias.str_at(&["ip"]), into);
    }
}

fn node_labels(spec: &Value, path: &Path<'_>, into: &mut Vec<String>) {
    for key in spec.map_at(&["nodeSelector"]).into_iter().flat_map(Map::keys) {
        if let Some(why) = deprecation(key) {
            into.push(format!("{}: {why}", path.child("nodeSelector").key(key)));
        }
    }
    let affinity = spec.at(&["affinity", "nodeAffinity"]);
    if affinity.is_null() {
        return;
    }
    let affinity_path = path.child("affinity");
    let path = affinity_path.child("nodeAffinity");
    let required = path.child(REQUIRED);
    let terms = required.child("nodeSelectorTerms");
    for (n, term) in affinity.list_at(&[REQUIRED, "nodeSelectorTerms"]).iter().enumerate() {
        node_term(term, false, &terms.index(n), into);
    }
    let preferred = path.child(PREFERRED);
    for (n, term) in affinity.list_at(&[PREFERRED]).iter().enumerate() {
        let path = preferred.index(n);
        node_term(term.at(&["preference"]), true, &path.child("preference"), into);
    }
}

/// Warns of a node selector term with deprecated labels, and, if `check_values`, of values that no label can have.
pub fn node_term(term: &Value, check_values: bool, path: &Path<'_>, into: &mut Vec<String>) {
    let path = path.child("matchExpressions");
    for (n, expression) in term.list_at(&["matchExpressions"]).iter().enumerate() {
        let path = path.index(n);
        let key = expression.str_at(&["key"]);
        if let Some(why) = deprecation(key) {
            into.push(format!("{}: {key} is {why}", path.child("key")));
        }
        let values = path.child("values");
        for (n, value) in expression.list_at(&["values"]).iter().enumerate().filter(|_| check_values) {
            let value = value.as_str().unwrap_or("");
            for why in names::label_value(value) {
                into.push(format!("{}: {value} is invalid, {why}", values.index(n)));
            }
        }
    }
}

fn spread(spec: &Value, path: &Path<'_>, into: &mut Vec<String>) {
    let path = path.child("topologySpreadConstraints");
    for (n, constraint) in spec.list_at(&["topologySpreadConstraints"]).iter().enumerate() {
        let path = path.index(n);
        let key = constraint.str_at(&["topologyKey"]);
        if let Some(why) = deprecation(key) {
            into.push(format!("{}: {key} is {why}", path.child("topologyKey")));
        }
        if constraint.at(&["labelSelector"]).is_null() {
            into.push(format!("{}: {NULL_SELECTOR}", path.child("labelSelector")));
        }
    }
}

fn duplicates(spec: &Value, path: &Path<'_>, into: &mut Vec<String>) {
    for (list, key) in [("hostAliases", "ip"), ("imagePullSecrets", "name")] {
        let path = path.child(list);
        let items = spec.list_at(&[list]);
        let mut seen = HashSet::new();
        for (n, item) in items.iter().enumerate() {
            let text = item.str_at(&[key]);
            if !seen.insert(text) {
                into.push(format!("{}: duplicate {key} {}", path.index(n).child(key), quote(text)));
            }
        }
        for (n, _) in items.iter().enumerate().filter(|(_, item)| key == "name" && item.str_at(&[key]).is_empty()) {
            into.push(format!("{}: invalid empty name \"\"", path.index(n).child(key)));
        }
    }
}

/// Warns of amounts that are not whole bytes.
fn fractions(list: Option<&Map>, path: &Path<'_>, into: &mut Vec<String>) {
    for name in ["memory", "ephemeral-storage"] {
        let Some(amount) = list.and_then(|list| list.get(name)).map(resources::amount) else { continue };
        if amount.milli_value() % 1000 != 0 {
            let amount = quote(&amount.to_string());
            into.push(format!("{}: fractional byte value {amount} is invalid, must be an integer", path.key(name)));
        }
    }
}

fn containers(
    spec: &Value,
    path: &Path<'_>,
    notes: &Value,
    notes_path: &Path<'_>,
    is_template: bool,
    into: &mut Vec<String>,
) {
    let seccomp = "non-functional in v1.27+; use the \"seccompProfile\" field instead";
    let unset = |holder: &Value, key: &str| holder.at(&["securityContext", key]).is_null();
    if unset(spec, "seccompProfile") && notes.get(annotations::SECCOMP_POD).is_some() {
        into.push(format!("{}: {seccomp}", notes_path.key(annotations::SECCOMP_POD)));
    }
    let has_notes = annotations::concern_security(notes);
    for_each_container(spec, path, |container, path| {
        let name = container.str_at(&["name"]);
        if has_notes && unset(container, "seccompProfile") {
            let key = format!("{}{name}", annotations::SECCOMP_CONTAINER);
            if notes.get(&key).is_some() {
                into.push(format!("{}: {seccomp}", notes_path.key(&key)));
            }
        }
        if is_template && has_notes && unset(container, "appArmorProfile") {
            let key = format!("{}{name}", app_armor::ANNOTATION_PREFIX);
            let of_pod = spec.at(&["securityContext", "appArmorProfile"]);
            if let Some(note) = notes.at(&[&key]).as_str()
                && (of_pod.is_null() || Some(of_pod) != app_armor::field_for_annotation(note).as_ref())
            {
                into.push(app_armor_warning(notes_path, &key));
            }
        }
        memory_then_storage(container, path, into);
        hidden_variables(container, &path.child("env"), into);
    });
}

fn memory_then_storage(container: &Value, path: &Path<'_>, into: &mut Vec<String>) {
    let path = path.child("resources");
    for name in ["memory", "ephemeral-storage"] {
        for list in ["limits", "requests"] {
            let value = container.at(&["resources", list, name]);
            let amount = resources::amount(value);
            if !value.is_null() && amount.milli_value() % 1000 != 0 {
                let (path, amount) = (path.child(list), quote(&amount.to_string()));
                into.push(format!("{}: fractional byte value {amount} is invalid, must be an integer", path.key(name)));
            }
        }
    }
}

fn app_armor_warning(path: &Path<'_>, key: &str) -> String {
    format!("{}: deprecated since v1.30; use the \"appArmorProfile\" field instead", path.key(key))
}

/// Warns of AppArmor annotations of a pod; the server has already set the fields from them where it could.
fn app_armor_of_pod(pod: &Value, into: &mut Vec<String>) {
    let spec = pod.at(&["spec"]);
    let notes = pod.at(&["metadata", "annotations"]);
    if spec.str_at(&["os", "name"]) == "windows" || !annotations::concern_security(notes) {
        return;
    }
    let metadata = Path::root("metadata");
    let path = metadata.child("annotations");
    let of_pod = spec.at(&["securityContext", "appArmorProfile"]);
    for_each_container(spec, &Path::root("spec"), |container, _| {
        let key = format!("{}{}", app_armor::ANNOTATION_PREFIX, container.str_at(&["name"]));
        let Some(note) = notes.at(&[&key]).as_str() else { return };
        let own = container.at(&["securityContext", "appArmorProfile"]);
        let warns = match app_armor::field_for_annotation(note) {
            None => own.is_null(),
            Some(field) => *own == field && *of_pod != field,
        };
        if warns {
            into.push(app_armor_warning(&path, &key));
        }
    });
}

fn hidden_variables(container: &Value, path: &Path<'_>, into: &mut Vec<String>) {
    let variables = container.list_at(&["env"]);
    let mut names: Vec<&str> = variables.iter().map(|variable| variable.str_at(&["name"])).collect();
    names.sort_unstable();
    if names.windows(2).all(|pair| pair[0] != pair[1]) {
        return;
    }
    let mut seen = HashSet::new();
    for (n, variable) in variables.iter().enumerate() {
        let name = variable.str_at(&["name"]);
        if seen.insert(name) {
            continue;
        }
        let reference = format!("$({name})");
        let value = variable.str_at(&["value"]);
        if !variable.at(&["valueFrom"]).is_null() || value == reference || !value.contains(&reference) {
            let name = quote(name);
            let why = format!("hides previous definition of {name}, which may be dropped when using apply");
            into.push(format!("{}: {why}", path.index(n)));
        }
    }
}

struct Port<'a> {
    path: String,
    address: &'a str,
    host: i64,
}

fn ports(spec: &Value, path: &Path<'_>, into: &mut Vec<String>) {
    let (mut by_number, mut pairs) = (HashMap::new(), 0);
    let mut names: Vec<(String, String)> = Vec::new();
    let all = ["initContainers", "containers", "ephemeralContainers"].map(|list| (list, spec.list_at(&[list])));
    for (list, containers) in all {
        let list_path = path.child(list);
        for (n, container) in containers.iter().enumerate() {
            let container_path = list_path.index(n);
            let ports_path = container_path.child("ports");
            for (n, port) in container.list_at(&["ports"]).iter().enumerate() {
                let path = ports_path.index(n).to_string();
                one_port(port, &path, &mut by_number, &mut pairs, into);
                let name = port.str_at(&["name"]);
                if !name.is_empty() {
                    names.push((name.to_owned(), path));
                }
            }
        }
    }
    let mut first: HashMap<&str, &str> = HashMap::new();
    for (name, path) in &names {
        match first.get(name.as_str()) {
            None => _ = first.insert(name, path),
            Some(other) => {
                let use_of = "services and probes that select ports by name will use";
                into.push(format!("{path}: duplicate port name {} with {other}, {use_of} {other}", quote(name)));
            }
        }
    }
}

fn one_port<'a>(
    port: &'a Value,
    path: &str,
    by_number: &mut HashMap<(i64, String), Vec<Port<'a>>>,
    pairs: &mut usize,
    into: &mut Vec<String>,
) {
    let number = |key: &str| port.int_at(&[key]).unwrap_or(0);
    let (address, host) = (port.str_at(&["hostIP"]), number("hostPort"));
    let protocol = port.str_at(&["protocol"]);
    if !address.is_empty() && host == 0 {
        let (name, container) = (port.str_at(&["name"]), number("containerPort"));
        into.push(format!(
            "{path}: hostIP set without hostPort: {{Name:{name} HostPort:0 ContainerPort:{container} \
            Protocol:{protocol} HostIP:{address}}}"
        ));
    }
    let others = by_number.entry((number("containerPort"), protocol.to_owned())).or_default();
    for other in others.iter() {
        if *pairs >= limits::WARNINGS {
            break;
        }
        let what = if other.address == address && other.host == host {
            "duplicate"
        } else if host == 0 || other.host == 0 {
            "overlapping"
        } else if other.host == host && (address.is_empty() != other.address.is_empty()) {
            "dangerously ambiguous"
        } else {
            continue;
        };
        into.push(format!("{path}: {what} port definition with {}", other.path));
        *pairs += 1;
    }
    others.push(Port { path: path.to_owned(), address, host });
}

fn pod_affinity(spec: &Value, path: &Path<'_>, into: &mut Vec<String>) {
    let path = path.child("affinity");
    for kind in ["podAffinity", "podAntiAffinity"] {
        let affinity = spec.at(&["affinity", kind]);
        let path = path.child(kind);
        let required = path.child(REQUIRED);
        for (n, term) in affinity.list_at(&[REQUIRED]).iter().enumerate() {
            if term.at(&["labelSelector"]).is_null() {
                into.push(format!("{}: {NULL_SELECTOR}", required.index(n).child("labelSelector")));
            }
        }
        let preferred = path.child(PREFERRED);
        for (n, term) in affinity.list_at(&[PREFERRED]).iter().enumerate() {
            if term.at(&["podAffinityTerm", "labelSelector"]).is_null() {
                let path = preferred.index(n);
                into.push(format!("{}: {NULL_SELECTOR}", path.child("podAffinityTerm").child("labelSelector")));
            }
        }
    }
}
