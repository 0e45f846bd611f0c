//! Values of evaluation. Parts of the server's objects are borrowed from their trees; values that expressions create
//! are shared, so that a clone copies at most a pointer.

mod compare;
mod depth;
mod equal;
pub(crate) mod escape;
pub mod formats;
mod list;
mod map;
mod opaque;
mod sets;
mod shape;
mod text;
mod time;
mod tree;

use std::sync::Arc;

pub use compare::compare;
pub use depth::Depths;
pub use equal::equal;
pub use escape::escape;
pub use list::{List, ListItems};
pub use map::{Entries, Key, Map, MapEntries};
pub use opaque::Opaque;
pub(crate) use sets::add as add_lists;
pub use shape::Shape;
pub use text::Text;
pub use time::{Duration, Timestamp};

use crate::types::Type;

/// A node of an object's tree.
pub type Tree = flotilla_proto::value::Value;

/// A value. `'a` is the lifetime of the trees, schemas and constants that it borrows from.
#[derive(Clone, Debug)]
pub enum Value<'a> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A signed integer of 64 bits.
    Int(i64),
    /// An unsigned integer of 64 bits.
    Uint(u64),
    /// A double (IEEE 754).
    Double(f64),
    /// A Unicode string.
    String(Text<'a>),
    /// Bytes.
    Bytes(Arc<[u8]>),
    /// A point in time.
    Timestamp(Timestamp),
    /// A span of time.
    Duration(Duration),
    /// A list.
    List(List<'a>),
    /// A map, or an object with declared fields.
    Map(Map<'a>),
    /// A type.
    Type(Type),
    /// An optional value.
    Optional(Option<Arc<Value<'a>>>),
    /// A value of an extension: a quantity, a URL, an address.
    Opaque(Arc<dyn Opaque>),
}

impl<'a> Value<'a> {
    /// Returns an owned string.
    pub fn string(text: impl Into<Arc<str>>) -> Self {
        Self::String(Text::Shared(text.into()))
    }

    /// Returns owned bytes.
    pub fn bytes(bytes: impl Into<Arc<[u8]>>) -> Self {
        Self::Bytes(bytes.into())
    }

    /// Returns an owned list.
    pub fn list(items: Vec<Value<'a>>) -> Self {
        Self::List(List::Made(Arc::new(items)))
    }

    /// Returns an owned map. Of equal keys the last one counts.
    pub fn map(entries: impl IntoIterator<Item = (Value<'a>, Value<'a>)>) -> Self {
        Self::Map(Map::Made(Arc::new(entries.into_iter().collect())))
    }

    /// Returns an optional that holds `value`.
    pub fn some(value: Value<'a>) -> Self {
        Self::Optional(Some(Arc::new(value)))
    }

    /// Returns an optional that holds nothing.
    pub const fn none() -> Self {
        Self::Optional(None)
    }

    /// Returns a value of an extension.
    pub fn opaque(value: impl Opaque) -> Self {
        Self::Opaque(Arc::new(value))
    }

    /// Returns the text, if this is a string.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the number, if this is an int.
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Self::Int(number) => Some(*number),
            _ => None,
        }
    }

    /// Returns the truth value, if this is a bool.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(truth) => Some(*truth),
            _ => None,
        }
    }

    /// Returns the list, if this is one.
    pub fn as_list(&self) -> Option<&List<'a>> {
        match self {
            Self::List(list) => Some(list),
            _ => None,
        }
    }

    /// Returns the map, if this is one.
    pub fn as_map(&self) -> Option<&Map<'a>> {
        match self {
            Self::Map(map) => Some(map),
            _ => None,
        }
    }

    /// Returns the extension's value, if it is of this kind.
    pub fn as_opaque<T: Opaque>(&self) -> Option<&T> {
        match self {
            Self::Opaque(value) => (&**value as &dyn std::any::Any).downcast_ref(),
            _ => None,
        }
    }

    /// Returns its type as far as a value shows it: lists are `list(dyn)`, maps `map(dyn, dyn)`.
    pub fn type_of(&self) -> Type {
        match self {
            Self::Null => Type::Null,
            Self::Bool(_) => Type::Bool,
            Self::Int(_) => Type::Int,
            Self::Uint(_) => Type::Uint,
            Self::Double(_) => Type::Double,
            Self::String(_) => Type::String,
            Self::Bytes(_) => Type::Bytes,
            Self::Timestamp(_) => Type::Timestamp,
            Self::Duration(_) => Type::Duration,
            Self::List(_) => Type::list(Type::Dyn),
            Self::Map(map) => {
                map.object().map_or_else(|| Type::map(Type::Dyn, Type::Dyn), |name| Type::Object(name.clone()))
            }
            Self::Type(_) => Type::Type(None),
            Self::Optional(_) => Type::optional(Type::Dyn),
            Self::Opaque(value) => value.type_of(),
        }
    }

    /// Returns the result of `size()`: characters, bytes, items, entries, or the size of an extension's value. `None`
    /// if the value has no size.
    pub fn size(&self) -> Option<u64> {
        match self {
            Self::String(text) => Some(text.chars().count() as u64),
            Self::Bytes(bytes) => Some(bytes.len() as u64),
            Self::List(list) => Some(list.len() as u64),
            Self::Map(map) if map.object().is_none() => Some(map.len() as u64),
            Self::Opaque(value) => value.size(),
            _ => None,
        }
    }

    /// Returns whether it is its type's zero value, for `optional.ofNonZeroValue`.
    pub fn is_zero(&self) -> bool {
        match self {
            Self::Null => true,
            Self::Bool(truth) => !truth,
            Self::Int(number) => *number == 0,
            Self::Uint(number) => *number == 0,
            Self::Double(number) => *number == 0.0,
            Self::String(text) => text.is_empty(),
            Self::Bytes(bytes) => bytes.is_empty(),
            Self::Timestamp(time) => *time == Timestamp::ZERO,
            Self::Duration(duration) => duration.nanos() == 0,
            Self::List(list) => list.is_empty(),
            Self::Map(map) => map.is_empty(),
            Self::Type(_) | Self::Optional(_) => false,
            Self::Opaque(value) => value.is_zero(),
        }
    }
}

impl From<bool> for Value<'_> {
    fn from(truth: bool) -> Self {
        Self::Bool(truth)
    }
}

impl From<i64> for Value<'_> {
    fn from(number: i64) -> Self {
        Self::Int(number)
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Self::String(Text::Borrowed(text))
    }
}

impl From<String> for Value<'_> {
    fn from(text: String) -> Self {
        Self::string(text)
    }
}
