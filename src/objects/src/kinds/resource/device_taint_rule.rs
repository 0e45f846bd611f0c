//! DeviceTaintRules (KEP-5055).

use flotilla_proto::time::Timestamp;
use flotilla_proto::value::Value;

use super::device;
use crate::field::{Errors, Path};
use crate::fieldmanager::reset;
use crate::kinds::core::volume_source;
use crate::printing::{Printer, devices};
use crate::rules::{Generation, NameRule, Strategy, conditions, defaulting, metadata, names};

/// Most conditions of a rule.
const CONDITIONS_MAX: usize = 8;

/// Rules of DeviceTaintRules.
pub static STRATEGY: Strategy = Strategy {
    name: NameRule::Subdomain,
    generation: Generation::Spec,
    status: true,
    returns_deleted: true,
    default_times: |object, now| {
        let spec = object.get_mut("spec").and_then(Value::as_object_mut);
        if let Some(taint) = spec.and_then(|spec| defaulting::object(spec, "taint")) {
            defaulting::pointer(taint, "timeAdded", now.to_string());
        }
    },
    prepare_update: restart_time,
    prepare_status: |object, old, _| metadata::reset_for_status(object, old),
    validate: |object, errors| validate(object.at(&["spec"]), None, errors),
    validate_update: |object, old, errors| validate(object.at(&["spec"]), Some(old.at(&["spec"])), errors),
    validate_status: |object, _, errors| {
        let (all, path) = (object.list_at(&["status", "conditions"]), Path::root("status.conditions"));
        conditions::validate(all, &path, errors);
        if all.len() > CONDITIONS_MAX {
            errors.too_many(&path, all.len(), CONDITIONS_MAX);
        }
    },
    resets: &[("status", reset::SPEC_AND_METADATA)],
    printer: Some(Printer::of(devices::taint_rule)),
    ..Strategy::DEFAULT
};

const EFFECT: [&str; 3] = ["spec", "taint", "effect"];
const TIME_ADDED: [&str; 3] = ["spec", "taint", "timeAdded"];

/// Lets the time of a taint begin anew when its effect changes, unless the client has changed the time: claims tolerate
/// an effect for a while.
fn restart_time(object: &mut Value, old: &Value, now: Timestamp) {
    let is_same = |path: &[&str]| object.at(path) == old.at(path);
    if !is_same(&EFFECT) && is_same(&TIME_ADDED) {
        object.set_at(&TIME_ADDED, now.to_string());
    }
}

fn validate(spec: &Value, old: Option<&Value>, errors: &mut Errors) {
    let path = Path::root("spec");
    let (selector, of_selector) = (spec.at(&["deviceSelector"]), path.child("deviceSelector"));
    if let Some(driver) = selector.at(&["driver"]).as_str() {
        volume_source::validate_driver(driver, &of_selector.child("driver"), errors);
    }
    if let Some(pool) = selector.at(&["pool"]).as_str() {
        device::validate_pool(pool, &of_selector.child("pool"), errors);
    }
    if let Some(device) = selector.at(&["device"]).as_str() {
        names::check(&of_selector.child("device"), device, names::dns1123_label, errors);
    }
    let effect = ["taint", "effect"];
    let is_stored = old.is_some_and(|old| old.at(&effect) == spec.at(&effect));
    let check = if is_stored { device::validate_key_and_value } else { device::validate_taint };
    check(spec.at(&["taint"]), &path.child("taint"), errors);
}

#[cfg(test)]
mod tests {
    use flotilla_proto::value;

    use super::*;

    #[test]
    fn the_time_begins_anew_with_another_effect() {
        let rule = |effect: &str, added: &str| value!({"spec": {"taint": {"effect": effect, "timeAdded": added}}});
        let (old, now) = (rule("NoSchedule", "2026-01-01T00:00:00Z"), Timestamp { seconds: 1_800_000_000, nanos: 0 });
        let restarted = |mut new: Value| {
            restart_time(&mut new, &old, now);
            new.str_at(&TIME_ADDED) == now.to_string()
        };
        assert!(restarted(rule("NoExecute", "2026-01-01T00:00:00Z")));
        assert!(!restarted(rule("NoExecute", "2026-02-01T00:00:00Z")), "the client has chosen a time");
        assert!(!restarted(rule("NoSchedule", "2026-01-01T00:00:00Z")));
    }

    #[test]
    fn selectors_and_taints_are_checked() {
        let spec = value!({
            "deviceSelector": {"driver": "a_b", "pool": "/x", "device": "D_0"},
            "taint": {"key": "a b", "value": "bad value", "effect": "Bad"}
        });
        let mut errors = Errors::default();
        validate(&spec, None, &mut errors);
        let fields: Vec<&str> = errors.0.iter().map(|error| error.field.as_str()).collect();
        let wanted = [
            "deviceSelector.driver",
            "deviceSelector.pool",
            "deviceSelector.device",
            "taint.key",
            "taint.value",
            "taint.effect",
        ];
        assert_eq!(fields, wanted.map(|field| format!("spec.{field}")));
        let mut errors = Errors::default();
        validate(&value!({"taint": {"key": "k", "effect": "Bad"}}), Some(&spec), &mut errors);
        assert!(errors.is_empty(), "the effect was stored");
    }
}
