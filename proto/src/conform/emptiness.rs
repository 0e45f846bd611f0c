//! Empty lists and maps: storage does not distinguish them from nil, but errors do.

use super::{holds_structs, is_empty, item_of, position};
use crate::schema::{Field, Presence, Shape, Type};
use crate::value::Value;

/// Replaces with `null` the empty lists and maps of fields that are always encoded, as storage does, which does not
/// distinguish empty from nil. A value that conforms to the type still does so afterwards.
///
/// Skips parts that are shared with `before`, for which this was done, and parts that have not changed since they were
/// conformed to the type and had nothing to replace then.
pub fn forget_empty(of: &Type, value: &mut Value, before: &Value) {
    forget(of, value, before, &|_| true);
}

/// The same as [`forget_empty`], but only where `before` has `null` at the same place. The remaining values differ from
/// `before` as a client sees it, and an error may show them.
pub fn forget_equal(of: &Type, value: &mut Value, before: &Value) {
    forget(of, value, before, &|before| before.is_some_and(Value::is_null));
}

/// Decides by the member of the earlier value whether an empty one is replaced. It gets `None` where the earlier value
/// lacks the object that holds the member.
type Decide<'a> = &'a dyn Fn(Option<&Value>) -> bool;

fn forget(of: &Type, value: &mut Value, before: &Value, is_due: Decide<'_>) {
    if value.is_same(before) {
        return;
    }
    let Value::Object(map) = value else { return };
    if map.is_conformed() {
        return;
    }
    let mut next = 0;
    for (key, member) in map.iter_mut() {
        let Some(at) = position(of, key, next) else { continue };
        next = at + 1;
        let field = &of.fields[at];
        let earlier = before.at(&[key]);
        if !is_forgotten(field, member) {
            forget_in(&field.shape, member, earlier, is_due);
        } else if is_due(before.as_object().map(|_| earlier)) {
            *member = Value::Null;
        }
    }
}

/// Returns whether a member is written as `null` because it is empty.
pub(super) fn is_forgotten(field: &Field, value: &Value) -> bool {
    field.presence == Presence::Always && matches!(field.shape, Shape::List(_) | Shape::Map(_)) && is_empty(value)
}

fn forget_in(shape: &Shape, value: &mut Value, before: &Value, is_due: Decide<'_>) {
    match (shape, value) {
        (Shape::Struct(of), value) => forget(of, value, before, is_due),
        (Shape::List(list), Value::Array(items)) if holds_structs(&list.item) => {
            for (index, item) in items.iter_mut().enumerate() {
                forget_in(&list.item, item, item_of(before, index), is_due);
            }
        }
        (Shape::Map(map), Value::Object(members)) if holds_structs(&map.value) => {
            members.iter_mut().for_each(|(key, member)| forget_in(&map.value, member, before.at(&[key]), is_due));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue;
    use crate::conform::conform;
    use crate::value;

    #[test]
    fn empty_lists_are_dropped_where_none_was_stored() {
        let role = catalogue::kind("rbac.authorization.k8s.io", "v1", "Role").unwrap();
        let rules = |rules: Value| {
            let mut value = value!({"kind": "Role", "apiVersion": "rbac.authorization.k8s.io/v1", "rules": rules});
            conform(&role.of, &mut value).unwrap();
            value
        };
        let (empty, nil) = (rules(value!([])), rules(Value::Null));
        let one = rules(value!([{"apiGroups": ["a"], "verbs": []}]));
        let left = |value: &Value, before: &Value| {
            let mut value = value.clone();
            forget_equal(&role.of, &mut value, before);
            value
        };
        assert_eq!(left(&empty, &nil), nil);
        assert_eq!((left(&empty, &one), left(&empty, &Value::Null)), (empty.clone(), empty.clone()));
        let verbs = |value: &Value| value.list_at(&["rules"])[0].at(&["verbs"]).clone();
        assert_eq!(verbs(&left(&one, &nil)), value!([]));
        let mut stored = one.clone();
        forget_empty(&role.of, &mut stored, &nil);
        assert_eq!((verbs(&stored), left(&one, &stored)), (Value::Null, stored));
        let mut stored = empty;
        forget_empty(&role.of, &mut stored, &one);
        assert_eq!(stored, nil);
    }
}
