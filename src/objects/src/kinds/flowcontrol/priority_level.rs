//! PriorityLevelConfigurations.

use std::collections::HashSet;

use flotilla_proto::value;
use flotilla_proto::value::{Map, Value};

use crate::field::{Errors, Path};
use crate::fieldmanager::reset;
use crate::printing::{Printer, flow};
use crate::rules::{Generation, NameRule, Strategy, metadata};

const QUEUES_MAX: i64 = 10_000_000;
const HASH_BITS_MAX: i64 = 60;
const ZERO_SHARES: &str = "flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares";

/// Rules of PriorityLevelConfigurations.
pub static STRATEGY: Strategy = Strategy {
    repeats_metadata: false,
    name: NameRule::Subdomain,
    generation: Generation::Spec,
    status: true,
    default,
    validate,
    validate_update: |object, _, errors| {
        metadata::validate_again(NameRule::Subdomain, false, object, errors);
        validate(object, errors);
    },
    prepare_status: |object, old, _| metadata::reset_for_status(object, old),
    validate_status: |object, _, errors| validate_conditions(object, errors),
    resets: &[("status", reset::SPEC_AND_METADATA)],
    printer: Some(Printer::of(flow::priority_level)),
    ..Strategy::DEFAULT
};

fn default(object: &mut Value) {
    let Some(spec) = object.get_mut("spec") else { return };
    for (part, shares) in [("limited", 30), ("exempt", 0)] {
        let Some(part) = spec.get_mut(part).filter(|part| !part.is_null()) else { continue };
        for (field, value) in [("nominalConcurrencyShares", shares), ("lendablePercent", 0)] {
            if part.at(&[field]).is_null() {
                part.set_at(&[field], value);
            }
        }
    }
    let response = spec.get_mut("limited").and_then(|limited| limited.get_mut("limitResponse"));
    let queuing = response.and_then(|response| response.get_mut("queuing")).filter(|queuing| !queuing.is_null());
    if let Some(queuing) = queuing {
        for (field, value) in [("handSize", 8), ("queues", 64), ("queueLengthLimit", 50)] {
            if queuing.int_at(&[field]).unwrap_or(0) == 0 {
                queuing.set_at(&[field], value);
            }
        }
    }
}

fn validate(object: &Value, errors: &mut Errors) {
    let (path, spec) = (Path::root("spec"), object.at(&["spec"]));
    let name = object.str_at(&["metadata", "name"]);
    if !object.at(&["metadata", "annotations", ZERO_SHARES]).is_null() {
        let why = format!("annotation '{ZERO_SHARES}' is forbidden");
        errors.forbidden(&Path::root("metadata.annotations"), why);
    }
    let kind = spec.str_at(&["type"]);
    if (name == "exempt") != (kind == "Exempt") {
        errors.invalid_str(&path.child("type"), kind, "must be 'Exempt' if and only if `name` is 'exempt'");
    }
    let (limited, exempt) = (spec.at(&["limited"]), spec.at(&["exempt"]));
    match kind {
        "Exempt" => {
            if !limited.is_null() {
                errors.forbidden(&path.child("limited"), "must be nil if the type is not Limited");
            }
            if !exempt.is_null() {
                let place = path.child("exempt");
                check_shares(exempt, &place, errors);
                check_lendable(exempt, &place, errors);
            }
        }
        "Limited" => {
            if !exempt.is_null() {
                errors.forbidden(&path.child("exempt"), "must be nil if the type is Limited");
            }
            if limited.is_null() {
                errors.required(&path.child("limited"), "must not be empty when type is Limited");
            } else {
                validate_limited(limited, &path.child("limited"), errors);
            }
        }
        "" => errors.required(&path.child("type"), ""),
        other => errors.not_supported(&path.child("type"), other, &["Exempt", "Limited"]),
    }
    validate_mandatory(spec, name, &path, errors);
    validate_conditions(object, errors);
}

fn check_shares(part: &Value, path: &Path<'_>, errors: &mut Errors) {
    if let Some(shares) = part.int_at(&["nominalConcurrencyShares"]).filter(|shares| *shares < 0) {
        errors.invalid(&path.child("nominalConcurrencyShares"), &shares.into(), "must be a non-negative integer");
    }
}

fn check_lendable(part: &Value, path: &Path<'_>, errors: &mut Errors) {
    if let Some(percent) = part.int_at(&["lendablePercent"]).filter(|percent| !(0..=100).contains(percent)) {
        errors.invalid(&path.child("lendablePercent"), &percent.into(), "must be between 0 and 100, inclusive");
    }
}

fn validate_limited(limited: &Value, path: &Path<'_>, errors: &mut Errors) {
    check_shares(limited, path, errors);
    let (response, place) = (limited.at(&["limitResponse"]), path.child("limitResponse"));
    let queuing = response.at(&["queuing"]);
    match response.str_at(&["type"]) {
        "Reject" if !queuing.is_null() => {
            let why = "must be nil if limited.limitResponse.type is not Limited";
            errors.forbidden(&place.child("queuing"), why);
        }
        "Reject" => {}
        "Queue" if queuing.is_null() => {
            let why = "must not be empty if limited.limitResponse.type is Limited";
            errors.required(&place.child("queuing"), why);
        }
        "Queue" => validate_queuing(queuing, &place.child("queuing"), errors),
        "" => errors.required(&place.child("type"), ""),
        other => errors.not_supported(&place.child("type"), other, &["Queue", "Reject"]),
    }
    check_lendable(limited, path, errors);
    if let Some(percent) = limited.int_at(&["borrowingLimitPercent"]).filter(|percent| *percent < 0) {
        let why = "if specified, must be a non-negative integer";
        errors.invalid(&path.child("borrowingLimitPercent"), &percent.into(), why);
    }
}

fn validate_queuing(queuing: &Value, path: &Path<'_>, errors: &mut Errors) {
    let number = |field: &str| queuing.int_at(&[field]).unwrap_or(0);
    let (length, queues, hand) = (number("queueLengthLimit"), number("queues"), number("handSize"));
    if length <= 0 {
        errors.invalid(&path.child("queueLengthLimit"), &length.into(), "must be positive");
    }
    if queues <= 0 {
        errors.invalid(&path.child("queues"), &queues.into(), "must be positive");
    } else if queues > QUEUES_MAX {
        errors.invalid(&path.child("queues"), &queues.into(), format!("must not be greater than {QUEUES_MAX}"));
    }
    let place = path.child("handSize");
    // The bits of a hash that are needed to deal this many cards from a deck of that size (shuffle sharding).
    let bits = ((queues.max(1) as f64).log2() * hand as f64).ceil() as i64;
    if hand <= 0 {
        errors.invalid(&place, &hand.into(), "must be positive");
    } else if hand > queues {
        errors.invalid(&place, &hand.into(), format!("should not be greater than queues ({queues})"));
    } else if bits > HASH_BITS_MAX {
        let why = format!(
            "required entropy bits of deckSize {queues} and handSize {hand} should not be greater than {HASH_BITS_MAX}"
        );
        errors.invalid(&place, &hand.into(), why);
    }
}

fn validate_mandatory(spec: &Value, name: &str, path: &Path<'_>, errors: &mut Errors) {
    let (fixed, except) = match name {
        "exempt" => (value!({"type": "Exempt"}), " except the 'spec.exempt' field"),
        "catch-all" => {
            let limited = value!({"nominalConcurrencyShares": 5, "limitResponse": {"type": "Reject"},
                "lendablePercent": 0});
            (value!({"type": "Limited", "limited": limited}), "")
        }
        _ => return,
    };
    let mut compared = spec.as_object().cloned().unwrap_or_else(Map::new);
    if name == "exempt" {
        compared.remove("exempt");
    }
    if Value::from(compared) != fixed {
        let why = format!("spec of '{name}'{except} must equal the fixed value");
        errors.invalid(path, &shown(spec), why);
    }
}

/// Formats a spec for messages: all fields, under the reference's internal names.
fn shown(spec: &Value) -> Value {
    let field = |part: &Value, name: &str| part.at(&[name]).clone();
    let limited = match spec.at(&["limited"]) {
        Value::Null => Value::Null,
        limited => {
            let queuing = match limited.at(&["limitResponse", "queuing"]) {
                Value::Null => Value::Null,
                queuing => {
                    let (queues, hand) = (field(queuing, "queues"), field(queuing, "handSize"));
                    value!({"Queues": queues, "HandSize": hand, "QueueLengthLimit": (field(queuing, "queueLengthLimit"))})
                }
            };
            let kind = limited.str_at(&["limitResponse", "type"]);
            let (shares, lendable) = (field(limited, "nominalConcurrencyShares"), field(limited, "lendablePercent"));
            value!({"NominalConcurrencyShares": shares, "LimitResponse": {"Type": kind, "Queuing": queuing},
                "LendablePercent": lendable, "BorrowingLimitPercent": (field(limited, "borrowingLimitPercent"))})
        }
    };
    let exempt = match spec.at(&["exempt"]) {
        Value::Null => Value::Null,
        exempt => {
            let (shares, lendable) = (field(exempt, "nominalConcurrencyShares"), field(exempt, "lendablePercent"));
            value!({"NominalConcurrencyShares": shares, "LendablePercent": lendable})
        }
    };
    value!({"Type": (spec.str_at(&["type"])), "Limited": limited, "Exempt": exempt})
}

/// Checks the conditions that both kinds of flow control have.
pub(super) fn validate_conditions(object: &Value, errors: &mut Errors) {
    let path = Path::root("status.conditions");
    let mut seen = HashSet::new();
    for (index, condition) in object.list_at(&["status", "conditions"]).iter().enumerate() {
        let place = path.index(index);
        let kind = condition.str_at(&["type"]);
        if !seen.insert(kind) {
            errors.duplicate(&place.child("type"), &kind.into());
        }
        if kind.is_empty() {
            errors.required(&place.child("type"), "");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_checked() {
        let level =
            |limited: Value| value!({"metadata": {"name": "a"}, "spec": {"type": "Limited", "limited": limited}});
        assert!(STRATEGY.complaints(level(value!({"limitResponse": {"type": "Queue", "queuing": {}}}))).is_empty());
        let queuing = value!({"queues": 2, "handSize": 5, "queueLengthLimit": (-1)});
        assert_eq!(
            STRATEGY.complaints(level(value!({"limitResponse": {"type": "Queue", "queuing": queuing}}))).len(),
            2
        );
        assert_eq!(STRATEGY.complaints(value!({"metadata": {"name": "a"}, "spec": {}})), ["spec.type: Required value"]);
    }
}
