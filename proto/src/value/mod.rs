//! The tree that represents an object while it is read, changed and checked.
//!
//! Strings of up to 24 bytes are stored inline. A [`Map`] keeps its entries in order of insertion while it is small,
//! which is the order of the schema once an object was conformed. Large maps (data, labels) are sorted.

mod map;
mod members;
mod number;
mod source;

pub use compact_str::CompactString as Str;
pub use map::Map;
pub use number::{Float, Hole};
pub use source::{ObjectText, of_written, read};

/// A JSON value.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Value {
    /// `null`.
    #[default]
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number without fraction or exponent that fits 64 bits.
    Int(i64),
    /// Any other number.
    Float(Float),
    /// A string.
    Str(Str),
    /// A list.
    Array(Vec<Value>),
    /// An object.
    Object(Map),
    /// A part of a text that was not kept. Only parsers of bodies make holes, and decoding refuses values that have
    /// one.
    Hole(Hole),
}

static NULL: Value = Value::Null;

impl Value {
    /// Returns an empty object.
    pub const fn object() -> Self {
        Self::Object(Map::new())
    }

    /// Returns the member `key` of an object. Returns `None` when it is absent or this is not an object.
    pub fn get(&self, key: &str) -> Option<&Value> {
        match self {
            Self::Object(map) => map.get(key),
            _ => None,
        }
    }

    /// The same as [`Value::get`], for a change.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Value> {
        match self {
            Self::Object(map) => map.get_mut(key),
            _ => None,
        }
    }

    /// Follows keys through nested objects. Returns [`Value::Null`] where the path ends early.
    pub fn at(&self, path: &[&str]) -> &Value {
        path.iter().try_fold(self, |value, key| value.get(key)).unwrap_or(&NULL)
    }

    /// Returns the string at a path; the empty string when there is none.
    pub fn str_at(&self, path: &[&str]) -> &str {
        self.at(path).as_str().unwrap_or("")
    }

    /// Returns the list at a path; an empty one when there is none.
    pub fn list_at(&self, path: &[&str]) -> &[Value] {
        self.at(path).as_array().unwrap_or(&[])
    }

    /// Returns the object at a path. Returns `None` when there is none.
    pub fn map_at(&self, path: &[&str]) -> Option<&Map> {
        self.at(path).as_object()
    }

    /// Returns the integer at a path. Returns `None` when there is none.
    pub fn int_at(&self, path: &[&str]) -> Option<i64> {
        self.at(path).as_int()
    }

    /// Returns whether there is a boolean at a path and it is true.
    pub fn is_true_at(&self, path: &[&str]) -> bool {
        matches!(self.at(path), Self::Bool(true))
    }

    /// Sets the member at a path, and makes the objects on the way. Values of other types on the way are replaced.
    pub fn set_at(&mut self, path: &[&str], value: impl Into<Value>) {
        let mut place = self;
        for key in path {
            if !matches!(place, Self::Object(_)) {
                *place = Self::object();
            }
            let Self::Object(map) = place else { return };
            place = map.entry(key);
        }
        *place = value.into();
    }

    /// Removes the member at a path, and returns it.
    pub fn remove_at(&mut self, path: &[&str]) -> Option<Value> {
        let (last, parents) = path.split_last()?;
        parents.iter().try_fold(self, |value, key| value.get_mut(key))?.as_object_mut()?.remove(last)
    }

    /// Returns the string. Returns `None` if this is not a string.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::Str(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the integer. Returns `None` if this is not an integer.
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Self::Int(number) => Some(*number),
            _ => None,
        }
    }

    /// Returns the boolean. Returns `None` if this is not a boolean.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(flag) => Some(*flag),
            _ => None,
        }
    }

    /// Returns the list. Returns `None` if this is not a list.
    pub fn as_array(&self) -> Option<&[Value]> {
        match self {
            Self::Array(items) => Some(items),
            _ => None,
        }
    }

    /// Returns the list for a change. Returns `None` if this is not a list.
    pub fn as_array_mut(&mut self) -> Option<&mut Vec<Value>> {
        match self {
            Self::Array(items) => Some(items),
            _ => None,
        }
    }

    /// Returns the object. Returns `None` if this is not an object.
    pub fn as_object(&self) -> Option<&Map> {
        match self {
            Self::Object(map) => Some(map),
            _ => None,
        }
    }

    /// Returns the object for a change. Returns `None` if this is not an object.
    pub fn as_object_mut(&mut self) -> Option<&mut Map> {
        match self {
            Self::Object(map) => Some(map),
            _ => None,
        }
    }

    /// Replaces the literals in this value by numbers. Values without literals are not changed, and still share their
    /// maps.
    pub fn resolve_literals(&mut self) {
        if self.has_literals() {
            self.resolve_each();
        }
    }

    fn has_literals(&self) -> bool {
        match self {
            Self::Hole(Hole::Literal(_)) => true,
            Self::Array(items) => items.iter().any(Self::has_literals),
            Self::Object(map) => map.values().any(Self::has_literals),
            _ => false,
        }
    }

    fn resolve_each(&mut self) {
        match self {
            Self::Hole(Hole::Literal(text)) => {
                *self = text.parse().ok().and_then(Float::new).map_or(Self::Null, Self::Float);
            }
            Self::Array(items) => items.iter_mut().for_each(Self::resolve_each),
            Self::Object(map) => map.iter_mut().for_each(|(_, value)| value.resolve_each()),
            _ => {}
        }
    }

    /// Returns the first hole in this value that cannot become a number. Returns `None` when everything was kept.
    pub fn hole(&self) -> Option<&Hole> {
        match self {
            Self::Hole(Hole::Literal(_)) => None,
            Self::Hole(hole) => Some(hole),
            Self::Array(items) => items.iter().find_map(Self::hole),
            Self::Object(map) => map.values().find_map(Self::hole),
            _ => None,
        }
    }

    /// Sorts the members of every object in this value by key.
    pub fn sort_members(&mut self) {
        match self {
            Self::Object(map) => {
                map.sort();
                map.iter_mut().for_each(|(_, value)| value.sort_members());
            }
            Self::Array(items) => items.iter_mut().for_each(Self::sort_members),
            _ => {}
        }
    }

    /// Returns whether this is `null`.
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// Returns whether both are known to be equal without a comparison, because they share their content: see
    /// [`Map::is_same`]. Only objects share content.
    pub fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Object(a), Self::Object(b)) => a.is_same(b),
            _ => false,
        }
    }

    /// Returns the name of this kind of value in the errors of Go's decoder.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "bool",
            Self::Int(_) | Self::Float(_) | Self::Hole(Hole::Number(_) | Hole::Literal(_)) => "number",
            Self::Str(_) => "string",
            Self::Array(_) => "array",
            Self::Object(_) | Self::Hole(Hole::Deep) => "object",
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Str(Str::from(text))
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Str(Str::from(text))
    }
}

impl From<Str> for Value {
    fn from(text: Str) -> Self {
        Self::Str(text)
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Int(number)
    }
}

impl From<i32> for Value {
    fn from(number: i32) -> Self {
        Self::Int(number.into())
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Self {
        Self::Bool(flag)
    }
}

impl From<Map> for Value {
    fn from(map: Map) -> Self {
        Self::Object(map)
    }
}

impl From<Vec<Value>> for Value {
    fn from(items: Vec<Value>) -> Self {
        Self::Array(items)
    }
}

/// Makes a [`Value`] from JSON syntax. Any expression that converts into a `Value` may be a member.
#[macro_export]
macro_rules! value {
    (null) => { $crate::value::Value::Null };
    ({}) => { $crate::value::Value::object() };
    ([]) => { $crate::value::Value::Array(Vec::new()) };
    ([ $($item:tt),+ $(,)? ]) => { $crate::value::Value::Array(vec![ $($crate::value!($item)),+ ]) };
    ({ $($key:tt : $item:tt),+ $(,)? }) => {{
        let mut map = $crate::value::Map::new();
        $( map.insert($key, $crate::value!($item)); )+
        $crate::value::Value::Object(map)
    }};
    ($other:expr) => { $crate::value::Value::from($other) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_followed_set_and_removed() {
        let mut object = value!({"metadata": {"name": "a", "labels": {"x": "1"}}, "items": [1, true, null]});
        assert_eq!(object.str_at(&["metadata", "name"]), "a");
        assert!(object.at(&["metadata", "name", "deeper"]).is_null());
        object.set_at(&["spec", "replicas"], 3);
        assert_eq!(object.int_at(&["spec", "replicas"]), Some(3));
        assert_eq!(object.remove_at(&["metadata", "labels", "x"]), Some(Value::from("1")));
        assert_eq!(object.map_at(&["metadata", "labels"]).map(Map::len), Some(0));
        assert_eq!(object.list_at(&["items"]).len(), 3);
    }
}
