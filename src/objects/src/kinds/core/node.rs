//! Nodes: taints, amounts of resources, and the addresses of pods, which never change once they are set.

use std::collections::HashSet;

use flotilla_proto::json;
use flotilla_proto::value;
use flotilla_proto::value::Value;

use crate::field::{ErrorKind, Errors, Path, quote};
use crate::fieldmanager::reset;
use crate::printing::{Printer, nodes};
use crate::rules::{Generation, NameRule, Strategy, addresses, labels, metadata, names, resources};

const NOT_READY: &str = "node.kubernetes.io/not-ready";
const PODS_FIXED: &str = "node updates may not change podCIDR except from \"\" to valid";
const PROVIDER_FIXED: &str = "node updates may not change providerID except from \"\" to valid";
const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// Rules of Nodes.
pub static STRATEGY: Strategy = Strategy {
    generation: Generation::ClientOwned,
    name: NameRule::Subdomain,
    default,
    prepare_create: |object, _| prepare_create(object),
    prepare_update: |object, old, _| prepare_update(object, old),
    prepare_status: |object, old, _| prepare_status(object, old),
    validate,
    validate_update,
    validate_status: validate_change,
    warnings,
    selectable: &[("spec.unschedulable", |object| object.is_true_at(&["spec", "unschedulable"]).to_string())],
    resets: &[("", reset::STATUS), ("status", reset::SPEC)],
    printer: Some(Printer::of(nodes::node)),
    ..Strategy::DEFAULT
};

/// Sets defaults: `allocatable` to `capacity`, and `podCIDRs` to the single `podCIDR`.
fn default(object: &mut Value) {
    if let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) {
        resources::round_up(status.get_mut("capacity"));
        resources::round_up(status.get_mut("allocatable"));
        if !status.contains_key("allocatable")
            && let Some(capacity) = status.get("capacity").cloned()
        {
            status.insert("allocatable", capacity);
        }
    }
    let single = object.str_at(&["spec", "podCIDR"]);
    let first = object.list_at(&["spec", "podCIDRs"]).first().and_then(Value::as_str).unwrap_or("");
    if !single.is_empty() && single != first {
        let all = vec![Value::from(single)];
        object.set_at(&["spec", "podCIDRs"], all);
    } else if single.is_empty() && !first.is_empty() {
        let first = first.to_owned();
        object.set_at(&["spec", "podCIDR"], first);
    }
}

/// Taints a new node as not ready; the controller that finds it ready removes the taint.
fn prepare_create(object: &mut Value) {
    object.remove_at(&["spec", "configSource"]);
    object.remove_at(&["status", "config"]);
    let mut taints = object.list_at(&["spec", "taints"]).to_vec();
    if !taints.iter().any(|taint| taint.str_at(&["key"]) == NOT_READY && taint.str_at(&["effect"]) == "NoSchedule") {
        taints.push(value!({"key": NOT_READY, "effect": "NoSchedule"}));
        object.set_at(&["spec", "taints"], taints);
    }
}

fn prepare_update(object: &mut Value, old: &Value) {
    object.set_at(&["status"], old.at(&["status"]).clone());
    if old.at(&["spec", "configSource"]).is_null() {
        object.remove_at(&["spec", "configSource"]);
    }
}

fn prepare_status(object: &mut Value, old: &Value) {
    object.set_at(&["spec"], old.at(&["spec"]).clone());
    if old.at(&["status", "config"]).is_null() {
        object.remove_at(&["status", "config"]);
    }
}

fn validate(object: &Value, errors: &mut Errors) {
    validate_taints(object.list_at(&["spec", "taints"]), &Path::root("metadata.taints"), errors);
    validate_amounts(object, errors);
    let capacity = object.at(&["status", "nodeInfo", "swap", "capacity"]);
    if capacity.as_int().is_some_and(|bytes| bytes <= 0) {
        errors.invalid(&Path::root("metadata.nodeSwapStatus.capacity"), capacity, "must be greater than zero");
    }
    validate_features(object, errors);
    let path = Path::root("spec.podCIDRs");
    let blocks = object.list_at(&["spec", "podCIDRs"]);
    for (index, block) in blocks.iter().enumerate() {
        addresses::check_block_legacy(&path.index(index), block.as_str().unwrap_or(""), &[], errors);
    }
    if blocks.len() > 1 {
        validate_families(blocks, object.at(&["spec", "podCIDRs"]), &path, errors);
    }
}

fn validate_families(blocks: &[Value], all: &Value, path: &Path<'_>, errors: &mut Errors) {
    let (mut v4, mut v6) = (false, false);
    for (index, block) in blocks.iter().enumerate() {
        let text = block.as_str().unwrap_or("");
        let Some(block) = addresses::Block::parse_sloppy(text) else {
            let why = format!("invalid CIDR[{index}]: <nil> (invalid CIDR address: {text})");
            let why = format!("invalid PodCIDRs. failed to check with dual stack with error:{why}");
            errors.push(ErrorKind::Internal, path, "", why);
            (v4, v6) = (false, false);
            break;
        };
        let is_v4 = addresses::is_v4(block.address);
        (v4, v6) = (v4 || is_v4, v6 || !is_v4);
    }
    if !(v4 && v6) || blocks.len() > 2 {
        errors.invalid(path, all, "may specify no more than one CIDR for each IP family");
    }
}

fn validate_taints(taints: &[Value], path: &Path<'_>, errors: &mut Errors) {
    let mut seen: HashSet<(&str, &str)> = HashSet::new();
    for (index, taint) in taints.iter().enumerate() {
        let path = path.index(index);
        let (key, effect) = (taint.str_at(&["key"]), taint.str_at(&["effect"]));
        let value = taint.str_at(&["value"]);
        labels::validate_label_key(key, &path.child("key"), errors);
        let messages = names::label_value(value);
        if !messages.is_empty() {
            errors.invalid_str(&path.child("value"), value, messages.join(";"));
        }
        if effect.is_empty() {
            errors.required(&path.child("effect"), "");
        } else if !EFFECTS.contains(&effect) {
            errors.not_supported(&path.child("effect"), effect, &EFFECTS);
        }
        if !seen.insert((key, effect)) {
            let time = taint.at(&["timeAdded"]).clone();
            let fields = value!({"Key": key, "Value": value, "Effect": effect, "TimeAdded": time});
            let shown = String::from_utf8_lossy(&json::to_vec(&fields)).into_owned();
            errors.push(ErrorKind::Duplicate, &path, shown, "taints must be unique by key and effect pair");
        }
    }
}

fn validate_amounts(object: &Value, errors: &mut Errors) {
    for field in ["capacity", "allocatable"] {
        let path = Path::root("status");
        let path = path.child(field);
        for (name, value) in object.map_at(&["status", field]).into_iter().flat_map(|map| map.iter()) {
            resources::check_amount(&path.child(name), name, value, errors);
        }
    }
}

fn validate_features(object: &Value, errors: &mut Errors) {
    let path = Path::root("status.declaredFeatures");
    let mut previous: Option<&str> = None;
    for (index, feature) in object.list_at(&["status", "declaredFeatures"]).iter().enumerate() {
        let (path, name) = (path.index(index), feature.as_str().unwrap_or(""));
        match previous {
            Some(before) if before == name => errors.duplicate(&path, feature),
            Some(before) if before > name => errors.invalid_str(&path, name, "list must be sorted alphabetically"),
            _ => {}
        }
        previous = Some(name);
        if name.len() > names::SUBDOMAIN_BYTES_MAX {
            let why = names::too_many_characters(names::SUBDOMAIN_BYTES_MAX);
            errors.invalid_str(&path, name, format!("invalid feature name {}: {why}", quote(name)));
        } else if !is_feature(name) {
            let why = "must start with an UpperCamelCase segment, with subsequent segments separated by '/' (e.g., \
                MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters and slashes";
            errors.invalid_str(&path, name, format!("invalid feature name {}: {why}", quote(name)));
        }
    }
}

fn is_feature(name: &str) -> bool {
    name.as_bytes().first().is_some_and(u8::is_ascii_uppercase)
        && name.split('/').all(|part| {
            part.as_bytes().first().is_some_and(u8::is_ascii_alphabetic)
                && part.bytes().all(|b| b.is_ascii_alphanumeric())
        })
}

fn validate_update(object: &Value, old: &Value, errors: &mut Errors) {
    metadata::validate_again(STRATEGY.name, false, object, errors);
    validate(object, errors);
    validate_change(object, old, errors);
}

/// Checks an update of the spec or the status of a node.
fn validate_change(object: &Value, old: &Value, errors: &mut Errors) {
    validate_amounts(object, errors);
    validate_features(object, errors);
    let mut seen = HashSet::new();
    for (index, address) in object.list_at(&["status", "addresses"]).iter().enumerate() {
        let (kind, text) = (address.str_at(&["type"]), address.str_at(&["address"]));
        if !seen.insert((kind, text)) {
            let path = Path::root("status.addresses");
            errors.duplicate(&path.index(index), &value!({"Type": kind, "Address": text}));
        }
    }
    let (before, after) = (old.list_at(&["spec", "podCIDRs"]), object.list_at(&["spec", "podCIDRs"]));
    if !before.is_empty() {
        let changes = if before.len() == after.len() {
            before.iter().zip(after).filter(|(before, after)| before != after).count()
        } else {
            1
        };
        for _ in 0..changes {
            errors.forbidden(&Path::root("spec.podCIDRs"), PODS_FIXED);
        }
    }
    let provider = old.str_at(&["spec", "providerID"]);
    if !provider.is_empty() && provider != object.str_at(&["spec", "providerID"]) {
        errors.forbidden(&Path::root("spec.providerID"), PROVIDER_FIXED);
    }
    validate_taints(object.list_at(&["spec", "taints"]), &Path::root("metadata.taints"), errors);
    if object.str_at(&["spec", "externalID"]) != old.str_at(&["spec", "externalID"]) {
        errors.forbidden(&Path::root("spec.externalID"), "may not be updated");
    }
}

fn warnings(object: &Value, _old: Option<&Value>, warnings: &mut Vec<String>) {
    if !object.at(&["spec", "configSource"]).is_null() {
        warnings.push("spec.configSource: the feature is removed".to_owned());
    }
    if !object.str_at(&["spec", "externalID"]).is_empty() {
        let why = "this field is deprecated, and is unused by Kubernetes";
        warnings.push(format!("spec.externalID: {why}"));
    }
    let path = Path::root("spec.podCIDRs");
    for (index, block) in object.list_at(&["spec", "podCIDRs"]).iter().enumerate() {
        addresses::warn_block(&path.index(index), block.as_str().unwrap_or(""), warnings);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn taints_are_unique_and_checked() {
        let taint = |key: &str, effect: &str| value!({"key": key, "effect": effect});
        let mut errors = Errors::default();
        let taints = [taint("a", "NoSchedule"), taint("a", "NoExecute"), taint("a", "NoSchedule"), taint("b", "")];
        validate_taints(&taints, &Path::root("metadata.taints"), &mut errors);
        let texts: Vec<String> = errors.0.iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                "metadata.taints[2]: Duplicate value: {\"Key\":\"a\",\"Value\":\"\",\"Effect\":\"NoSchedule\",\"TimeAdded\":null}: taints must be unique by key and effect pair",
                "metadata.taints[3].effect: Required value",
            ]
        );
    }

    #[test]
    fn pod_networks_are_kept_in_step() {
        let mut node = value!({"spec": {"podCIDR": "10.0.0.0/24", "podCIDRs": ["10.0.1.0/24"]}, "status": {"capacity": {"cpu": "4"}}});
        default(&mut node);
        assert_eq!(node.at(&["spec", "podCIDRs"]), &value!(["10.0.0.0/24"]));
        assert_eq!(node.str_at(&["status", "allocatable", "cpu"]), "4");
        let mut errors = Errors::default();
        validate_change(&value!({}), &node, &mut errors);
        assert_eq!(errors.0[0].field, "spec.podCIDRs");
    }
}
