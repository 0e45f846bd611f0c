//! Merges the lists of a strategic merge patch: by merge key, as sets of scalars, and into a given order.

use std::collections::HashMap;

use flotilla_proto::schema::Patch as MergeRules;
use flotilla_proto::value::{Map, Value};

use super::go_text;
use super::strategic::{DIRECTIVE, Error, Schema, bad_directive, bad_type, merge_map, no_key, without_directives};

/// The identity of an item: the value of its merge key, or the item itself in a list of scalars.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Id {
    Null,
    Bool(bool),
    Int(i64),
    Float(u64),
    Text(flotilla_proto::value::Str),
}

impl Id {
    /// Converts a value to an identity. Returns `None` for lists and maps.
    fn of(value: &Value) -> Option<Self> {
        Some(match value {
            Value::Null => Self::Null,
            Value::Bool(flag) => Self::Bool(*flag),
            Value::Int(number) => Self::Int(*number),
            Value::Float(number) => Self::Float(number.get().to_bits()),
            Value::Str(text) => Self::Text(text.clone()),
            Value::Array(_) | Value::Object(_) | Value::Hole(_) => return None,
        })
    }

    /// Returns the identity of an item in a list with this merge key.
    fn of_item(item: &Value, key: Option<&str>) -> Option<Self> {
        match key {
            Some(key) => Self::of(item.get(key)?),
            None => Self::of(item),
        }
    }
}

/// Returns the first position of each identity in a list.
fn positions(items: &[Value], key: Option<&str>) -> HashMap<Id, usize> {
    let mut positions = HashMap::with_capacity(items.len());
    for (at, item) in items.iter().enumerate() {
        if let Some(id) = Id::of_item(item, key) {
            positions.entry(id).or_insert(at);
        }
    }
    positions
}

fn position(positions: &HashMap<Id, usize>, item: &Value, key: Option<&str>) -> Option<usize> {
    positions.get(&Id::of_item(item, key)?).copied()
}

/// Merges a list of the patch into that of the target, by the rules of the field.
///
/// # Errors
/// If the types of the items differ, a directive is invalid, or an item has no merge key.
pub fn merge(
    target: Vec<Value>,
    patch: Vec<Value>,
    schema: Schema<'_>,
    rules: MergeRules,
) -> Result<Vec<Value>, Error> {
    if !rules.merge {
        return Ok(patch);
    }
    if target.is_empty() && patch.is_empty() {
        return Ok(target);
    }
    let (order, server_order);
    let merged = if are_maps(&target, &patch)? {
        let key = rules
            .merge_key
            .ok_or_else(|| Error::Other(format!("cannot merge lists without merge key for {}", schema.kind())))?;
        let Split { target, patch, replace } = directives(target, patch, key)?;
        if replace {
            check_keys(&patch, key)?;
            return Ok(patch);
        }
        order = positions(&patch, rules.merge_key);
        server_order = positions(&target, rules.merge_key);
        merge_maps(target, patch, key, schema)?
    } else {
        order = positions(&patch, rules.merge_key);
        server_order = positions(&target, rules.merge_key);
        let mut seen = std::collections::HashSet::new();
        target.into_iter().chain(patch).filter(|item| Id::of(item).is_none_or(|id| seen.insert(id))).collect()
    };
    arrange(merged, &order, &server_order, rules.merge_key)
}

/// Carries out `$deleteFromPrimitiveList`: removes scalars from a list.
///
/// # Errors
/// If the types of the items differ, or one is a list.
pub fn delete(
    target: Vec<Value>,
    gone: Vec<Value>,
    schema: Schema<'_>,
    rules: MergeRules,
) -> Result<Vec<Value>, Error> {
    if target.is_empty() && gone.is_empty() {
        return Ok(target);
    }
    if are_maps(&target, &gone)? {
        // A deletion list of maps is merged like any other list.
        return merge(target, gone, schema, MergeRules { merge: true, ..rules });
    }
    let gone = positions(&gone, None);
    Ok(target.into_iter().filter(|item| position(&gone, item, None).is_none()).collect())
}

/// Merges two lists and arranges the items by `$setElementOrder`. At least one of the lists is present.
///
/// # Errors
/// If the lists cannot be merged, or the order has items of another type.
pub fn merge_ordered(
    target: Option<Vec<Value>>,
    patch: Option<Vec<Value>>,
    order: &[Value],
    schema: Schema<'_>,
    rules: MergeRules,
) -> Result<Vec<Value>, Error> {
    are_maps(target.as_deref().unwrap_or(&[]), patch.as_deref().unwrap_or(&[])).and_then(|maps| {
        if maps {
            order.iter().enumerate().try_for_each(|(n, item)| match item {
                Value::Object(_) => Ok(()),
                _ => Err(Error::Other(format!("value for key {n} is not a map"))),
            })?;
        }
        Ok(())
    })?;
    let server_order = positions(target.as_deref().unwrap_or(&[]), rules.merge_key);
    let merged = match (target, patch) {
        (Some(target), None) => target,
        (Some(target), Some(patch)) => merge(target, patch, schema, rules)?,
        (None, patch) => patch.unwrap_or_default().into_iter().filter_map(without_directives).collect(),
    };
    arrange(merged, &positions(order, rules.merge_key), &server_order, rules.merge_key)
}

/// Checks that `$setElementOrder` has all items of the patch, in the same order.
///
/// # Errors
/// If the orders differ, or an item has the wrong type.
pub fn check_order(patch: &[Value], order: &[Value], rules: MergeRules) -> Result<(), Error> {
    if patch.is_empty() || order.is_empty() {
        return Ok(());
    }
    let mut rest = order.iter();
    for item in patch {
        if let (Some(_), None) = (rules.merge_key, item.as_object()) {
            return Err(bad_type("map[string]interface {}", item));
        }
        if item.get(DIRECTIVE).is_some() {
            continue;
        }
        loop {
            let Some(candidate) = rest.next() else {
                let (patch, order) = (go_text::list(patch), go_text::list(order));
                return Err(Error::Other(format!(
                    "The order in patch list:\n{patch}\n doesn't match $setElementOrder list:\n{order}\n"
                )));
            };
            if same(item, candidate, rules.merge_key)? {
                break;
            }
        }
    }
    Ok(())
}

fn same(a: &Value, b: &Value, key: Option<&str>) -> Result<bool, Error> {
    let Some(key) = key else { return Ok(a == b) };
    let id = |item: &Value| {
        let map = item.as_object().ok_or_else(|| bad_type("map[string]interface {}", item))?;
        map.get(key).map(Id::of).ok_or_else(|| no_key(map, key))
    };
    Ok(id(a)? == id(b)?)
}

/// Returns whether the items are maps. `Err` if their types differ, if they are lists, or if there are none.
fn are_maps(target: &[Value], patch: &[Value]) -> Result<bool, Error> {
    let mut items = target.iter().chain(patch);
    let Some(first) = items.next() else {
        return Err(Error::Other("no elements in any of the given slices".to_owned()));
    };
    if matches!(first, Value::Array(_)) {
        return Err(Error::ListOfLists);
    }
    if items.any(|item| std::mem::discriminant(item) != std::mem::discriminant(first)) {
        let (target, patch) = (go_text::list(target), go_text::list(patch));
        return Err(Error::Other(format!("list element types are not identical: [{target} {patch}]")));
    }
    Ok(matches!(first, Value::Object(_)))
}

/// The two lists after the directives were carried out.
struct Split {
    target: Vec<Value>,
    patch: Vec<Value>,
    /// Whether the items of the patch replace the list.
    replace: bool,
}

/// Carries out the directives among the items of a patch.
fn directives(mut target: Vec<Value>, patch: Vec<Value>, key: &str) -> Result<Split, Error> {
    let (mut plain, mut gone, mut replace) = (Vec::with_capacity(patch.len()), HashMap::new(), false);
    for item in patch {
        let Value::Object(map) = &item else { continue };
        match map.get(DIRECTIVE).map(|directive| (directive, directive.as_str())) {
            None => plain.push(item),
            Some((_, Some("delete"))) => {
                let id = map.get(key).ok_or_else(|| no_key(map, key))?;
                if let Some(id) = Id::of(id) {
                    gone.insert(id, 0);
                }
            }
            Some((_, Some("replace"))) => replace = true,
            Some((_, Some("merge"))) => {
                return Err(Error::Other("merging lists cannot yet be specified in the patch".to_owned()));
            }
            Some((directive, _)) => return Err(bad_directive(directive, map)),
        }
    }
    if !gone.is_empty() {
        target.retain(|item| position(&gone, item, Some(key)).is_none());
    }
    Ok(Split { target, patch: plain, replace })
}

/// Merges items that share a key, and appends the others.
fn merge_maps(mut target: Vec<Value>, patch: Vec<Value>, key: &str, schema: Schema<'_>) -> Result<Vec<Value>, Error> {
    let mut at = positions(&target, Some(key));
    for item in patch {
        let Value::Object(map) = item else { continue };
        let id = Id::of(map.get(key).ok_or_else(|| no_key(&map, key))?);
        match id.as_ref().and_then(|id| at.get(id)).and_then(|&at| target.get_mut(at)) {
            Some(Value::Object(place)) => *place = merge_map(std::mem::take(place), map, schema)?,
            _ => {
                if let Some(id) = id {
                    at.insert(id, target.len());
                }
                target.push(Value::Object(map));
            }
        }
    }
    check_keys(&target, key)?;
    Ok(target)
}

fn check_keys(items: &[Value], key: &str) -> Result<(), Error> {
    let keyless = items.iter().filter_map(Value::as_object).find(|item: &&Map| !item.contains_key(key));
    keyless.map_or(Ok(()), |item| Err(no_key(item, key)))
}

/// Sorts the items that `order` names into that order. Inserts each other item before the first named item that
/// followed it in the stored list.
fn arrange(
    merged: Vec<Value>,
    order: &HashMap<Id, usize>,
    server_order: &HashMap<Id, usize>,
    key: Option<&str>,
) -> Result<Vec<Value>, Error> {
    if let Some(key) = key {
        check_keys(&merged, key)?;
    }
    let ranked = |place: &HashMap<Id, usize>, item: &Value| position(place, item, key);
    let (mut named, mut others): (Vec<_>, Vec<_>) = merged.into_iter().partition(|item| ranked(order, item).is_some());
    named.sort_by_cached_key(|item| ranked(order, item));
    others.sort_by_cached_key(|item| ranked(server_order, item));
    let mut out = Vec::with_capacity(named.len() + others.len());
    let mut named = named.into_iter().peekable();
    for other in others {
        let rank = ranked(server_order, &other);
        while let Some(next) = named.peek() {
            let before = matches!((rank, ranked(server_order, next)), (Some(rank), Some(next)) if rank < next);
            if before {
                break;
            }
            out.extend(named.next());
        }
        out.push(other);
    }
    out.extend(named);
    Ok(out)
}
