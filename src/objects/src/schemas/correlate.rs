//! Pairs each part of a new value with the part of the old value that it replaces.

use std::collections::HashMap;

use flotilla_proto::json;
use flotilla_proto::structural::{ListType, Structural};
use flotilla_proto::value::Value;

/// A new value and the old value that it replaces, with their schema. The schema says how list items are paired.
#[derive(Debug, Clone, Copy)]
pub struct Pair<'a> {
    /// The schema of both.
    pub schema: &'a Structural,
    /// The value after the change.
    pub new: &'a Value,
    /// The value before the change.
    pub old: &'a Value,
}

/// The old items of a list, by their keys.
#[derive(Debug)]
pub struct OldItems<'a> {
    schema: &'a Structural,
    by_key: HashMap<Vec<u8>, &'a Value>,
}

impl<'a> Pair<'a> {
    /// Pairs a member of both values. Returns `None` if one of them or the schema does not have it.
    pub fn member(self, name: &str) -> Option<Self> {
        let (new, old) = (self.new.get(name)?, self.old.get(name)?);
        Some(Self { schema: self.schema.member(name)?, new, old })
    }

    /// Returns the old items of a list. Returns `None` unless the list has the type `map` and states keys.
    pub fn items(self) -> Option<OldItems<'a>> {
        let (Value::Array(_), Value::Array(old)) = (self.new, self.old) else { return None };
        if self.schema.list_type != Some(ListType::Map) || self.schema.list_map_keys().is_empty() {
            return None;
        }
        let mut by_key = HashMap::with_capacity(old.len());
        for item in old {
            if let Some(key) = key(self.schema, item) {
                by_key.entry(key).or_insert(item);
            }
        }
        Some(OldItems { schema: self.schema, by_key })
    }

    /// Returns whether nothing changed. Members that the schema does not know count as changed. In lists with keys, an
    /// item that only moved counts as unchanged; in other lists, it counts as changed.
    pub fn is_equal(self) -> bool {
        match (self.new, self.old) {
            (Value::Object(new), Value::Object(old)) => {
                new.len() == old.len() && new.keys().all(|name| self.member(name).is_some_and(Self::is_equal))
            }
            (Value::Array(new), Value::Array(old)) if new.len() == old.len() => match self.items() {
                Some(items) => new.iter().all(|item| items.pair(item).is_some_and(Self::is_equal)),
                None => new == old,
            },
            (Value::Array(_), Value::Array(_)) => false,
            (new, old) => new == old,
        }
    }
}

impl<'a> OldItems<'a> {
    /// Pairs a new item with the old item that has the same keys. Returns `None` if no old item has them.
    pub fn pair(&self, item: &'a Value) -> Option<Pair<'a>> {
        let old = self.by_key.get(&key(self.schema, item)?)?;
        Some(Pair { schema: self.schema.items.as_deref()?, new: item, old })
    }
}

/// Encodes the keys of an item. Returns `None` if a key is missing or is no scalar.
fn key(schema: &Structural, item: &Value) -> Option<Vec<u8>> {
    let map = item.as_object()?;
    let mut spelled = Vec::new();
    for name in schema.list_map_keys() {
        match map.get(name)? {
            Value::Null | Value::Array(_) | Value::Object(_) => return None,
            Value::Float(number) => spelled.extend_from_slice(format!("float {}", number.get()).as_bytes()),
            scalar => json::write(scalar, &mut spelled),
        }
        spelled.push(0);
    }
    Some(spelled)
}
