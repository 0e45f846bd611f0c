//! The two forms from which an object can be encoded: its tree, or its JSON text.

use std::borrow::Cow;

use crate::value::Value;

/// A JSON value in some form. Parts are walked from the last to the first, because messages are written backwards.
pub(super) trait Source<'s>: Copy {
    /// Returns whether this is `null`.
    fn is_null(self) -> bool;
    /// Returns whether this is a list.
    fn is_list(self) -> bool;
    /// Returns the boolean. Returns `None` if this is not a boolean.
    fn truth(self) -> Option<bool>;
    /// Returns the integer. Returns `None` if this is not an integer.
    fn int(self) -> Option<i64>;
    /// Returns the number. Returns `None` if this is not a number.
    fn double(self) -> Option<f64>;
    /// Returns the string. Returns `None` if this is not a string.
    fn text(self) -> Option<Cow<'s, str>>;
    /// Returns the items of a list, the last one first; no items for anything else.
    fn items(self) -> impl Iterator<Item = Self>;
    /// Returns the members of an object, the last one first; no members for anything else.
    fn members(self) -> impl Iterator<Item = (Cow<'s, str>, Self)>;
    /// Returns the JSON text, for which `room` may be used as a buffer.
    fn json<'j>(self, room: &'j mut Vec<u8>) -> &'j [u8]
    where
        's: 'j;
}

impl<'s> Source<'s> for &'s Value {
    fn is_null(self) -> bool {
        Value::is_null(self)
    }

    fn is_list(self) -> bool {
        matches!(self, Value::Array(_))
    }

    fn truth(self) -> Option<bool> {
        self.as_bool()
    }

    fn int(self) -> Option<i64> {
        self.as_int()
    }

    fn double(self) -> Option<f64> {
        match self {
            Value::Float(number) => Some(number.get()),
            Value::Int(number) => Some(*number as f64),
            _ => None,
        }
    }

    fn text(self) -> Option<Cow<'s, str>> {
        self.as_str().map(Cow::Borrowed)
    }

    fn items(self) -> impl Iterator<Item = Self> {
        self.as_array().unwrap_or(&[]).iter().rev()
    }

    fn members(self) -> impl Iterator<Item = (Cow<'s, str>, Self)> {
        let members = self.as_object().into_iter().flat_map(|map| map.iter().rev());
        members.map(|(key, member)| (Cow::Borrowed(key), member))
    }

    fn json<'j>(self, room: &'j mut Vec<u8>) -> &'j [u8]
    where
        's: 'j,
    {
        room.clear();
        crate::json::write(self, room);
        room
    }
}
