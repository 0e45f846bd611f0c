//! `sets`: lists as sets, ignoring order and repetition.

use super::table::{overload, unfit};
use crate::cost::{CallEstimate, Cost, CostRange, Nodes, size_of};
use crate::error::Outcome;
use crate::functions::{Function, Library, Since};
use crate::value::{List, Value, equal};

/// CEL's extension `sets`.
pub static LIBRARY: Library = Library {
    name: "sets",
    since: Since::Minor(29),
    functions: &[
        Function {
            name: "sets.contains",
            overloads: &[overload("list_sets_contains_list", "(list(T), list(T)): bool", PRODUCT, contains)],
        },
        Function {
            name: "sets.equivalent",
            overloads: &[overload("list_sets_equivalent_list", "(list(T), list(T)): bool", PRODUCT_TWICE, equivalent)],
        },
        Function {
            name: "sets.intersects",
            overloads: &[overload("list_sets_intersects_list", "(list(T), list(T)): bool", PRODUCT, intersects)],
        },
    ],
};

/// Each item of one list is compared with each of the other.
const PRODUCT: Cost =
    Cost { estimate: |nodes| estimate(nodes, 1.0), actual: |lists, _| actual(lists, 1), by_name: false };
const PRODUCT_TWICE: Cost =
    Cost { estimate: |nodes| estimate(nodes, 2.0), actual: |lists, _| actual(lists, 2), by_name: false };

fn estimate(nodes: &Nodes<'_>, times: f64) -> Option<CallEstimate> {
    let [a, b] = nodes.arguments else { return None };
    let product = nodes.size(a).multiply(nodes.size(b));
    Some(CallEstimate::of(product.scaled(times).add(CostRange::fixed(1))))
}

fn actual(arguments: &[Value<'_>], times: u64) -> u64 {
    let [a, b] = arguments else { return 1 };
    size_of(a).saturating_mul(size_of(b)).saturating_mul(times).saturating_add(1)
}

/// Returns whether a value is in a list. Values that cannot be compared are not equal.
fn has(list: &List<'_>, wanted: &Value<'_>) -> Outcome<bool> {
    for item in list.iter() {
        if equal(wanted, &item?) == Ok(true) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn has_all(list: &List<'_>, part: &List<'_>) -> Outcome<bool> {
    for wanted in part.iter() {
        if !has(list, &wanted?)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn contains<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    match arguments {
        [Value::List(list), Value::List(part)] => Ok(has_all(list, part)?.into()),
        _ => unfit(),
    }
}

fn equivalent<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    match arguments {
        [Value::List(a), Value::List(b)] => Ok((has_all(a, b)? && has_all(b, a)?).into()),
        _ => unfit(),
    }
}

fn intersects<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    let [Value::List(a), Value::List(b)] = arguments else { return unfit() };
    for item in a.iter() {
        if has(b, &item?)? {
            return Ok(true.into());
        }
    }
    Ok(false.into())
}
