//! Merges a configuration into an object: stated values replace those of the object, all others stay.

use std::collections::{HashMap, HashSet};

use flotilla_proto::schema::{List, Type};
use flotilla_proto::value::{Map, Str, Value};

use super::element;
use super::form::{Form, Members, Parts, items, members};

static NULL: Value = Value::Null;

/// Returns the object with the configuration merged in.
pub fn merge(of: &Type, live: &Value, applied: &Value) -> Value {
    value(Form::of_type(of), Some(live), Some(applied)).unwrap_or_default()
}

/// Merges two values of one form. `None` when nothing remains.
fn value(form: Form<'_>, live: Option<&Value>, applied: Option<&Value>) -> Option<Value> {
    let Some(applied) = applied else { return live.cloned() };
    match form.parts(applied) {
        Parts::Leaf => Some(applied.clone()),
        Parts::Items(list) => {
            let (old, new) = (items(live), items(Some(applied)));
            if old.is_empty() && new.is_empty() {
                return Some(applied.clone());
            }
            let merged = merge_items(list, old, new);
            (!merged.is_empty()).then(|| Value::Array(merged))
        }
        Parts::Members => {
            let (old, new) = (members(live), members(Some(applied)));
            if old.is_none() && new.is_none() {
                return Some(applied.clone());
            }
            Some(merge_members(form, old, new)).filter(|merged| !merged.is_empty()).map(Value::Object)
        }
    }
}

fn merge_members(form: Form<'_>, old: Option<&Map>, new: Option<&Map>) -> Map {
    let mut merged = Vec::with_capacity(old.map_or(0, Map::len) + new.map_or(0, Map::len));
    let mut known = Members::of(form);
    for (key, live) in old.into_iter().flat_map(Map::iter) {
        let merge = |applied| value(known.any(key), Some(live), Some(applied));
        let value = new.and_then(|new| new.get(key)).map_or_else(|| Some(live.clone()), merge);
        merged.extend(value.map(|value| (Str::from(key), value)));
    }
    for (key, applied) in new.into_iter().flat_map(Map::iter) {
        if old.is_none_or(|old| !old.contains_key(key)) {
            merged.extend(value(known.any(key), None, Some(applied)).map(|value| (Str::from(key), value)));
        }
    }
    Map::from_entries(merged).0
}

/// Merges lists item by item. The result has the order of the configuration. Items that only the object has keep their
/// position relative to the items that both have.
fn merge_items(list: &List, live: &[Value], applied: &[Value]) -> Vec<Value> {
    let form = Form::of_shape(&list.item);
    // Both lists were checked before: all items have identities.
    let spell = |items: &[Value]| items.iter().filter_map(|item| element::of_item(list, item).ok()).collect();
    let (left, right): (Vec<Str>, Vec<Str>) = (spell(live), spell(applied));
    let mut in_live: HashMap<&Str, &Value> = HashMap::with_capacity(left.len());
    for (element, item) in left.iter().zip(live) {
        // If several items of the object share an identity, nothing is merged into them.
        in_live.entry(element).and_modify(|item| *item = &NULL).or_insert(item);
    }
    let in_applied: HashMap<&Str, &Value> = right.iter().zip(applied).collect();
    let mut shared = right.iter().filter(|element| in_live.contains_key(element)).peekable();
    let mut taken: HashSet<&Str> = HashSet::with_capacity(right.len());
    let mut out = Vec::with_capacity(left.len().max(right.len()));
    let (mut l, mut r) = (0, 0);
    while l < left.len() || r < right.len() {
        if let (Some(ours), Some(theirs)) = (left.get(l), right.get(r)) {
            if ours == theirs {
                taken.insert(ours);
                out.extend(value(form, in_live.get(ours).copied(), in_applied.get(ours).copied()));
                (l, r) = (l + 1, r + 1);
                shared.next();
                continue;
            }
            if in_applied.contains_key(ours) && shared.peek().is_some_and(|next| *next != ours) {
                // Both lists have the item; the configuration places it later.
                l += 1;
                continue;
            }
        }
        if let Some(ours) = left.get(l) {
            if !in_applied.contains_key(ours) {
                out.extend(value(form, live.get(l), None));
                l += 1;
                continue;
            }
            if taken.contains(ours) {
                l += 1;
            }
        }
        if let Some(theirs) = right.get(r) {
            taken.insert(theirs);
            out.extend(value(form, in_live.get(theirs).copied(), in_applied.get(theirs).copied()));
            r += 1;
            if shared.peek() == Some(&theirs) {
                shared.next();
            }
        }
    }
    out
}

/// Returns the value without the members and items of a set. A value that keeps none becomes `null`, as in the
/// reference; decoding treats that as absent.
pub fn without(form: Form<'_>, current: &Value, gone: &Map) -> Value {
    match form.parts(current) {
        Parts::Leaf => match current {
            Value::Object(_) | Value::Array(_) => Value::Null,
            scalar => scalar.clone(),
        },
        Parts::Items(list) => {
            let form = Form::of_shape(&list.item);
            let mut kept = Vec::new();
            for item in items(Some(current)) {
                let node = element::of_item(list, item).ok().and_then(|element| gone.get(&element));
                kept.extend(remaining(form, item, node));
            }
            if kept.is_empty() { Value::Null } else { Value::Array(kept) }
        }
        Parts::Members => {
            let (mut kept, mut known) = (Vec::new(), Members::of(form));
            for (key, value) in members(Some(current)).into_iter().flat_map(Map::iter) {
                let node = gone.get(&element::of_name(key));
                let value = match node {
                    None => Some(value.clone()),
                    node => remaining(known.any(key), value, node),
                };
                kept.extend(value.map(|value| (Str::from(key), value)));
            }
            if kept.is_empty() { Value::Null } else { Map::from_entries(kept).0.into() }
        }
    }
}

fn remaining(form: Form<'_>, value: &Value, node: Option<&Value>) -> Option<Value> {
    match node {
        None => Some(value.clone()),
        Some(node) if super::set::is_member(node) => None,
        Some(Value::Object(below)) => Some(without(form, value, below)),
        Some(_) => None,
    }
}
