//! Which old value a new one comes of, and whether both are equal.

use std::collections::HashMap;

use flotilla_proto::json;
use flotilla_proto::structural::{ListType, Structural};
use flotilla_proto::value::Value;

/// A value and what it was, with the schema that tells its parts apart.
#[derive(Debug, Clone, Copy)]
pub struct Pair<'a> {
    /// The schema of both.
    pub schema: &'a Structural,
    /// The value.
    pub new: &'a Value,
    /// What it was.
    pub old: &'a Value,
}

/// The old items of a list by their keys; none for lists whose items have no keys.
#[derive(Debug)]
pub struct OldItems<'a> {
    schema: &'a Structural,
    by_key: HashMap<Vec<u8>, &'a Value>,
}

impl<'a> Pair<'a> {
    /// A member that is in both.
    pub fn member(self, name: &str) -> Option<Self> {
        let (new, old) = (self.new.get(name)?, self.old.get(name)?);
        Some(Self { schema: self.schema.member(name)?, new, old })
    }

    /// The old items of a list with keys.
    pub fn items(self) -> Option<OldItems<'a>> {
        let (Value::Array(_), Value::Array(old)) = (self.new, self.old) else { return None };
        if self.schema.list_type != Some(ListType::Map) || self.schema.list_map_keys.is_empty() {
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

    /// Whether nothing changed. Members that the schema does not know, and items without keys that moved, count as
    /// changed; items with keys do not when they only moved.
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
    /// An item and what it was, if there was one with its keys.
    pub fn pair(&self, item: &'a Value) -> Option<Pair<'a>> {
        let old = self.by_key.get(&key(self.schema, item)?)?;
        Some(Pair { schema: self.schema.items.as_deref()?, new: item, old })
    }
}

/// The keys of an item; `None` unless all are there and scalars.
fn key(schema: &Structural, item: &Value) -> Option<Vec<u8>> {
    let map = item.as_object()?;
    let mut spelled = Vec::new();
    for name in &schema.list_map_keys {
        match map.get(name)? {
            Value::Null | Value::Array(_) | Value::Object(_) => return None,
            Value::Float(number) => spelled.extend_from_slice(format!("float {}", number.get()).as_bytes()),
            scalar => json::write(scalar, &mut spelled),
        }
        spelled.push(0);
    }
    Some(spelled)
}
