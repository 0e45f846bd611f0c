//! Computes the fields that a configuration states. Its applier owns them.

use std::collections::HashMap;

use flotilla_proto::schema::{List, Type};
use flotilla_proto::value::{Map, Str, Value};

use super::element;
use super::form::{Form, Members, Parts, items, members};
use super::set;

/// Returns the set of all fields that an object states: leaves, items, entries of maps, and empty objects.
pub fn fields(of: &Type, object: &Value) -> Map {
    let mut fields = Vec::new();
    collect(Form::of_type(of), object, &mut fields);
    set::of_entries(fields)
}

/// Collects the elements below a value. Returns whether the value is a leaf.
fn collect(form: Form<'_>, value: &Value, below: &mut Vec<(Str, Value)>) -> bool {
    match form.parts(value) {
        Parts::Leaf => return true,
        Parts::Items(list) => of_items(list, items(Some(value)), below),
        Parts::Members => {
            let mut known = Members::of(form);
            for (key, value) in members(Some(value)).into_iter().flat_map(Map::iter) {
                let mut inner = Vec::new();
                let declared = known.declared(key);
                let leaf = collect(declared.unwrap_or_else(|| known.any(key)), value, &mut inner);
                let empty = value.is_null() || value.as_object().is_some_and(Map::is_empty);
                let node = set::node_of(leaf || empty || declared.is_none(), inner);
                below.extend(node.map(|node| (element::of_name(key), node)));
            }
        }
    }
    false
}

/// Collects items. Items that share an identity count as one leaf.
fn of_items(list: &List, items: &[Value], below: &mut Vec<(Str, Value)>) {
    let form = Form::of_shape(&list.item);
    let elements: Vec<Option<Str>> = items.iter().map(|item| element::of_item(list, item).ok()).collect();
    let mut times: HashMap<&Str, usize> = HashMap::with_capacity(items.len());
    for element in elements.iter().flatten() {
        *times.entry(element).or_default() += 1;
    }
    for (element, item) in elements.iter().zip(items) {
        let Some(element) = element else { continue };
        let mut inner = Vec::new();
        match times.get_mut(element) {
            Some(0) | None => continue,
            Some(1) => {
                collect(form, item, &mut inner);
            }
            Some(several) => *several = 0,
        }
        below.extend(set::node_of(true, inner).map(|node| (element.clone(), node)));
    }
}

/// Returns the set with every declared field as a member, also fields of which it names only parts. Pruning compares
/// sets in this form.
pub fn with_named_fields(set: &Map, form: Option<Form<'_>>) -> Map {
    let mut all = Vec::with_capacity(set.len());
    for (key, node) in set::children(set) {
        let named = |name| form.is_some_and(|form| form.declares(name));
        let member = set::is_member(node) || element::name(key).is_some_and(named);
        let below = match node {
            Value::Object(below) => with_named_fields(below, form.and_then(|form| form.below(key))),
            _ => Map::new(),
        };
        all.extend(set::node(member, below).map(|node| (Str::from(key), node)));
    }
    set::of_entries(all)
}

/// Adapts a set that was written under another schema. Where a value is atomic by now, elements below it are replaced
/// by the value itself.
pub fn reconcile(set: &mut Map, form: Form<'_>) {
    set.retain(|key, node| {
        let Some(form) = form.below(key) else { return true };
        let Value::Object(below) = node else { return true };
        if below.is_empty() {
            return true;
        }
        match form {
            Form::Struct { .. } | Form::Map(_) | Form::List(_) if form.atomic() => below.retain(|_, _| false),
            Form::Struct { .. } | Form::Map(_) | Form::List(_) => reconcile(below, form),
            Form::Scalar(_) | Form::Deduced | Form::Opaque => {}
        }
        true
    });
}
