//! Empty lists and maps: storage does not distinguish them from nil, but errors do.

use super::{holds_structs, is_empty, item_of};
use crate::catalogue;
use crate::schema::{Field, Presence, Shape, Type};
use crate::value::Value;

/// Replaces with `null` the empty lists and maps of fields that are always encoded, as storage does, which does not
/// distinguish empty from nil. Removes nested schemas that became `null`. A value that conforms to the type still does
/// so afterwards.
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
    let mut dropped = false;
    for (key, member) in map.iter_mut() {
        let Some(at) = of.position(key, next) else { continue };
        next = at + 1;
        let field = &of.fields[at];
        let earlier = before.at(&[key]);
        if !is_forgotten(field, member) {
            forget_in(&field.shape, member, earlier, is_due);
        } else if is_due(before.as_object().map(|_| earlier)) {
            *member = Value::Null;
            dropped |= field.presence != Presence::Always;
        }
    }
    if dropped {
        let is_optional = |key: &str| of.field(key).is_some_and(|(_, field)| field.presence == Presence::Pointer);
        map.retain(|key, member| !member.is_null() || !is_optional(key));
    }
}

/// Returns whether storage does not keep a member: a list or map that is written as `null` because it is empty, or
/// neither of the things that the place of a schema can hold.
pub(super) fn is_forgotten(field: &Field, value: &Value) -> bool {
    match &field.shape {
        Shape::List(_) | Shape::Map(_) => field.presence == Presence::Always && is_empty(value),
        Shape::Any(kind) => kind.holds_schemas() && value.is_null(),
        _ => false,
    }
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
        (Shape::Any(kind), value) if kind.holds_schemas() => {
            let Some(of) = catalogue::json_schema() else { return };
            match value {
                Value::Array(items) => {
                    items.iter_mut().enumerate().for_each(|(at, item)| forget(of, item, item_of(before, at), is_due));
                }
                value => forget(of, value, before, is_due),
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue;
    use crate::conform::conform;
    use crate::json;
    use crate::limits::JSON_DEPTH_MAX;
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

    #[test]
    fn schemas_in_schemas_are_conformed_and_other_values_dropped() {
        let schema = catalogue::json_schema().unwrap();
        let conformed = |value: Value| {
            let mut value = value;
            conform(schema, &mut value).map(|unknown| (unknown, value)).map_err(|error| error.to_string())
        };
        let (unknown, inner) = conformed(value!({"items": {"type": "string", "zz": 1, "required": []}})).unwrap();
        assert_eq!((unknown, inner), (Vec::new(), value!({"items": {"type": "string"}})));
        let wrong = conformed(value!({"additionalProperties": {"x-kubernetes-validations": [{"rule": true}]}}));
        let path = "JSONSchemaProps.additionalProperties.x-kubernetes-validations.rule";
        assert_eq!(wrong, Err(format!("json: cannot unmarshal bool into Go struct field {path} of type string")));
        let (_, mut neither) = conformed(value!({"items": {"items": 1}})).unwrap();
        assert_eq!(neither, value!({"items": {"items": null}}));
        forget_empty(schema, &mut neither, &Value::Null);
        assert_eq!(neither, value!({"items": {}}));
    }

    #[test]
    fn errors_of_nested_schemas_state_numbers_as_they_were_sent() {
        let schema = catalogue::json_schema().unwrap();
        let mut stated = json::parse_tracking(br#"{"items":{"maxLength":1e2}}"#).unwrap().value;
        let why = conform(schema, &mut stated).unwrap_err().to_string();
        assert!(why.starts_with("json: cannot unmarshal number 1e2 into"), "{why}");
    }

    #[test]
    fn paths_of_unknown_fields_in_nested_schemas_are_not_written() {
        // Each of the paths would take a megabyte.
        let schema = catalogue::json_schema().unwrap();
        let mut members = value!({});
        (0..20_000).for_each(|at| members.set_at(&[&format!("k{at}")], value!({"items": {"z": 1}})));
        let mut value = value!({});
        value.set_at(&["properties", &"x".repeat(1_000_000), "properties"], members);
        assert_eq!(conform(schema, &mut value), Ok(Vec::new()));
    }

    #[test]
    fn schemas_that_nest_too_deep_are_left_to_be_refused() {
        let schema = catalogue::json_schema().unwrap();
        let has_hole = |levels: usize| {
            let text = format!("{}1{}", "{\"items\":".repeat(levels) + "{\"minLength\":", "}".repeat(levels + 1));
            let mut value = json::parse_tracking(text.as_bytes()).unwrap().value;
            assert_eq!(conform(schema, &mut value), Ok(Vec::new()));
            value.hole().is_some()
        };
        assert_eq!((has_hole(JSON_DEPTH_MAX - 1), has_hole(JSON_DEPTH_MAX)), (false, true));
    }
}
