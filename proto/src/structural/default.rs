//! Setting defaults of absent members.

use super::Structural;
use crate::limits::DEFAULTS_BYTES_MAX;
use crate::value::{Map, Value};

/// Sets the defaults of the schema in objects that exist, and in objects that defaults create. A default replaces a
/// `null` that is not a valid value. Objects in which nothing is absent are not changed.
///
/// # Errors
/// Fails when the defaults would add too much. The object then has only some of its defaults.
pub fn default(schema: &Structural, value: &mut Value) -> Result<(), Overgrown> {
    match holds(schema, value, &lacks) {
        true => Filling { room: DEFAULTS_BYTES_MAX }.fill(schema, value),
        false => Ok(()),
    }
}

/// Drops the members that are `null` where that is not a valid value and there is no default; items of lists stay. This
/// is part of decoding, so that clients may send `null` for absence. The result of an apply keeps such members until it
/// is read from storage, or converted to another version. Objects without such members are not changed.
pub fn drop_nulls(schema: &Structural, value: &mut Value) {
    if holds(schema, value, &has_nulls) {
        drop_below(schema, value);
    }
}

/// Returns whether a value is `null` where that is not a valid value.
fn is_absent(schema: &Structural, value: &Value) -> bool {
    value.is_null() && !schema.nullable
}

/// Returns whether a predicate holds for a value or a part of it. It must be false for scalars.
fn holds(schema: &Structural, value: &Value, of: &dyn Fn(&Structural, &Value) -> bool) -> bool {
    let below = |schema: Option<&Structural>, part: &Value| schema.is_some_and(|schema| holds(schema, part, of));
    let has_parts = |value: &Value| matches!(value, Value::Object(_) | Value::Array(_));
    of(schema, value)
        || match value {
            Value::Object(map) => map.iter().any(|(name, part)| has_parts(part) && below(schema.member(name), part)),
            Value::Array(items) => items.iter().any(|part| below(schema.items.as_deref(), part)),
            _ => false,
        }
}

/// Returns whether a value lacks a member or item that has a default.
fn lacks(schema: &Structural, value: &Value) -> bool {
    let is_set = |member: Option<&Structural>, part: &Value| {
        member.is_some_and(|member| member.default_value().is_some() && is_absent(member, part))
    };
    match value {
        Value::Object(map) => {
            schema.defaulted().any(|(name, _)| !map.contains_key(name))
                || map.iter().any(|(name, part)| is_set(schema.member(name), part))
        }
        Value::Array(items) => items.iter().any(|part| is_set(schema.items.as_deref(), part)),
        _ => false,
    }
}

/// Returns whether a value has a member that [`drop_nulls`] drops.
fn has_nulls(schema: &Structural, value: &Value) -> bool {
    let is_dropped = |(name, part): (&str, &Value)| {
        part.is_null()
            && schema.member(name).is_some_and(|member| member.default_value().is_none() && is_absent(member, part))
    };
    value.as_object().is_some_and(|map| map.iter().any(is_dropped))
}

fn drop_below(schema: &Structural, value: &mut Value) {
    match value {
        Value::Object(map) => map.retain(|name, part| {
            let Some(member) = schema.member(name) else { return true };
            let keep = member.default_value().is_some() || !is_absent(member, part);
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

/// Defaults would make an object larger than an object may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the defaults of its schema add more than {DEFAULTS_BYTES_MAX} bytes to the object")]
pub struct Overgrown;

/// Fills in defaults, and counts their bytes before they are made.
struct Filling {
    /// The number of bytes that may still be added.
    room: usize,
}

impl Filling {
    fn fill(&mut self, schema: &Structural, value: &mut Value) -> Result<(), Overgrown> {
        match value {
            Value::Object(map) => {
                self.set_absent(schema, map)?;
                for (name, value) in map.iter_mut() {
                    let Some(member) = schema.member(name) else { continue };
                    self.set(member, value)?;
                    self.fill(member, value)?;
                }
            }
            Value::Array(list) => {
                let Some(of) = schema.items.as_deref() else { return Ok(()) };
                for item in list {
                    self.set(of, item)?;
                    self.fill(of, item)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn set_absent(&mut self, schema: &Structural, map: &mut Map) -> Result<(), Overgrown> {
        for (name, property) in schema.defaulted() {
            if let Some(default) = property.default_value()
                && !map.contains_key(name)
            {
                self.take(name.len() + property.extra().default_bytes)?;
                map.insert(name.clone(), default.clone());
            }
        }
        Ok(())
    }

    /// Replaces a value that exists, but is `null`.
    fn set(&mut self, schema: &Structural, value: &mut Value) -> Result<(), Overgrown> {
        if let Some(default) = schema.default_value()
            && is_absent(schema, value)
        {
            self.take(schema.extra().default_bytes)?;
            *value = default.clone();
        }
        Ok(())
    }

    fn take(&mut self, bytes: usize) -> Result<(), Overgrown> {
        self.room = self.room.checked_sub(bytes).ok_or(Overgrown)?;
        Ok(())
    }
}
