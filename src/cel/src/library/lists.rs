//! Kubernetes' functions of lists: `isSorted`, `sum`, `min`, `max`, `indexOf`, `lastIndexOf`.

use std::cmp::Ordering;

use super::table::{overload, unfit};
use crate::cost::{CallEstimate, Cost, CostRange, Nodes, TEXT};
use crate::error::{Error, Outcome};
use crate::functions::{Function, Library, Since};
use crate::types::Type;
use crate::value::{Duration, List, Value, compare, equal};

/// The overloads for lists of everything that has an order.
macro_rules! of_ordered {
    ($middle:literal, $end:literal, $call:ident, each) => {
        &[
            of_ordered!("int", $middle, "int", $call),
            of_ordered!("uint", $middle, "uint", $call),
            of_ordered!("double", $middle, "double", $call),
            of_ordered!("bool", $middle, "bool", $call),
            of_ordered!("duration", $middle, "duration", $call),
            of_ordered!("timestamp", $middle, "timestamp", $call),
            of_ordered!("string", $middle, "string", $call),
            of_ordered!("bytes", $middle, "bytes", $call),
        ]
    };
    ($middle:literal, $end:literal, $call:ident, bool) => {
        &[
            of_ordered!("int", $middle, "bool", $call),
            of_ordered!("uint", $middle, "bool", $call),
            of_ordered!("double", $middle, "bool", $call),
            of_ordered!("bool", $middle, "bool", $call),
            of_ordered!("duration", $middle, "bool", $call),
            of_ordered!("timestamp", $middle, "bool", $call),
            of_ordered!("string", $middle, "bool", $call),
            of_ordered!("bytes", $middle, "bool", $call),
        ]
    };
    ($item:literal, $middle:literal, $result:literal, $call:ident) => {
        overload(
            concat!("list_", $item, $middle, $result),
            concat!("list(", $item, ").(): ", $result),
            TRAVERSED,
            $call,
        )
    };
}

/// Kubernetes calls it `kubernetes.lists`.
pub static LIBRARY: Library = Library {
    name: "kubernetes.lists",
    since: Since::Always,
    functions: &[
        Function { name: "isSorted", overloads: of_ordered!("_is_sorted_", "bool", is_sorted, bool) },
        Function { name: "min", overloads: of_ordered!("_min_", "", min, each) },
        Function { name: "max", overloads: of_ordered!("_max_", "", max, each) },
        Function {
            name: "sum",
            overloads: &[
                overload("list_int_sum_int", "list(int).(): int", TRAVERSED, |list| sum(list, Value::Int(0))),
                overload("list_uint_sum_uint", "list(uint).(): uint", TRAVERSED, |list| sum(list, Value::Uint(0))),
                overload("list_double_sum_double", "list(double).(): double", TRAVERSED, |list| {
                    sum(list, Value::Double(0.0))
                }),
                overload("list_duration_sum_duration", "list(duration).(): duration", TRAVERSED, |list| {
                    sum(list, Value::Duration(Duration::new(0)))
                }),
            ],
        },
        Function {
            name: "indexOf",
            overloads: &[overload("list_a_index_of_int", "list(A).(A): int", TRAVERSED, index_of)],
        },
        Function {
            name: "lastIndexOf",
            overloads: &[overload("list_a_last_index_of_int", "list(A).(A): int", TRAVERSED, last_index_of)],
        },
    ],
};

/// One pass over a list and the texts in it, or over a string.
pub(super) const TRAVERSED: Cost =
    Cost { estimate, actual: |arguments, _| arguments.first().map_or(0, traversal), by_name: true };

fn estimate(nodes: &Nodes<'_>) -> Option<CallEstimate> {
    let receiver = nodes.receiver?;
    let size = nodes.size(receiver);
    let Some(items) = receiver.items() else { return Some(CallEstimate::of(size.scaled(TEXT))) };
    let mut each = CostRange::fixed(1);
    if matches!(items.of, Type::String | Type::Bytes) {
        each = each.add(nodes.size(&items).scaled(TEXT));
    }
    Some(CallEstimate::of(size.times(each)))
}

/// Returns the cost of traversing a value with everything in it.
fn traversal(value: &Value<'_>) -> u64 {
    let text = |length: usize| (length as f64 * TEXT) as u64;
    match value {
        Value::String(value) => text(value.len()),
        Value::Bytes(bytes) => text(bytes.len()),
        Value::List(list) => list.iter().flatten().map(|item| traversal(&item)).sum(),
        Value::Map(map) => {
            // A value that is an error counts 1.
            map.iter().map(|(key, value)| traversal(&key) + value.map_or(1, |value| traversal(&value))).sum()
        }
        _ => 1,
    }
}

fn one<'v, 'a>(arguments: &'v [Value<'a>]) -> Outcome<&'v List<'a>> {
    match arguments {
        [Value::List(list)] => Ok(list),
        _ => Err(Error::no_such_overload()),
    }
}

fn is_ordered(value: &Value<'_>) -> bool {
    let is_number = matches!(value, Value::Int(_) | Value::Uint(_) | Value::Double(_) | Value::Bool(_));
    is_number || matches!(value, Value::String(_) | Value::Bytes(_) | Value::Duration(_) | Value::Timestamp(_))
}

/// Returns the item. Returns an error if its type has no order.
fn ordered<'a>(item: Outcome<Value<'a>>) -> Outcome<Value<'a>> {
    item.and_then(|item| if is_ordered(&item) { Ok(item) } else { unfit() })
}

fn is_sorted<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    let mut before: Option<Value<'a>> = None;
    for item in one(arguments)?.iter() {
        let item = ordered(item)?;
        // Items that cannot be compared count as sorted.
        if before.is_some_and(|before| compare(&before, &item) == Ok(Ordering::Greater)) {
            return Ok(false.into());
        }
        before = Some(item);
    }
    Ok(true.into())
}

fn min<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    foremost(arguments, "min", Ordering::Greater)
}

fn max<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    foremost(arguments, "max", Ordering::Less)
}

/// Returns the smallest or largest item: the first one that no later item precedes in the order.
fn foremost<'a>(arguments: &[Value<'a>], name: &str, replaced: Ordering) -> Outcome<Value<'a>> {
    let mut found: Option<Value<'a>> = None;
    for item in one(arguments)?.iter() {
        let item = ordered(item)?;
        if found.as_ref().is_none_or(|found| compare(found, &item) == Ok(replaced)) {
            found = Some(item);
        }
    }
    found.ok_or_else(|| Error::new(format!("{name} called on empty list")))
}

fn sum<'a>(arguments: &[Value<'a>], zero: Value<'a>) -> Outcome<Value<'a>> {
    one(arguments)?.iter().try_fold(zero, |sum, item| match (sum, item?) {
        (Value::Int(a), Value::Int(b)) => {
            a.checked_add(b).map(Value::Int).ok_or_else(|| Error::new("integer overflow"))
        }
        (Value::Uint(a), Value::Uint(b)) => {
            a.checked_add(b).map(Value::Uint).ok_or_else(|| Error::new("unsigned integer overflow"))
        }
        (Value::Double(a), Value::Double(b)) => Ok(Value::Double(a + b)),
        (Value::Duration(a), Value::Duration(b)) => {
            let sum = a.nanos().checked_add(b.nanos()).ok_or_else(|| Error::new("duration overflow"))?;
            Ok(Value::Duration(Duration::new(sum)))
        }
        _ => unfit(),
    })
}

fn is_item(list: &List<'_>, place: usize, wanted: &Value<'_>) -> bool {
    list.get(place).is_some_and(|item| item.is_ok_and(|item| equal(&item, wanted) == Ok(true)))
}

fn index_of<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    let [Value::List(list), wanted] = arguments else { return unfit() };
    let found = (0..list.len()).find(|place| is_item(list, *place, wanted));
    Ok(Value::Int(found.map_or(-1, |place| place as i64)))
}

fn last_index_of<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    let [Value::List(list), wanted] = arguments else { return unfit() };
    let found = (0..list.len()).rev().find(|place| is_item(list, *place, wanted));
    Ok(Value::Int(found.map_or(-1, |place| place as i64)))
}
