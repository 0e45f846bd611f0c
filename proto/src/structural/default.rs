//! Setting what is absent.

use super::Structural;
use crate::value::{Map, Value};

/// Sets the defaults of the schema in objects that are there, and in what defaults have set. A `null` where it is no
/// value gives way to a default. Objects in which nothing is absent are not touched.
pub fn default(schema: &Structural, value: &mut Value) {
    if holds(schema, value, &lacks) {
        fill(schema, value);
    }
}

/// Drops the members that are `null` where that is no value and there is no default; items of lists stay. That is part
/// of decoding, so that clients may send `null` for absence; the outcome of an apply keeps it. Objects without such
/// members are not touched.
pub fn drop_nulls(schema: &Structural, value: &mut Value) {
    if holds(schema, value, &has_nulls) {
        drop_below(schema, value);
    }
}

/// Whether a value is `null` where that is no value.
fn is_absent(schema: &Structural, value: &Value) -> bool {
    value.is_null() && !schema.nullable
}

/// Whether something holds of a value or of a part of it.
fn holds(schema: &Structural, value: &Value, of: &dyn Fn(&Structural, &Value) -> bool) -> bool {
    let below = |schema: Option<&Structural>, part: &Value| schema.is_some_and(|schema| holds(schema, part, of));
    of(schema, value)
        || match value {
            Value::Object(map) => map.iter().any(|(name, part)| below(schema.member(name), part)),
            Value::Array(items) => items.iter().any(|part| below(schema.items.as_deref(), part)),
            _ => false,
        }
}

/// Whether a value has a member or item to be set.
fn lacks(schema: &Structural, value: &Value) -> bool {
    let is_set = |member: Option<&Structural>, part: &Value| {
        member.is_some_and(|member| member.default.is_some() && is_absent(member, part))
    };
    match value {
        Value::Object(map) => {
            schema.properties.iter().any(|(name, property)| property.default.is_some() && !map.contains_key(name))
                || map.iter().any(|(name, part)| is_set(schema.member(name), part))
        }
        Value::Array(items) => items.iter().any(|part| is_set(schema.items.as_deref(), part)),
        _ => false,
    }
}

/// Whether a member of a value is to be dropped.
fn has_nulls(schema: &Structural, value: &Value) -> bool {
    let is_dropped = |(name, part): (&str, &Value)| {
        schema.member(name).is_some_and(|member| member.default.is_none() && is_absent(member, part))
    };
    value.as_object().is_some_and(|map| map.iter().any(is_dropped))
}

fn drop_below(schema: &Structural, value: &mut Value) {
    match value {
        Value::Object(map) => map.retain(|name, part| {
            let Some(member) = schema.member(name) else { return true };
            let keep = member.default.is_some() || !is_absent(member, part);
            if keep {
                drop_below(member, part);
            }
            keep
        }),
        Value::Array(items) => {
            let Some(of) = schema.items.as_deref() else { return };
            items.iter_mut().for_each(|item| drop_below(of, item));
        }
        _ => {}
    }
}

fn fill(schema: &Structural, value: &mut Value) {
    match value {
        Value::Object(map) => {
            set_absent(schema, map);
            for (name, value) in map.iter_mut() {
                let Some(member) = schema.member(name) else { continue };
                set(member, value);
                fill(member, value);
            }
        }
        Value::Array(list) => {
            let Some(of) = schema.items.as_deref() else { return };
            for item in list {
                set(of, item);
                fill(of, item);
            }
        }
        _ => {}
    }
}

fn set_absent(schema: &Structural, map: &mut Map) {
    for (name, property) in &schema.properties {
        if let Some(default) = &property.default
            && !map.contains_key(name)
        {
            map.insert(name.clone(), default.clone());
        }
    }
}

/// Sets a value that is there, but `null`.
fn set(schema: &Structural, value: &mut Value) {
    if let Some(default) = &schema.default
        && is_absent(schema, value)
    {
        *value = default.clone();
    }
}
