//! Maps, and objects with declared fields.

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use flotilla_proto::value::Map as TreeMap;

use super::escape::escape;
use super::shape::{Shape, ShapeKind};
use super::tree::{plain, shaped};
use super::{Text, Tree, Value};
use crate::error::{Error, Outcome};
use crate::limits::SCANNED_ENTRIES_MAX;

/// A map from a tree, or one that an expression created.
#[derive(Clone, Debug)]
pub enum Map<'a> {
    /// From a tree. The shape says whether it has declared fields. Without a shape, values are read as JSON.
    Tree(&'a TreeMap, Option<Shape<'a>>),
    /// Created by an expression.
    Made(Arc<Entries<'a>>),
}

/// The entries of a map that an expression created, in order of insertion.
#[derive(Clone, Debug, Default)]
pub struct Entries<'a> {
    entries: Vec<(Value<'a>, Value<'a>)>,
    /// Positions of the keys, once there are more than [`SCANNED_ENTRIES_MAX`].
    index: HashMap<Key<'a>, usize>,
    /// The type of the object that this is. `None` for a map.
    object: Option<Arc<str>>,
}

/// A key as it is looked up: keys of different types are different.
#[derive(Clone, Debug)]
pub enum Key<'a> {
    /// A bool.
    Bool(bool),
    /// An int.
    Int(i64),
    /// A uint.
    Uint(u64),
    /// A double, by its bits.
    Double(u64),
    /// A string.
    String(Text<'a>),
    /// A value that is never a key.
    Other,
}

impl PartialEq for Key<'_> {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Int(a), Self::Int(b)) => a == b,
            (Self::Uint(a), Self::Uint(b)) | (Self::Double(a), Self::Double(b)) => a == b,
            (Self::String(a), Self::String(b)) => a == b,
            _ => false,
        }
    }
}

impl Eq for Key<'_> {}

impl Hash for Key<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::mem::discriminant(self).hash(state);
        match self {
            Self::Bool(truth) => truth.hash(state),
            Self::Int(number) => number.hash(state),
            Self::Uint(number) | Self::Double(number) => number.hash(state),
            Self::String(text) => text.hash(state),
            Self::Other => {}
        }
    }
}

impl<'a> Key<'a> {
    /// Converts a value to a key.
    pub fn of(value: &Value<'a>) -> Self {
        match value {
            Value::Bool(truth) => Self::Bool(*truth),
            Value::Int(number) => Self::Int(*number),
            Value::Uint(number) => Self::Uint(*number),
            Value::Double(number) => Self::Double((number + 0.0).to_bits()),
            Value::String(text) => Self::String(text.clone()),
            _ => Self::Other,
        }
    }

    /// Returns the same number in all other number types, for comparisons of any value with constants.
    pub(crate) fn numbers(&self) -> Vec<Key<'static>> {
        let double = |number: f64| Key::Double((number + 0.0).to_bits());
        let mut same: Vec<Key<'static>> = self.same_numbers().into_iter().flatten().collect();
        match self {
            Self::Int(number) => same.push(double(*number as f64)),
            Self::Uint(number) => same.push(double(*number as f64)),
            _ => {}
        }
        same
    }

    /// Returns the keys of other number types that are the same number.
    fn same_numbers(&self) -> [Option<Key<'static>>; 2] {
        match *self {
            Self::Int(number) => [u64::try_from(number).ok().map(Key::Uint), None],
            Self::Uint(number) => [i64::try_from(number).ok().map(Key::Int), None],
            Self::Double(bits) => {
                let number = f64::from_bits(bits);
                let int = (number.trunc() == number && (-9.2e18..9.2e18).contains(&number)).then_some(number as i64);
                let uint = (number.trunc() == number && (0.0..1.8e19).contains(&number)).then_some(number as u64);
                [int.map(Key::Int), uint.map(Key::Uint)]
            }
            _ => [None, None],
        }
    }
}

impl<'a> Entries<'a> {
    /// Marks the entries as the fields of an object of this type.
    #[must_use]
    pub fn of_object(mut self, name: impl Into<Arc<str>>) -> Self {
        self.object = Some(name.into());
        self
    }

    /// Returns the type of the object that this is. `None` for a map.
    pub fn object(&self) -> Option<&Arc<str>> {
        self.object.as_ref()
    }

    fn position(&self, key: &Key<'_>) -> Option<usize> {
        if self.entries.len() > SCANNED_ENTRIES_MAX {
            return self.index.get(key).copied();
        }
        self.entries.iter().position(|(each, _)| Key::of(each) == *key)
    }

    /// Returns the value of the key, or of the same number in another type.
    pub fn get(&self, key: &Value<'_>) -> Option<&Value<'a>> {
        let key = Key::of(key);
        let at = self
            .position(&key)
            .or_else(|| key.same_numbers().into_iter().flatten().find_map(|other| self.position(&other)))?;
        Some(&self.entries[at].1)
    }

    /// Returns whether the key exists in exactly its type.
    pub fn has(&self, key: &Value<'_>) -> bool {
        self.position(&Key::of(key)).is_some()
    }

    /// Sets the value of a key.
    pub fn insert(&mut self, key: Value<'a>, value: Value<'a>) {
        if let Some(at) = self.position(&Key::of(&key)) {
            self.entries[at].1 = value;
            return;
        }
        self.entries.push((key, value));
        match self.entries.len() {
            len if len <= SCANNED_ENTRIES_MAX => {}
            len if len == SCANNED_ENTRIES_MAX + 1 => {
                self.index = self.entries.iter().enumerate().map(|(at, (key, _))| (Key::of(key), at)).collect();
            }
            len => {
                if let Entry::Vacant(place) = self.index.entry(Key::of(&self.entries[len - 1].0)) {
                    place.insert(len - 1);
                }
            }
        }
    }

    /// Removes a key, for an optional entry without a value.
    pub fn remove(&mut self, key: &Value<'_>) {
        let Some(at) = self.position(&Key::of(key)) else { return };
        self.entries.remove(at);
        self.index = if self.entries.len() > SCANNED_ENTRIES_MAX {
            self.entries.iter().enumerate().map(|(at, (key, _))| (Key::of(key), at)).collect()
        } else {
            HashMap::new()
        };
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the entries in order.
    pub fn iter(&self) -> std::slice::Iter<'_, (Value<'a>, Value<'a>)> {
        self.entries.iter()
    }
}

impl<'a> FromIterator<(Value<'a>, Value<'a>)> for Entries<'a> {
    fn from_iter<I: IntoIterator<Item = (Value<'a>, Value<'a>)>>(entries: I) -> Self {
        let mut made = Self::default();
        entries.into_iter().for_each(|(key, value)| made.insert(key, value));
        made
    }
}

impl<'a> Map<'a> {
    /// Returns the type of the object that an expression made. `None` for a map, and for an object from a tree.
    pub fn object(&self) -> Option<&Arc<str>> {
        match self {
            Self::Made(entries) => entries.object(),
            Self::Tree(..) => None,
        }
    }

    /// Returns the number of entries. For an object from a tree, that is the number of all its members.
    pub fn len(&self) -> usize {
        match self {
            Self::Tree(map, _) => map.len(),
            Self::Made(entries) => entries.len(),
        }
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the value of a key. `None` if it is absent, or a declared field is `null`. `Err` if the map cannot have
    /// keys of this type, or the value does not fit its schema.
    pub fn find(&self, key: &Value<'_>) -> Outcome<Option<Value<'a>>> {
        match (self, key) {
            (Self::Made(entries), key) => Ok(entries.get(key).cloned()),
            (Self::Tree(..), Value::String(text)) => self.find_field(text),
            (Self::Tree(_, Some(_)), _) => Err(Error::no_such_overload()),
            (Self::Tree(_, None), _) => Ok(None),
        }
    }

    /// Returns the value of a key that is a string; see [`Map::find`].
    pub fn find_field(&self, key: &str) -> Outcome<Option<Value<'a>>> {
        let Self::Tree(map, shape) = *self else {
            return self.find(&Value::String(Text::Borrowed(key)));
        };
        let Some(shape) = shape else { return Ok(map.get(key).map(plain)) };
        match shape.kind() {
            ShapeKind::Object => {
                let Some((property, shape)) = shape.field(key) else { return Ok(None) };
                let Some(value) = map.get(&property).filter(|value| !value.is_null()) else { return Ok(None) };
                shaped(value, shape).map(Some)
            }
            ShapeKind::Map(values) => map.get(key).map(|value| shaped(value, Shape::of(values))).transpose(),
            _ => Ok(None),
        }
    }

    /// Returns the value of a property, by its name in objects; see [`Map::find`].
    pub(super) fn find_property(&self, property: &str) -> Outcome<Option<Value<'a>>> {
        match *self {
            Self::Tree(map, Some(shape)) if shape.has_fields() => {
                let value = map.get(property).filter(|value| !value.is_null());
                shape.property(property).zip(value).map(|(shape, value)| shaped(value, shape)).transpose()
            }
            _ => self.find_field(&escape(property).unwrap_or(property.into())),
        }
    }

    /// Returns the entries in order. Of an object with declared fields, returns only these.
    pub fn iter(&self) -> MapEntries<'a> {
        MapEntries { map: self.clone(), at: 0, members: None }
    }
}

/// The entries of a map in order: keys, and values, which are errors if they do not fit their schema.
pub struct MapEntries<'a> {
    map: Map<'a>,
    at: usize,
    members: Option<Box<dyn Iterator<Item = (&'a str, &'a Tree)> + 'a>>,
}

impl<'a> Iterator for MapEntries<'a> {
    type Item = (Value<'a>, Outcome<Value<'a>>);

    fn next(&mut self) -> Option<Self::Item> {
        match &self.map {
            Map::Made(entries) => {
                let (key, value) = entries.entries.get(self.at)?;
                self.at += 1;
                Some((key.clone(), Ok(value.clone())))
            }
            Map::Tree(map, shape) => {
                let (map, shape) = (*map, *shape);
                let members = self.members.get_or_insert_with(|| Box::new(map.iter()));
                members.find_map(|(key, value)| member(key, value, shape))
            }
        }
    }
}

fn member<'a>(key: &'a str, value: &'a Tree, shape: Option<Shape<'a>>) -> Option<(Value<'a>, Outcome<Value<'a>>)> {
    let borrowed = |key| Value::String(Text::Borrowed(key));
    let Some(shape) = shape else { return Some((borrowed(key), Ok(plain(value)))) };
    match shape.kind() {
        ShapeKind::Object => {
            let name = match escape(key) {
                Some(Cow::Owned(name)) => Value::String(Text::Shared(name.into())),
                Some(Cow::Borrowed(_)) | None => borrowed(key),
            };
            shape.property(key).map(|of| (name, shaped(value, of)))
        }
        ShapeKind::Map(values) => Some((borrowed(key), shaped(value, Shape::of(values)))),
        _ => None,
    }
}
