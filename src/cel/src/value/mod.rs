//! Values of evaluation. What lies in an object of the server is borrowed of its tree; what an expression makes is
//! shared, so that a clone never copies more than a pointer.

mod compare;
mod depth;
mod equal;
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
pub use list::{List, ListItems};
pub use map::{Entries, Key, Map, MapEntries};
pub use opaque::Opaque;
pub(crate) use sets::add as add_lists;
pub use shape::{Field, Fields, ListShape, ListType, Shape, ShapeKind};
pub use text::Text;
pub use time::{Duration, Timestamp};

use crate::types::Type;

/// A node of an object's tree.
pub type Tree = flotilla_proto::value::Value;

/// A value. `'a` is the lifetime of the trees, shapes and constants that it borrows of.
#[derive(Clone, Debug)]
pub enum Value<'a> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// 64 bits with a sign.
    Int(i64),
    /// 64 bits without.
    Uint(u64),
    /// IEEE 754.
    Double(f64),
    /// Unicode.
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
    /// A string that is made here.
    pub fn string(text: impl Into<Arc<str>>) -> Self {
        Self::String(Text::Shared(text.into()))
    }

    /// Bytes that are made here.
    pub fn bytes(bytes: impl Into<Arc<[u8]>>) -> Self {
        Self::Bytes(bytes.into())
    }

    /// A list that is made here.
    pub fn list(items: Vec<Value<'a>>) -> Self {
        Self::List(List::Made(Arc::new(items)))
    }

    /// A map that is made here. Of equal keys the last one counts.
    pub fn map(entries: impl IntoIterator<Item = (Value<'a>, Value<'a>)>) -> Self {
        Self::Map(Map::Made(Arc::new(entries.into_iter().collect())))
    }

    /// An optional that holds `value`.
    pub fn some(value: Value<'a>) -> Self {
        Self::Optional(Some(Arc::new(value)))
    }

    /// An optional that holds nothing.
    pub const fn none() -> Self {
        Self::Optional(None)
    }

    /// A value of an extension.
    pub fn opaque(value: impl Opaque) -> Self {
        Self::Opaque(Arc::new(value))
    }

    /// The text, if this is a string.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// The number, if this is an int.
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Self::Int(number) => Some(*number),
            _ => None,
        }
    }

    /// The truth, if this is a bool.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(truth) => Some(*truth),
            _ => None,
        }
    }

    /// The list, if this is one.
    pub fn as_list(&self) -> Option<&List<'a>> {
        match self {
            Self::List(list) => Some(list),
            _ => None,
        }
    }

    /// The map, if this is one.
    pub fn as_map(&self) -> Option<&Map<'a>> {
        match self {
            Self::Map(map) => Some(map),
            _ => None,
        }
    }

    /// The extension's value, if it is of this kind.
    pub fn as_opaque<T: Opaque>(&self) -> Option<&T> {
        match self {
            Self::Opaque(value) => (&**value as &dyn std::any::Any).downcast_ref(),
            _ => None,
        }
    }

    /// Its type as far as a value tells: lists are `list(dyn)`, maps `map(dyn, dyn)`.
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

    /// What `size()` says, where there is one: characters, bytes, items, entries, or what an extension says.
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

    /// Whether it is its type's empty value, as `optional.ofNonZeroValue` asks.
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
