//! Setting what is absent.

use super::Structural;
use crate::value::{Map, Value};

/// Sets the defaults of the schema in objects that are there, and in what defaults have set. Where `null` is no value
/// it is taken for absence: it gives way to the default, or is dropped where there is none; items of lists without a
/// default stay. Objects in which nothing is absent are not touched.
pub fn default(schema: &Structural, value: &mut Value) {
    if lacks(schema, value) {
        drop_nulls(schema, value);
        fill(schema, value);
    }
}

/// Whether a value is `null` where that is no value.
fn is_absent(schema: &Structural, value: &Value) -> bool {
    value.is_null() && !schema.nullable
}

/// Whether anything is to be set or dropped.
fn lacks(schema: &Structural, value: &Value) -> bool {
    match value {
        Value::Object(map) => {
            schema.properties.iter().any(|(name, property)| property.default.is_some() && !map.contains_key(name))
                || map.iter().any(|(name, value)| {
                    schema.member(name).is_some_and(|member| is_absent(member, value) || lacks(member, value))
                })
        }
        Value::Array(list) => schema
            .items
            .as_deref()
            .is_some_and(|of| list.iter().any(|item| is_absent(of, item) && of.default.is_some() || lacks(of, item))),
        _ => false,
    }
}

/// Drops `null` where that is no value and there is no default to take its place; items of lists stay.
pub fn drop_nulls(schema: &Structural, value: &mut Value) {
    match value {
        Value::Object(map) => map.retain(|name, value| {
            let Some(member) = schema.member(name) else { return true };
            let keep = !is_absent(member, value) || member.default.is_some();
            if keep {
                drop_nulls(member, value);
            }
            keep
        }),
        Value::Array(list) => {
            let Some(of) = schema.items.as_deref() else { return };
            list.iter_mut().for_each(|item| drop_nulls(of, item));
        }
        _ => {}
    }
}

/// As [`default`], but `null` is not dropped where there is no default.
pub fn fill(schema: &Structural, value: &mut Value) {
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
