//! Validation of updates of a pod: images, deadline, tolerations and scheduling gates may change, and while the pod is
//! gated also its scheduling constraints.

use flotilla_proto::value::Value;

use super::spec::{Options, is_shared};
use super::{annotations, scheduling, validation};
use crate::field::{ErrorKind, Errors, Path};
use crate::rules::restore::keep;
use crate::rules::{NameRule, metadata, names, semantic, shown};

const DEADLINE_SECONDS_MAX: i64 = i32::MAX as i64;
const ONLY_MUTABLE: &str = "pod updates may not change fields other than `spec.containers[*].image`,\
    `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing \
    tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";
const NODE_AFFINITY: [&str; 3] = ["spec", "affinity", "nodeAffinity"];
const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";

/// Checks the rules that apply to every write of a pod's spec, through any subresource.
pub fn common(pod: &Value, old: &Value, errors: &mut Errors) {
    let options = Options::of_update(pod, old);
    metadata::validate_again(NameRule::Subdomain, true, pod, errors);
    validation::metadata(pod, &options, errors);
    if !is_shared(pod, old) {
        validation::spec(pod, &options, errors);
    }
    annotation_change(pod, old, &options, errors);
}

/// Checks the annotations against the old ones.
pub fn annotation_change(pod: &Value, old: &Value, options: &Options, errors: &mut Errors) {
    let metadata = Path::root("metadata");
    let path = metadata.child("annotations");
    let notes = pod.at(&["metadata", "annotations"]);
    annotations::validate_change(notes, old.at(&["metadata", "annotations"]), &path, errors);
    annotations::validate(notes, pod.at(&["spec"]), options.any_deletion_cost, &path, errors);
}

/// Checks an update of a pod.
pub fn validate(pod: &Value, old: &Value, errors: &mut Errors) {
    common(pod, old, errors);
    if is_shared(pod, old) {
        return;
    }
    let path = Path::root("spec");
    for list in ["containers", "initContainers"] {
        let of = |pod: &'_ Value| pod.list_at(&["spec", list]).len();
        let path = path.child(list);
        if of(pod) != of(old) {
            return errors.forbidden(&path, "pod updates may not add or remove containers");
        }
        images(pod.list_at(&["spec", list]), &path, errors);
    }
    if !deadline(pod, old, &path.child("activeDeadlineSeconds"), errors) {
        return;
    }
    tolerations(pod, old, &path.child("tolerations"), errors);
    scheduling_gates(pod, old, &path.child("schedulingGates"), errors);
    if semantic::equal_at(pod, old, &["spec"]) {
        return;
    }
    let mut munged = Value::object();
    munged.set_at(&["spec"], pod.at(&["spec"]).clone());
    forgive(&mut munged, old);
    if !old.list_at(&["spec", "schedulingGates"]).is_empty() {
        gated(&mut munged, old, &path, errors);
    }
    if !semantic::equal_at(&munged, old, &["spec"]) {
        let difference = shown::difference("PodSpec", old.at(&["spec"]), munged.at(&["spec"]));
        errors.forbidden(&path, format!("{ONLY_MUTABLE}\n{difference}"));
    }
}

fn images(containers: &[Value], path: &Path<'_>, errors: &mut Errors) {
    for (n, container) in containers.iter().enumerate() {
        let path = path.index(n);
        let image = container.str_at(&["image"]);
        if image.is_empty() {
            errors.required(&path.child("image"), "");
        }
        super::containers::only_for_pod(container, &path, errors);
    }
}

/// Checks the deadline. Returns false if the other checks must be skipped.
fn deadline(pod: &Value, old: &Value, path: &Path<'_>, errors: &mut Errors) -> bool {
    let of = |pod: &Value| pod.int_at(&["spec", "activeDeadlineSeconds"]);
    match (of(pod), of(old)) {
        (Some(new), _) if !(0..=DEADLINE_SECONDS_MAX).contains(&new) => {
            errors.invalid(path, &new.into(), names::between(0, DEADLINE_SECONDS_MAX));
            false
        }
        (Some(new), Some(old)) if old < new => {
            errors.invalid(path, &new.into(), "must be less than or equal to previous value");
            false
        }
        (None, Some(_)) => {
            errors.invalid(path, &Value::Null, "must not update from a positive integer to nil value");
            true
        }
        _ => true,
    }
}

fn tolerations(pod: &Value, old: &Value, path: &Path<'_>, errors: &mut Errors) {
    let (new, old) = (pod.list_at(&["spec", "tolerations"]), old.list_at(&["spec", "tolerations"]));
    let same = |a: &Value, b: &Value| {
        ["key", "operator", "value", "effect"].iter().all(|key| a.str_at(&[key]) == b.str_at(&[key]))
    };
    if old.iter().any(|old| !new.iter().any(|new| same(old, new))) {
        return errors.forbidden(path, "existing toleration can not be modified except its tolerationSeconds");
    }
    scheduling::validate_tolerations(new, path, errors);
}

fn scheduling_gates(pod: &Value, old: &Value, path: &Path<'_>, errors: &mut Errors) {
    let old = old.list_at(&["spec", "schedulingGates"]);
    for (n, gate) in pod.list_at(&["spec", "schedulingGates"]).iter().enumerate() {
        let name = gate.str_at(&["name"]);
        if !old.iter().any(|old| old.str_at(&["name"]) == name) {
            let why = format!("only deletion is allowed, but found new scheduling gate '{name}'");
            errors.forbidden(&path.index(n).child("name"), why);
        }
    }
}

/// Restores the mutable fields in a copy of the pod, so that the rest can be compared.
fn forgive(munged: &mut Value, old: &Value) {
    for list in ["containers", "initContainers"] {
        let old = old.list_at(&["spec", list]);
        let new = munged.get_mut("spec").and_then(|spec| spec.get_mut(list)).and_then(Value::as_array_mut);
        for (new, old) in new.into_iter().flatten().zip(old) {
            keep(new, old, &["image"]);
        }
    }
    for key in ["activeDeadlineSeconds", "schedulingGates", "tolerations"] {
        keep(munged, old, &["spec", key]);
    }
    let grace = ["spec", "terminationGracePeriodSeconds"];
    if old.int_at(&grace).is_some_and(|seconds| seconds < 0) && munged.int_at(&grace) == Some(1) {
        keep(munged, old, &grace);
    }
}

/// Checks the scheduling constraints of a gated pod: they may become stricter, never looser.
fn gated(munged: &mut Value, old: &Value, path: &Path<'_>, errors: &mut Errors) {
    let selector = ["spec", "nodeSelector"];
    let (new, was) = (munged.at(&selector), old.at(&selector));
    if !semantic::equal(new, was) {
        let kept = was.as_object().is_none_or(|was| was.iter().all(|(key, value)| new.get(key) == Some(value)));
        if !kept {
            let why = "only additions to spec.nodeSelector are allowed (no mutations or deletions)";
            errors.invalid(&path.child("nodeSelector"), new, why);
        }
        keep(munged, old, &selector);
    }
    let (new, was) = (munged.at(&NODE_AFFINITY), old.at(&NODE_AFFINITY));
    if semantic::equal(new, was) {
        return;
    }
    let affinity = path.child("affinity");
    let node = affinity.child("nodeAffinity");
    let required = node.child(REQUIRED);
    node_terms(new, was, &required.child("nodeSelectorTerms"), errors);
    keep(munged, old, &NODE_AFFINITY);
    let only_node = munged.map_at(&["spec", "affinity"]).is_some_and(|affinity| affinity.is_empty());
    if only_node && old.at(&["spec", "affinity"]).is_null() {
        munged.remove_at(&["spec", "affinity"]);
    }
}

fn node_terms(new: &Value, old: &Value, path: &Path<'_>, errors: &mut Errors) {
    let terms = [REQUIRED, "nodeSelectorTerms"];
    let (new_terms, old_terms) = (new.list_at(&terms), old.list_at(&terms));
    let shown = |term: &Value| shown::text("NodeSelectorTerm", term);
    if !old_terms.is_empty() && old_terms.len() != new_terms.len() {
        let all: Vec<String> = new_terms.iter().map(shown).collect();
        let all = if new.at(&terms).is_null() { "null".into() } else { format!("[{}]", all.join(",")) };
        let why = "no additions/deletions to non-empty NodeSelectorTerms list are allowed";
        return errors.push(ErrorKind::Invalid, path, all, why);
    }
    for (n, (new, old)) in new_terms.iter().zip(old_terms).enumerate() {
        if !only_adds(new, old) {
            let why = "only additions are allowed (no mutations or deletions)";
            errors.push(ErrorKind::Invalid, &path.index(n), shown(new), why);
        }
    }
}

fn only_adds(new: &Value, old: &Value) -> bool {
    let lists = ["matchExpressions", "matchFields"];
    if lists.iter().all(|list| old.list_at(&[list]).is_empty()) {
        return lists.iter().all(|list| new.list_at(&[list]).is_empty());
    }
    lists.iter().all(|list| {
        let (new, old) = (new.list_at(&[list]), old.list_at(&[list]));
        new.len() >= old.len() && new.iter().zip(old).all(|(new, old)| semantic::equal(new, old))
    })
}
