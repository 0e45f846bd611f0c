//! Validation of StatefulSets.

use std::collections::HashSet;

use flotilla_proto::value;
use flotilla_proto::value::Value;

use crate::field::{ErrorKind, Errors, Path};
use crate::kinds::core::persistent_volume_claim;
use crate::kinds::core::pod::spec::Options;
use crate::kinds::core::pod::{template, volumes};
use crate::kinds::{replicas, templates};
use crate::rules::{labels, metadata, names, numbers, selector, semantic, shown};

const COUNTS: [&str; 7] = [
    "replicas",
    "readyReplicas",
    "currentReplicas",
    "updatedReplicas",
    "availableReplicas",
    "observedGeneration",
    "collisionCount",
];
/// Fields of the spec that an update may change.
const MUTABLE: [&str; 7] = [
    "replicas",
    "template",
    "updateStrategy",
    "minReadySeconds",
    "ordinals",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
];
const IMMUTABLE: &str = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', \
    'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";
const PARTS: [&str; 4] = ["readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"];

/// The checks that an update skips: of fields that cannot change, and of the template if the stored set was invalid.
#[derive(Clone, Copy, Default)]
struct Skip {
    immutable: bool,
    template: bool,
}

pub(super) fn validate(set: &Value, errors: &mut Errors) {
    check(set, &Options::default(), Skip::default(), errors);
}

pub(super) fn validate_update(set: &Value, old: &Value, errors: &mut Errors) {
    let options = templates::options(Some(old));
    let mut before = Errors::default();
    check(old, &options, Skip { immutable: true, template: false }, &mut before);
    check(set, &options, Skip { immutable: true, template: !before.is_empty() }, errors);
    let rest = |set: &Value| {
        let mut spec = set.at(&["spec"]).clone();
        if let Some(spec) = spec.as_object_mut() {
            spec.retain(|key, _| !MUTABLE.contains(&key));
        }
        spec
    };
    if !semantic::equal(&rest(set), &rest(old)) {
        errors.forbidden(&Path::root("spec"), IMMUTABLE);
    }
}

fn check(set: &Value, options: &Options, skip: Skip, errors: &mut Errors) {
    let spec = set.at(&["spec"]);
    let path = Path::root("spec");
    let management = spec.str_at(&["podManagementPolicy"]);
    if !matches!(management, "OrderedReady" | "Parallel") {
        let why = "must be 'OrderedReady' or 'Parallel'";
        errors.invalid_str(&path.child("podManagementPolicy"), management, why);
    }
    strategy(spec.at(&["updateStrategy"]), &path.child("updateStrategy"), errors);
    let retention = path.child("persistentVolumeClaimRetentionPolicy");
    for key in ["whenDeleted", "whenScaled"] {
        let policy = spec.at(&["persistentVolumeClaimRetentionPolicy", key]).as_str();
        if let Some(policy) = policy.filter(|policy| !matches!(*policy, "Retain" | "Delete")) {
            errors.not_supported(&retention.child(key), policy, &["Retain", "Delete"]);
        }
    }
    if !skip.immutable {
        let claims = path.child("volumeClaimTemplates");
        for (n, claim) in spec.list_at(&["volumeClaimTemplates"]).iter().enumerate() {
            let path = claims.index(n);
            persistent_volume_claim::validate_spec(
                claim.at(&["spec"]),
                Default::default(),
                false,
                &path.child("spec"),
                errors,
            );
        }
    }
    numbers::all_not_negative(&path, spec, &["replicas", "minReadySeconds"], errors);
    numbers::not_negative(&path.child("ordinals.start"), spec.at(&["ordinals", "start"]), errors);
    let service = spec.str_at(&["serviceName"]);
    if !skip.immutable && !service.is_empty() {
        names::check(&path.child("serviceName"), service, names::dns1123_label, errors);
    }
    selector_and_template(spec, &path, options, skip, errors);
    templates::validate_endless_policy(spec.at(&["template"]), "StatefulSet", &path.child("template"), errors);
}

fn strategy(strategy: &Value, path: &Path<'_>, errors: &mut Errors) {
    let rolling = strategy.at(&["rollingUpdate"]);
    let rolling_path = path.child("rollingUpdate");
    match strategy.str_at(&["type"]) {
        "" => errors.required(path, ""),
        "OnDelete" if !rolling.is_null() => {
            let shown = shown::text("RollingUpdateStatefulSetStrategy", rolling);
            let why = "only allowed for updateStrategy 'RollingUpdate'";
            errors.push(ErrorKind::Invalid, &rolling_path, shown, why);
        }
        "OnDelete" => {}
        "RollingUpdate" => {
            numbers::not_negative(&rolling_path.child("partition"), rolling.at(&["partition"]), errors);
            let gone = rolling.at(&["maxUnavailable"]);
            if !gone.is_null() {
                let path = rolling_path.child("maxUnavailable");
                numbers::int_or_percent(&path, gone, errors);
                if numbers::amount(gone) == 0 {
                    errors.invalid(&path, gone, "cannot be 0");
                }
                numbers::at_most_whole(&path, gone, errors);
            }
        }
        _ => {
            let shown = shown::text("StatefulSetUpdateStrategy", strategy);
            errors.push(ErrorKind::Invalid, path, shown, "must be 'RollingUpdate' or 'OnDelete'");
        }
    }
}

fn selector_and_template(spec: &Value, path: &Path<'_>, options: &Options, skip: Skip, errors: &mut Errors) {
    let own = spec.at(&["selector"]);
    selector::required(own, "statefulset", &path.child("selector"), errors);
    if !selector::is_understood(own) {
        return errors.invalid(&path.child("selector"), own, "");
    }
    let path = path.child("template");
    let plain = spec.at(&["template"]);
    let changed = as_in_a_pod(plain, spec.list_at(&["volumeClaimTemplates"]));
    let template = changed.as_ref().unwrap_or(plain);
    selector::matches_template(own, template, &path, errors);
    if !skip.template {
        template::validate(template, &path, options, errors);
    }
    // The reference checks these a second time.
    let notes = template.at(&["metadata", "annotations"]);
    labels::validate_labels(template.at(&["metadata", "labels"]), &path.child("labels"), errors);
    labels::validate_annotations(notes, &path.child("annotations"), errors);
    template::validate_annotations(template, &path.child("annotations"), options, errors);
}

/// Returns the template as its pods will have it: with volumes for the claims, and without names that the set assigns.
/// Returns `None` if nothing differs.
fn as_in_a_pod(template: &Value, claims: &[Value]) -> Option<Value> {
    let named = ["subdomain", "hostname"].iter().any(|key| !template.str_at(&["spec", key]).is_empty());
    if !named && claims.is_empty() {
        return None;
    }
    let mut changed = template.clone();
    for key in ["subdomain", "hostname"] {
        changed.remove_at(&["spec", key]);
    }
    if !claims.is_empty() {
        let mut names = HashSet::new();
        let distinct =
            claims.iter().map(|claim| claim.str_at(&["metadata", "name"])).filter(|name| names.insert(*name));
        let mut volumes: Vec<Value> =
            distinct.map(|name| value!({"name": name, "persistentVolumeClaim": {"claimName": name}})).collect();
        let own = template.list_at(&["spec", "volumes"]).iter();
        volumes.extend(own.filter(|volume| !names.contains(&volume.str_at(&["name"]))).cloned());
        changed.set_at(&["spec", "volumes"], volumes);
    }
    Some(changed)
}

pub(super) fn validate_status(set: &Value, old: &Value, errors: &mut Errors) {
    let repeated = metadata::take_repeated(set, old, errors);
    let more_than_ready = "cannot be greater than status.readyReplicas";
    replicas::validate_counts(set.at(&["status"]), &COUNTS, &PARTS, more_than_ready, errors);
    errors.append(repeated.0);
    numbers::collision_count(set, old, errors);
}

pub(super) fn warnings(set: &Value, old: Option<&Value>, into: &mut Vec<String>) {
    templates::warn(set, old, into);
    let spec = Path::root("spec");
    let claims = spec.child("volumeClaimTemplates");
    for (n, claim) in set.list_at(&["spec", "volumeClaimTemplates"]).iter().enumerate() {
        let item = claims.index(n);
        // On update the reference spells the path with Go's name of the field.
        let named = item.child("Spec");
        volumes::warnings::of_claim(claim.at(&["spec"]), if old.is_none() { &item } else { &named }, into);
    }
    if set.int_at(&["spec", "revisionHistoryLimit"]).is_some_and(|limit| limit < 0) {
        let why = "a negative value retains all historical revisions; a value >= 0 is recommended";
        into.push(format!("spec.revisionHistoryLimit: {why}"));
    }
}
