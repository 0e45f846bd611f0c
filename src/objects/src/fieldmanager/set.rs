//! Sets of fields, kept as the `fieldsV1` objects in which they are stored.
//!
//! A set is a map from elements (see [`super::element`]) to nodes. A node is an object. An empty node is a member of
//! the set. A node with children holds a subtree, and is a member itself only if it has the key `.`. Nodes that are
//! neither do not occur: removing the last child of a node that is not a member removes the node.

use flotilla_proto::value::{Map, Str, Value};

use super::element::{self, SELF};

/// Returns whether a node is a member of its set.
pub fn is_member(node: &Value) -> bool {
    match node {
        Value::Object(map) => map.is_empty() || map.contains_key(SELF),
        _ => true,
    }
}

/// Returns the elements below a node, without the key `.`.
pub fn children(node: &Map) -> impl Iterator<Item = (&str, &Value)> {
    node.iter().filter(|(key, _)| *key != SELF)
}

/// Returns a node. `None` if it would neither be a member nor have children.
pub fn node(member: bool, mut below: Map) -> Option<Value> {
    let marked = below.contains_key(SELF);
    match (member, marked, below.len() - usize::from(marked)) {
        (false, _, 0) => None,
        (true, _, 0) => Some(Value::object()),
        (true, true, _) | (false, false, _) => Some(below.into()),
        (true, false, _) => {
            below.insert(SELF, Value::object());
            order(&mut below);
            Some(below.into())
        }
        (false, true, _) => {
            below.remove(SELF);
            Some(below.into())
        }
    }
}

/// Returns the set of elements, which must all be different.
pub fn of_entries(mut entries: Vec<(Str, Value)>) -> Map {
    if !entries.is_sorted_by(|a, b| element::compare(&a.0, &b.0).is_lt()) {
        entries.sort_by(|a, b| element::compare(&a.0, &b.0));
    }
    Map::from_unique(entries)
}

/// Returns the same as [`node`], for a list of elements that are all different.
pub fn node_of(member: bool, mut below: Vec<(Str, Value)>) -> Option<Value> {
    if below.is_empty() {
        return member.then(Value::object);
    }
    if member {
        below.push((Str::const_new(SELF), Value::object()));
    }
    Some(of_entries(below).into())
}

/// Sorts the elements. Large maps keep their keys sorted by themselves.
pub fn order(set: &mut Map) {
    if set.is_large() {
        return;
    }
    if set.keys().all(|key| key.starts_with(['.', 'f'])) {
        set.sort();
    } else if !set.keys().is_sorted_by(|a, b| element::compare(a, b).is_le()) {
        let mut entries: Vec<_> = std::mem::take(set).into_iter().collect();
        entries.sort_by(|a, b| element::compare(&a.0, &b.0));
        *set = Map::from_entries(entries).0;
    }
}

/// Adds the elements of `other`.
pub fn unite(set: &mut Map, other: &Map) {
    let before = set.len();
    for (key, theirs) in other.iter() {
        match set.get_mut(key) {
            None => {
                set.insert(key, theirs.clone());
            }
            Some(Value::Object(ours)) if key != SELF => {
                let Value::Object(theirs) = theirs else { continue };
                if ours.is_empty() || theirs.is_empty() {
                    // One side has the member alone, the other a subtree below it.
                    let joined = if ours.is_empty() { theirs.clone() } else { std::mem::take(ours) };
                    if let Some(Value::Object(node)) = node(true, joined) {
                        *ours = node;
                    }
                } else {
                    unite(ours, theirs);
                }
            }
            Some(_) => {}
        }
    }
    if set.len() != before {
        order(set);
    }
}

/// Removes the members of `other`. The children of a removed member stay.
pub fn subtract(set: &mut Map, other: &Map) {
    for (key, theirs) in children(other) {
        let Some(ours) = set.get_mut(key) else { continue };
        let member = is_member(ours) && !is_member(theirs);
        let mut below = match ours {
            Value::Object(map) => std::mem::take(map),
            _ => Map::new(),
        };
        if let Value::Object(theirs) = theirs {
            subtract(&mut below, theirs);
        }
        below.remove(SELF);
        match node(member, below) {
            Some(node) => *ours = node,
            None => {
                set.remove(key);
            }
        }
    }
}

/// Returns whether all members of `set` are members of `other`.
pub fn is_within(set: &Map, other: &Map) -> bool {
    children(set).all(|(key, ours)| {
        let Some(theirs) = other.get(key) else { return false };
        let below = match (ours, theirs) {
            (Value::Object(ours), Value::Object(theirs)) => is_within(ours, theirs),
            _ => true,
        };
        below && (!is_member(ours) || is_member(theirs))
    })
}

/// Returns the members that both sets have.
pub fn intersection(a: &Map, b: &Map) -> Map {
    let mut common = Vec::new();
    for (key, theirs) in children(b) {
        let Some(ours) = a.get(key) else { continue };
        let below = match (ours, theirs) {
            (Value::Object(ours), Value::Object(theirs)) => intersection(ours, theirs),
            _ => Map::new(),
        };
        if let Some(node) = node(is_member(ours) && is_member(theirs), below) {
            common.push((Str::from(key), node));
        }
    }
    of_entries(common)
}

/// Removes the element at a path of member names, with everything below it.
pub fn cut(set: &mut Map, path: &[&str]) {
    let Some((first, rest)) = path.split_first() else { return };
    let key = element::of_name(first);
    if rest.is_empty() {
        set.remove(&key);
        return;
    }
    if let Some(Value::Object(below)) = set.get_mut(&key) {
        if below.is_empty() {
            return;
        }
        cut(below, rest);
        if below.is_empty() {
            set.remove(&key);
        } else if below.len() == 1 && below.contains_key(SELF) {
            below.remove(SELF);
        }
    }
}

/// Removes the member at a path of member names. Elements below it stay.
pub fn remove(set: &mut Map, path: &[&str]) {
    subtract(set, &of_path(path));
}

/// Returns whether the element at a path of member names is a member.
pub fn contains(set: &Map, path: &[&str]) -> bool {
    let Some((first, rest)) = path.split_first() else { return false };
    match (set.get(&element::of_name(first)), rest) {
        (Some(node), []) => is_member(node),
        (Some(Value::Object(below)), rest) => contains(below, rest),
        _ => false,
    }
}

/// Returns the set with one member, at a path of member names.
pub fn of_path(path: &[&str]) -> Map {
    let mut set = Map::new();
    if let Some((first, rest)) = path.split_first() {
        set.insert(element::of_name(first), of_path(rest));
    }
    set
}

/// Converts a set that a client wrote into canonical form.
///
/// # Errors
/// The value is not an object, or has a malformed element.
pub fn canonical(fields: &Value) -> Result<Map, element::Unreadable> {
    let Value::Object(map) = fields else {
        return if fields.is_null() { Ok(Map::new()) } else { Err(element::Unreadable) };
    };
    let mut set = Map::new();
    for (key, below) in map.iter() {
        if key == SELF {
            continue;
        }
        let Some(key) = element::canonical(key)? else { continue };
        let member = is_member(below);
        let below = canonical(below)?;
        // A subtree without any readable element counts as a member, as an empty object does.
        let member = member || below.is_empty();
        let node = node(member, below).unwrap_or_default();
        if !set.contains_key(&key) {
            set.insert(key, node);
            continue;
        }
        // The client spelled one element in two ways.
        let mut single = Map::new();
        single.insert(key, node);
        unite(&mut set, &single);
    }
    order(&mut set);
    Ok(set)
}

/// Formats the paths of all members for messages. The members of a node come before the elements below them. Stops once
/// the paths exceed `room` bytes.
pub fn paths(set: &Map, room: &mut usize) -> Vec<String> {
    fn walk(set: &Map, prefix: &str, room: &mut usize, out: &mut Vec<String>) {
        let path = |key: &str| format!("{prefix}{}", element::shown(key));
        for (key, _) in children(set).filter(|(_, node)| is_member(node)) {
            if *room == 0 {
                return;
            }
            let path = path(key);
            *room = room.saturating_sub(path.len() + size_of::<String>());
            out.push(path);
        }
        for (key, node) in children(set) {
            if let Value::Object(below) = node
                && !below.is_empty()
                && *room > 0
            {
                walk(below, &path(key), room, out);
            }
        }
    }
    let mut out = Vec::new();
    walk(set, "", room, &mut out);
    out
}
