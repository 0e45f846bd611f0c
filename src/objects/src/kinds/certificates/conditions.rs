//! The conditions of a CertificateSigningRequest: its approval, denial or failure.

use std::collections::HashSet;
use std::hash::Hash;

use flotilla_proto::time::Timestamp;
use flotilla_proto::value::Value;

use crate::field::{Errors, Path, quote, shown};
use crate::rules::names;

const CONDITIONS: [&str; 3] = ["Approved", "Denied", "Failed"];

/// Restores the approval conditions, which a write of `/status` must not change.
pub(super) fn prepare_status(object: &mut Value, old: &Value, now: Timestamp) {
    object.set_at(&["spec"], old.at(&["spec"]).clone());
    for kind in ["Approved", "Denied"] {
        let is = |condition: &&Value| condition.str_at(&["type"]) == kind;
        let before: Vec<Value> = conditions(old).iter().filter(is).cloned().collect();
        if conditions(object).iter().filter(is).count() != before.len() {
            continue;
        }
        let list = conditions_mut(object).into_iter().flatten();
        for (place, before) in list.filter(|condition| condition.str_at(&["type"]) == kind).zip(before) {
            *place = before;
        }
    }
    stamp_conditions(object, old, now);
}

/// Prepares a write of `/approval`: only the conditions may change.
pub(super) fn prepare_approval(object: &mut Value, old: &Value, now: Timestamp) {
    stamp_conditions(object, old, now);
    let list = object.at(&["status", "conditions"]).clone();
    object.set_at(&["spec"], old.at(&["spec"]).clone());
    object.set_at(&["status"], old.at(&["status"]).clone());
    match list {
        Value::Array(list) if !list.is_empty() => object.set_at(&["status", "conditions"], list),
        _ => drop(object.remove_at(&["status", "conditions"])),
    }
}

fn conditions(object: &Value) -> &[Value] {
    object.list_at(&["status", "conditions"])
}

fn conditions_mut(object: &mut Value) -> Option<&mut Vec<Value>> {
    object.get_mut("status")?.get_mut("conditions")?.as_array_mut()
}

/// Sets the missing times of conditions to `now`, except the transition time of a condition whose status is the same as
/// before: that one is kept.
fn stamp_conditions(object: &mut Value, old: &Value, now: Timestamp) {
    let now = now.to_string();
    for condition in conditions_mut(object).into_iter().flatten() {
        if condition.at(&["lastUpdateTime"]).is_null() {
            condition.set_at(&["lastUpdateTime"], now.as_str());
        }
        if condition.at(&["lastTransitionTime"]).is_null() {
            let same = |before: &&Value| {
                ["type", "status"].iter().all(|field| before.at(&[field]) == condition.at(&[field]))
                    && !before.at(&["lastTransitionTime"]).is_null()
            };
            let before = conditions(old).iter().find(same).map(|before| before.at(&["lastTransitionTime"]).clone());
            condition.set_at(&["lastTransitionTime"], before.unwrap_or_else(|| now.as_str().into()));
        }
    }
}

/// Checks the conditions. `old` is the object before the write.
pub(super) fn validate(object: &Value, old: Option<&Value>, errors: &mut Errors) {
    let path = Path::root("status.conditions");
    let before = old.map_or(&[][..], conditions);
    let before: Vec<&str> = before.iter().map(kind).collect();
    let lax_empty = before.contains(&"");
    let lax_both = ["Approved", "Denied"].iter().all(|both| before.contains(both));
    let lax_twice = repeated(before).next().is_some();
    let mut earlier = HashSet::new();
    for (index, condition) in conditions(object).iter().enumerate() {
        let place = path.index(index);
        let name = kind(condition);
        if name.is_empty() && !lax_empty {
            errors.required(&place.child("type"), "");
        }
        let allowed: &[&str] = if CONDITIONS.contains(&name) { &["True"] } else { &["False", "True", "Unknown"] };
        names::check_choice(&place.child("status"), condition.str_at(&["status"]), allowed, errors);
        let opposite = match name {
            "Approved" => "Denied",
            "Denied" => "Approved",
            _ => "",
        };
        if !lax_both && !opposite.is_empty() && earlier.contains(opposite) {
            errors.invalid_str(&path, name, "Approved and Denied conditions are mutually exclusive");
        }
        if !earlier.insert(name) && !lax_twice {
            errors.duplicate(&place.child("type"), &name.into());
        }
    }
}

fn kind(condition: &Value) -> &str {
    condition.str_at(&["type"])
}

/// Checks how a write changes the conditions. `may_decide` says whether it may approve or deny the request.
pub(super) fn validate_change(object: &Value, old: &Value, may_decide: bool, errors: &mut Errors) {
    let path = Path::root("status.conditions");
    let of = |object: &Value, kind: &str| -> Vec<Value> {
        conditions(object).iter().filter(|condition| condition.str_at(&["type"]) == kind).cloned().collect()
    };
    for kind in CONDITIONS {
        if of(object, kind).len() < of(old, kind).len() {
            errors.forbidden(&path, format!("updates may not remove a condition of type {}", quote(kind)));
        }
    }
    if !may_decide {
        for kind in ["Approved", "Denied"] {
            let (after, before) = (of(object, kind), of(old, kind));
            if after.len() > before.len() {
                errors.forbidden(&path, format!("updates may not add a condition of type {}", quote(kind)));
            } else if after.len() == before.len() && after != before {
                let (before, after) = (shown(&before.into()), shown(&after.into()));
                let why = format!("updates may not modify a condition of type {}\n- {before}\n+ {after}", quote(kind));
                errors.forbidden(&path, why);
            }
        }
    }
}

/// Returns the indexes of the items that are equal to an earlier one.
pub(super) fn repeated<T: Eq + Hash>(items: impl IntoIterator<Item = T>) -> impl Iterator<Item = usize> {
    let mut earlier = HashSet::new();
    items.into_iter().enumerate().filter_map(move |(index, item)| (!earlier.insert(item)).then_some(index))
}
