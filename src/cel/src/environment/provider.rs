//! Object types with declared fields.

use crate::error::Outcome;
use crate::types::Type;
use crate::value::Value;

/// A source of object types with declared fields.
pub trait Provider: std::fmt::Debug + Send + Sync {
    /// Returns whether there is an object type of this name.
    fn has_object(&self, name: &str) -> bool;

    /// Returns the type of a field of an object type, by the field's name in expressions.
    fn field(&self, object: &str, field: &str) -> Option<Type>;

    /// Converts a map of fields to an object that an expression constructs. By default returns the map itself.
    fn make<'a>(&self, _object: &str, fields: Value<'a>) -> Outcome<Value<'a>> {
        Ok(fields)
    }
}

/// A provider without object types.
#[derive(Debug)]
pub struct NoObjects;

impl Provider for NoObjects {
    fn has_object(&self, _: &str) -> bool {
        false
    }

    fn field(&self, _: &str, _: &str) -> Option<Type> {
        None
    }
}
