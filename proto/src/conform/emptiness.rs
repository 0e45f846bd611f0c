//! Empty lists and maps, which storage does not distinguish from nil.

use super::{holds_structs, is_empty, item_of, position};
use crate::schema::{Field, Presence, Shape, Type};
use crate::value::Value;

/// Replaces empty lists and maps that are always encoded by `null`, as storage does, which does not distinguish empty
/// from nil. A value that conforms to the type still does so afterwards.
///
/// Skips parts that are shared with `before`, for which this was done, and parts that have not changed since they were
/// conformed to the type and had nothing to replace then.
pub fn forget_empty(of: &Type, value: &mut Value, before: &Value) {
    if value.is_same(before) {
        return;
    }
    let Value::Object(map) = value else { return };
    if map.is_settled() {
        return;
    }
    let mut next = 0;
    for (key, member) in map.iter_mut() {
        let Some(at) = position(of, key, next) else { continue };
        next = at + 1;
        let field = &of.fields[at];
        if is_forgotten(field, member) {
            *member = Value::Null;
        } else {
            forget_empty_in(&field.shape, member, before.at(&[key]));
        }
    }
}

/// Returns whether a member is written as `null` because it is empty.
pub(super) fn is_forgotten(field: &Field, value: &Value) -> bool {
    field.presence == Presence::Always && matches!(field.shape, Shape::List(_) | Shape::Map(_)) && is_empty(value)
}

fn forget_empty_in(shape: &Shape, value: &mut Value, before: &Value) {
    match (shape, value) {
        (Shape::Struct(of), value) => forget_empty(of, value, before),
        (Shape::List(list), Value::Array(items)) if holds_structs(&list.item) => {
            for (index, item) in items.iter_mut().enumerate() {
                forget_empty_in(&list.item, item, item_of(before, index));
            }
        }
        (Shape::Map(map), Value::Object(members)) if holds_structs(&map.value) => {
            members.iter_mut().for_each(|(key, member)| forget_empty_in(&map.value, member, before.at(&[key])));
        }
        _ => {}
    }
}
