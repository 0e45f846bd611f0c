//! Equal schemas in one place: a definition states the same schema for very many fields, such as a string without
//! bounds, and its versions state nearly the same fields.

use std::borrow::Borrow;
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

use super::Structural;
use crate::value::Value;

/// A schema that all fields with equal schemas share. One [`SchemaReader`](super::SchemaReader) makes equal
/// schemas only once, so two of them are equal exactly if they are one allocation, and comparing them does not look at
/// the schemas below.
#[derive(Debug, Clone)]
pub struct Shared(Arc<Structural>);

impl Deref for Shared {
    type Target = Structural;

    fn deref(&self) -> &Structural {
        &self.0
    }
}

impl PartialEq for Shared {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Hash for Shared {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.0).hash(state);
    }
}

/// The schemas that were made so far.
#[derive(Debug, Default)]
pub(super) struct Pool(HashSet<Pooled>);

/// A shared schema that is compared by its content.
#[derive(Debug)]
struct Pooled(Shared);

impl Pool {
    /// Returns the shared schema that is equal to this one.
    pub(super) fn share(&mut self, schema: Structural) -> Shared {
        if let Some(Pooled(known)) = self.0.get(&schema) {
            return known.clone();
        }
        let shared = Shared(Arc::new(schema));
        self.0.insert(Pooled(shared.clone()));
        shared
    }
}

impl Borrow<Structural> for Pooled {
    fn borrow(&self) -> &Structural {
        &self.0
    }
}

impl Hash for Pooled {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Structural::hash(&self.0, state);
    }
}

impl PartialEq for Pooled {
    fn eq(&self, other: &Self) -> bool {
        *self.0.0 == *other.0.0
    }
}

impl Eq for Pooled {}

/// Numbers in JSON are never NaN.
impl Eq for Structural {}

/// Hashes a value. Equal values have equal hashes, whatever the order of their members.
pub(super) fn hash_value<H: Hasher>(value: &Value, state: &mut H) {
    std::mem::discriminant(value).hash(state);
    match value {
        Value::Null | Value::Hole(_) => {}
        Value::Bool(truth) => truth.hash(state),
        Value::Int(number) => number.hash(state),
        Value::Float(number) => (number.get() + 0.0).to_bits().hash(state),
        Value::Str(text) => text.hash(state),
        Value::Array(items) => items.iter().for_each(|item| hash_value(item, state)),
        Value::Object(members) => {
            let member = |(key, value): (&str, &Value)| {
                let mut own = DefaultHasher::new();
                key.hash(&mut own);
                hash_value(value, &mut own);
                own.finish()
            };
            members.iter().map(member).fold(0, u64::wrapping_add).hash(state);
        }
    }
}
