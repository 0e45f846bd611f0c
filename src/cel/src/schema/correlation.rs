//! Correlation of an object with the stored one: which old value belongs to a new one, and whether both are equal.

use std::cell::OnceCell;
use std::collections::HashMap;

use flotilla_proto::structural::{ListType, Structural, ValueType};
use flotilla_proto::value::{Str, Value};

/// Old items of a list of type `map`, by their keys.
#[derive(Debug)]
pub struct OldItems<'a> {
    keys: &'a [Str],
    items: HashMap<String, &'a Value>,
}

impl<'a> OldItems<'a> {
    /// Returns the items of a list by the keys of its schema. There are none if the schema has no keys.
    pub fn of(schema: &'a Structural, list: Option<&'a Value>) -> Self {
        let keys: &[Str] = if is_map(schema) { schema.list_map_keys() } else { &[] };
        let mut items = HashMap::new();
        if !keys.is_empty() {
            for item in list.and_then(Value::as_array).unwrap_or_default() {
                if let Some(key) = identity(item, keys) {
                    items.entry(key).or_insert(item);
                }
            }
        }
        Self { keys, items }
    }

    /// Returns the old item with the keys of a new one. `None` if there is none.
    pub fn get(&self, item: &Value) -> Option<&'a Value> {
        if self.items.is_empty() {
            return None;
        }
        self.items.get(&identity(item, self.keys)?).copied()
    }
}

fn is_map(schema: &Structural) -> bool {
    schema.of == Some(ValueType::Array) && schema.list_type == Some(ListType::Map)
}

/// Returns the identity of an item: the values of its keys. `None` if one is missing or is a list or object.
fn identity(item: &Value, keys: &[Str]) -> Option<String> {
    let mut identity = String::new();
    for key in keys {
        match item.get(key)? {
            Value::Bool(truth) => identity.push_str(if *truth { "\0t" } else { "\0f" }),
            Value::Int(number) => identity.push_str(&format!("\0i{number}")),
            Value::Float(number) => identity.push_str(&format!("\0d{:?}", number.get())),
            Value::Str(text) => identity.push_str(&format!("\0s{text:?}")),
            Value::Null | Value::Hole(_) | Value::Array(_) | Value::Object(_) => return None,
        }
    }
    Some(identity)
}

/// A position in an object, with the correlated one in the stored object.
#[derive(Debug)]
pub struct Correlated<'a> {
    new: &'a Value,
    old: &'a Value,
    schema: &'a Structural,
    items: OnceCell<OldItems<'a>>,
    is_same: OnceCell<bool>,
}

impl<'a> Correlated<'a> {
    /// Returns a position with its new and its old value.
    pub fn new(new: &'a Value, old: &'a Value, schema: &'a Structural) -> Self {
        Self { new, old, schema, items: OnceCell::new(), is_same: OnceCell::new() }
    }

    /// Returns the position of a member. `None` if the old object does not have it, or the schema does not describe it.
    pub fn member(&self, name: &str) -> Option<Self> {
        let (new, old) = (self.new.get(name)?, self.old.get(name)?);
        Some(Self::new(new, old, self.schema.member(name)?))
    }

    /// Returns the position of an item. `None` if no old item correlates with it.
    pub fn item(&self, index: usize) -> Option<Self> {
        let new = self.new.as_array()?.get(index)?;
        self.old.as_array()?;
        let items = self.items.get_or_init(|| OldItems::of(self.schema, Some(self.old)));
        let old = items.get(new)?;
        Some(Self::new(new, old, self.schema.items.as_deref()?))
    }

    /// Returns whether the value at this position is unchanged.
    pub fn is_unchanged(&self) -> bool {
        *self.is_same.get_or_init(|| match (self.new, self.old) {
            (Value::Array(new), Value::Array(old)) => {
                let is_map = self.schema.list_type == Some(ListType::Map);
                let is_same = |index| self.item(index).is_some_and(|item| item.is_unchanged());
                new.len() == old.len() && if is_map { (0..new.len()).all(is_same) } else { new == old }
            }
            (Value::Object(new), Value::Object(old)) => {
                // A member that the schema does not name counts as changed.
                let is_same = |name| self.member(name).is_some_and(|member| member.is_unchanged());
                new.len() == old.len() && new.keys().all(is_same)
            }
            (new, old) => new == old,
        })
    }
}

#[cfg(test)]
mod tests {
    use flotilla_proto::value;

    use super::*;

    #[test]
    fn items_correlate_by_their_keys() {
        let schema = Structural::of(&value!({"type": "array", "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["k"], "items": {"type": "object", "properties": {
                "k": {"type": "string"}, "v": {"type": "integer"}}}}));
        let old = value!([{"k": "a", "v": 1}, {"k": "b", "v": 2}]);
        let new = value!([{"k": "b", "v": 2}, {"k": "a", "v": 3}]);
        let items = OldItems::of(&schema, Some(&old));
        assert_eq!(items.get(&new.as_array().unwrap()[0]), Some(&old.as_array().unwrap()[1]));
        assert!(items.get(&value!({"v": 1})).is_none() && items.get(&value!({"k": "c"})).is_none());
        let correlated = Correlated::new(&new, &old, &schema);
        assert!(correlated.item(0).unwrap().is_unchanged());
        assert!(!correlated.item(1).unwrap().is_unchanged() && !correlated.is_unchanged());
    }

    #[test]
    fn members_without_a_schema_count_as_changed() {
        let schema = Structural::of(&value!({"type": "object", "properties": {"a": {"type": "integer"}}}));
        let same = |object: &Value| Correlated::new(object, object, &schema).is_unchanged();
        assert!(same(&value!({"a": 1})));
        assert!(!same(&value!({"a": 1, "b": 2})));
    }
}
