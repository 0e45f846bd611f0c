//! Lists in which the order of the items does not matter: `x-kubernetes-list-type` set and map.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use flotilla_proto::structural::{ListType, Structural};
use flotilla_proto::value::Str;

use super::equal::Comparison;
use super::{Key, List, Map, Value};
use crate::error::{Error, Outcome};

/// Returns whether every item of `b` is an item of `a`. Both lists have the same length.
pub(super) fn same_set(a: &List<'_>, b: &List<'_>) -> Outcome<bool> {
    let have: HashSet<Key<'_>> = a.iter().map(|item| item.map(|item| Key::of(&item))).collect::<Outcome<_>>()?;
    for item in b.iter() {
        if !have.contains(&Key::of(&item?)) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns whether every item of `b` is equal to the item of `a` with the same keys.
pub(super) fn same_keys(a: &List<'_>, b: &List<'_>, keys: &[Str], comparison: &mut Comparison) -> Outcome<bool> {
    let mut have = HashMap::new();
    for item in a.iter() {
        let item = item?;
        have.insert(identity(&item, keys)?, item);
    }
    for item in b.iter() {
        let item = item?;
        match have.get(&identity(&item, keys)?) {
            Some(other) if comparison.values(other, &item)? => {}
            _ => return Ok(false),
        }
    }
    Ok(true)
}

/// Returns `a + b`. The schema of `a` decides whether that is the union of sets, a merge by keys, or the concatenation.
pub(crate) fn add<'a>(a: &List<'a>, b: &List<'a>) -> Outcome<Value<'a>> {
    let joined = || Ok(Value::List(List::join(a.clone(), b.clone())));
    let Some(schema) = a.schema() else { return joined() };
    match schema.list_type {
        Some(ListType::Atomic) | None => joined(),
        Some(ListType::Set) => {
            let mut items = a.to_vec()?;
            let mut have: HashSet<Key<'_>> = items.iter().map(Key::of).collect();
            for item in b.iter() {
                let item = item?;
                if have.insert(Key::of(&item)) {
                    items.push(item);
                }
            }
            Ok(Value::List(List::Merged(Arc::new(items), schema)))
        }
        Some(ListType::Map) => merge(a, b, schema),
    }
}

fn merge<'a>(a: &List<'a>, b: &List<'a>, schema: &'a Structural) -> Outcome<Value<'a>> {
    let keys = schema.list_map_keys();
    let mut items = a.to_vec()?;
    let mut places = HashMap::new();
    for (at, item) in items.iter().enumerate() {
        places.insert(identity(item, keys)?, at);
    }
    for item in b.iter() {
        let item = item?;
        match places.get(&identity(&item, keys)?) {
            Some(at) => items[*at] = item,
            None => items.push(item),
        }
    }
    Ok(Value::List(List::Merged(Arc::new(items), schema)))
}

fn identity<'a>(item: &Value<'a>, keys: &[Str]) -> Outcome<Vec<Option<Key<'a>>>> {
    let Value::Map(map) = item else {
        return Err(Error::new("unexpected data format for element of array with x-kubernetes-list-type=map"));
    };
    keys.iter().map(|key| find(map, key)).collect()
}

fn find<'a>(map: &Map<'a>, key: &str) -> Outcome<Option<Key<'a>>> {
    Ok(map.find_property(key)?.map(|value| Key::of(&value)))
}
