//! StatefulSets (apps).

use flotilla_proto::value::{Map, Value};

use crate::kinds::core::pod::defaults;
use crate::kinds::templates;
use crate::printing::{Printer, workloads};
use crate::rules::defaulting::{object, object_or_new, objects, plain, pointer};
use crate::rules::{Generation, NameRule, Strategy};

const MAX_UNAVAILABLE: [&str; 4] = ["spec", "updateStrategy", "rollingUpdate", "maxUnavailable"];

/// Rules of StatefulSets.
pub static STRATEGY: Strategy = Strategy {
    name: NameRule::Label,
    generation: Generation::Own,
    status: true,
    default,
    prepare_create: |set, _| {
        drop_max_unavailable(set, None);
        templates::prepare_create(set);
    },
    prepare_update: |set, old, _| {
        drop_max_unavailable(set, Some(old));
        templates::prepare_update(set, old);
    },
    validate: validation::validate,
    validate_update: validation::validate_update,
    validate_status: validation::validate_status,
    warnings: validation::warnings,
    printer: Some(Printer::of(workloads::stateful_set)),
    ..Strategy::DEFAULT
};

mod validation;

fn default(set: &mut Value) {
    let Some(spec) = set.as_object_mut().and_then(|map| object_or_new(map, "spec")) else { return };
    plain(spec, "podManagementPolicy", "OrderedReady");
    update_strategy(spec);
    pointer(spec, "persistentVolumeClaimRetentionPolicy", Value::object());
    if let Some(policy) = object(spec, "persistentVolumeClaimRetentionPolicy") {
        plain(policy, "whenDeleted", "Retain");
        plain(policy, "whenScaled", "Retain");
    }
    pointer(spec, "replicas", 1);
    pointer(spec, "revisionHistoryLimit", 10);
    templates::set_defaults(spec);
    objects(spec, "volumeClaimTemplates").for_each(claim);
}

fn update_strategy(spec: &mut Map) {
    let Some(strategy) = object_or_new(spec, "updateStrategy") else { return };
    if strategy.get("type").and_then(Value::as_str).is_none_or(str::is_empty) {
        strategy.insert("type", "RollingUpdate");
        pointer(strategy, "rollingUpdate", Value::object());
    }
    if strategy.get("type").and_then(Value::as_str) == Some("RollingUpdate")
        && let Some(rolling) = object(strategy, "rollingUpdate")
    {
        pointer(rolling, "partition", 0);
    }
}

/// Sets `kind` and `apiVersion` of a claim template, in place of those that the client sent.
fn claim(claim: &mut Map) {
    claim.insert("apiVersion", "v1");
    claim.insert("kind", "PersistentVolumeClaim");
    if let Some(status) = object_or_new(claim, "status") {
        plain(status, "phase", "Pending");
    }
    defaults::claim_spec(claim);
}

/// Drops `maxUnavailable`, which belongs to a feature that is off, unless the stored object has it.
fn drop_max_unavailable(set: &mut Value, old: Option<&Value>) {
    if old.is_none_or(|old| old.at(&MAX_UNAVAILABLE).is_null()) {
        set.remove_at(&MAX_UNAVAILABLE);
    }
}
