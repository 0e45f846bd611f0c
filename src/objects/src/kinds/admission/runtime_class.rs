//! The plugin RuntimeClass: adds the overhead and the scheduling constraints of a RuntimeClass to its pods (KEP-688).

use flotilla_proto::value::{Map, Value};

use crate::rules::semantic;

const OVERHEAD: [&str; 2] = ["spec", "overhead"];
const OTHER_OVERHEAD: &str = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead";

/// Applies the class that a pod names; `class` is `None` where it does not exist.
pub fn set_runtime_class(pod: &mut Value, class: Option<&Value>) -> Result<(), String> {
    let Some(name) = pod.at(&["spec", "runtimeClassName"]).as_str() else { return Ok(()) };
    let class = class.ok_or_else(|| format!("pod rejected: RuntimeClass {} not found", crate::field::quote(name)))?;
    if let Some(overhead) = class.get("overhead") {
        let fixed = overhead.at(&["podFixed"]);
        let own = pod.at(&OVERHEAD);
        if own.as_object().is_some_and(|own| !own.is_empty()) && !same(fixed, own) {
            return Err(OTHER_OVERHEAD.into());
        }
        match fixed {
            Value::Null => _ = pod.remove_at(&OVERHEAD),
            fixed => pod.set_at(&OVERHEAD, fixed.clone()),
        }
    }
    let Some(scheduling) = class.get("scheduling") else { return Ok(()) };
    for (key, value) in scheduling.map_at(&["nodeSelector"]).into_iter().flat_map(Map::iter) {
        let own = pod.at(&["spec", "nodeSelector", key]);
        if !own.is_null() && own != value {
            let (theirs, own) = (value.as_str().unwrap_or(""), own.as_str().unwrap_or(""));
            let conflict = "conflict: runtimeClass.scheduling.nodeSelector";
            return Err(format!("{conflict}[{key}] = {theirs}; pod.spec.nodeSelector[{key}] = {own}"));
        }
        pod.set_at(&["spec", "nodeSelector", key], value.clone());
    }
    let merged = merge(pod.list_at(&["spec", "tolerations"]), scheduling.list_at(&["tolerations"]));
    if !merged.is_empty() {
        pod.set_at(&["spec", "tolerations"], merged);
    }
    Ok(())
}

/// Checks, once all plugins have run, that a pod has the overhead of its class and no other.
pub fn check_overhead(pod: &Value, class: Option<&Value>) -> Result<(), String> {
    let own = pod.at(&OVERHEAD);
    match class.and_then(|class| class.get("overhead")) {
        Some(overhead) if !same(overhead.at(&["podFixed"]), own) => Err(OTHER_OVERHEAD.into()),
        None if !own.is_null() => {
            Err("pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead".into())
        }
        _ => Ok(()),
    }
}

/// Returns whether two lists of resources state the same amounts.
fn same(a: &Value, b: &Value) -> bool {
    let wrap = |list: &Value| {
        let mut holder = Value::object();
        if list.as_object().is_some_and(|list| !list.is_empty()) {
            holder.set_at(&["overhead"], list.clone());
        }
        holder
    };
    semantic::equal(&wrap(a), &wrap(b))
}

/// Joins two lists of tolerations, without those that others include.
fn merge(first: &[Value], second: &[Value]) -> Vec<Value> {
    let all: Vec<&Value> = first.iter().chain(second).collect();
    let mut merged: Vec<Value> = Vec::new();
    for (n, toleration) in all.iter().enumerate() {
        let earlier = merged.iter().any(|other| includes(other, toleration));
        let later = all[n + 1..].iter().any(|other| other != toleration && includes(other, toleration));
        if !earlier && !later {
            merged.push((*toleration).clone());
        }
    }
    merged
}

/// Returns whether `outer` tolerates every taint that `inner` tolerates.
fn includes(outer: &Value, inner: &Value) -> bool {
    let text = |toleration: &'_ Value, key: &str| toleration.str_at(&[key]).to_owned();
    let seconds = |toleration: &Value| toleration.int_at(&["tolerationSeconds"]);
    if outer == inner {
        return true;
    }
    let (key, operator, effect) = (text(outer, "key"), text(outer, "operator"), text(outer, "effect"));
    let any_key = key.is_empty() && operator == "Exists";
    if (text(inner, "key") != key && !any_key) || (!effect.is_empty() && text(inner, "effect") != effect) {
        return false;
    }
    if effect == "NoExecute"
        && let Some(most) = seconds(outer)
        && seconds(inner).is_none_or(|own| own > most)
    {
        return false;
    }
    match operator.as_str() {
        "Equal" | "" => text(inner, "operator") == "Equal" && text(inner, "value") == text(outer, "value"),
        "Exists" => true,
        _ => false,
    }
}
