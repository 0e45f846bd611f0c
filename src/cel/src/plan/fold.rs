//! Constant folding: lists and maps of constants, conversions of constants, patterns.
//!
//! Folded parts cost nothing at evaluation, so this module folds exactly the parts that Kubernetes folds; any
//! difference would be visible in costs.

use std::sync::Arc;

use super::{Constants, Item, Plan, PlannedCall};
use crate::error::Outcome;
use crate::eval;
use crate::functions;
use crate::value::{List, Value};

/// The conversions that are folded.
const CONVERSIONS: [&str; 10] =
    ["bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"];

/// Returns the plan of a call, or its folded value. `Err` if the conversion of a constant fails, or a pattern is
/// invalid.
pub(super) fn call(mut call: PlannedCall, optimize: bool) -> Outcome<Plan> {
    if !optimize {
        return Ok(Plan::Call(Box::new(call)));
    }
    if let Some(functions::Call::Prepared { argument, prepare, .. }) = prepares(&call)
        && let Some(Plan::Const(value @ Value::String(_))) = call.arguments.get(argument)
    {
        call.prepared = Some(prepare(value)?);
    }
    match &call.arguments[..] {
        [Plan::Const(value)] if CONVERSIONS.contains(&&*call.function) => {
            return eval::call_with(&call, std::slice::from_ref(value)).map(Plan::Const);
        }
        [_, Plan::Const(Value::List(List::Made(items)))]
            if call.overload().is_some_and(|overload| overload.id == "in_list") =>
        {
            if items.is_empty() {
                return Ok(Plan::Const(Value::Bool(false)));
            }
            if let Some(constants) = Constants::of(items.iter()) {
                return Ok(Plan::In(Box::new(call.arguments.swap_remove(0)), Arc::new(constants)));
            }
        }
        _ => {}
    }
    Ok(Plan::Call(Box::new(call)))
}

/// Returns how the call prepares an argument. `None` if it does not.
fn prepares(call: &PlannedCall) -> Option<functions::Call> {
    let natives = call.overloads.iter().filter_map(|overload| overload.native);
    natives.map(|native| native.call).find(|call| matches!(call, functions::Call::Prepared { .. }))
}

/// Returns the plan of a list, or its value if all items are constants.
pub(super) fn list(items: Vec<Item>) -> Plan {
    if items.iter().any(|item| !matches!(item.value, Plan::Const(_))) {
        return Plan::List(items);
    }
    let mut values = Vec::with_capacity(items.len());
    for item in &items {
        match (&item.value, item.is_optional) {
            (Plan::Const(Value::Optional(None)), true) => {}
            (Plan::Const(Value::Optional(Some(value))), true) => values.push((**value).clone()),
            (Plan::Const(value), false) => values.push(value.clone()),
            _ => return Plan::List(items),
        }
    }
    Plan::Const(Value::list(values))
}

/// Returns the plan of a map, or its value if all keys and values are constants.
pub(super) fn map(entries: Vec<(Plan, Item)>) -> Plan {
    let mut values = Vec::with_capacity(entries.len());
    for (key, item) in &entries {
        match (key, &item.value) {
            (Plan::Const(key), Plan::Const(value)) if !item.is_optional && eval::is_map_key(key) => {
                values.push((key.clone(), value.clone()));
            }
            _ => return Plan::Map(entries),
        }
    }
    Plan::Const(Value::map(values))
}
