//! Cells of flow schemas and priority levels.

use std::cmp::Ordering;

use flotilla_proto::time::Timestamp;
use flotilla_proto::value::Value;

use super::cell::{self, number};

/// Name, priority level, precedence, distinguisher, age, whether the priority level is missing.
pub fn flow_schema(object: &Value, now: Timestamp, cells: &mut Vec<Value>) {
    let dangling = match cell::condition(object, "Dangling") {
        Some(condition) => cell::text(condition, &["status"]),
        None => "?".into(),
    };
    cells.extend([
        cell::name(object),
        cell::text(object, &["spec", "priorityLevelConfiguration", "name"]),
        cell::int(object, &["spec", "matchingPrecedence"]),
        cell::pointer_or(object, &["spec", "distinguisherMethod", "type"], "<none>"),
        cell::age(object, now),
        dangling,
    ]);
}

/// Compares flow schemas in the order in which they are tried: by precedence, then by name.
pub fn by_precedence(a: &Value, b: &Value) -> Ordering {
    let rank = |object: &Value| number(object, &["spec", "matchingPrecedence"]);
    let name = |object| Value::str_at(object, &["metadata", "name"]);
    rank(a).cmp(&rank(b)).then_with(|| name(a).cmp(name(b)))
}

/// Name, type, shares, queues, hand size, queue length, age.
pub fn priority_level(object: &Value, now: Timestamp, cells: &mut Vec<Value>) {
    let limited = object.at(&["spec", "limited"]);
    let queuing = limited.at(&["limitResponse", "queuing"]);
    let of = |part: &Value, field: &str| match part {
        Value::Object(_) => cell::int(part, &[field]),
        _ => "<none>".into(),
    };
    cells.extend([
        cell::name(object),
        cell::text(object, &["spec", "type"]),
        of(limited, "nominalConcurrencyShares"),
        of(queuing, "queues"),
        of(queuing, "handSize"),
        of(queuing, "queueLengthLimit"),
        cell::age(object, now),
    ]);
}
