//! Path elements, in the form in which `fieldsV1` spells them.
//!
//! `f:name` is a member, `k:{"name":"c"}` a list item by its keys, `v:"x"` an item of a set, `i:0` an item by index.
//! Elements are compared by their canonical spelling: sorted keys, compact JSON. Two elements are equal exactly if
//! their canonical spellings are.

use std::cmp::Ordering;

use flotilla_proto::json;
use flotilla_proto::schema::{Field, List, Presence, Shape, Topology};
use flotilla_proto::value::{Map, Str, Value};

use crate::field::{float, quote};

/// The key that marks a node with children as a member of the set.
pub const SELF: &str = ".";

/// The reason why a list item has no identity, in the reference's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ItemError {
    /// A `null` in a list with keys.
    #[error("associative list with keys may not have a null element")]
    KeyedNull,
    /// A scalar or list in a list with keys.
    #[error("associative list with keys may not have non-map elements")]
    KeyedOther,
    /// An item without any of the keys.
    #[error(
        "associative list with keys has an element that omits all key fields [{0}] (and doesn't have default values \
         for any key fields)"
    )]
    NoKeys(String),
    /// An object in a set.
    #[error("associative list without keys has an element that's a map type")]
    SetMap,
    /// A list in a set.
    #[error("not supported: associative list with lists as elements")]
    SetList,
    /// A `null` in a set.
    #[error("associative list without keys has an element that's an explicit null")]
    SetNull,
}

/// Spells a member's name.
pub fn of_name(name: &str) -> Str {
    let mut spelled = Str::with_capacity(name.len() + 2);
    spelled.push_str("f:");
    spelled.push_str(name);
    spelled
}

/// Spells the identity of a list item. Absent keys take their default. Absent keys without a default are left out.
///
/// # Errors
/// The item has no identity. [`ItemError`] says why.
pub fn of_item(list: &List, item: &Value) -> Result<Str, ItemError> {
    let mut spelled = Vec::with_capacity(64);
    spell_item(list, item, &mut spelled)?;
    // The JSON writer writes UTF-8 only.
    Ok(Str::from_utf8(&spelled).unwrap_or_default())
}

/// Appends the result of [`of_item`] to `out`.
///
/// # Errors
/// As for [`of_item`]. `out` may then end with an incomplete spelling.
pub fn spell_item(list: &List, item: &Value, out: &mut Vec<u8>) -> Result<(), ItemError> {
    match &list.topology {
        Topology::Map(keys) => spell_keyed(&list.item, keys, item, out),
        Topology::Set | Topology::Atomic => match item {
            Value::Object(_) => Err(ItemError::SetMap),
            Value::Array(_) => Err(ItemError::SetList),
            Value::Null => Err(ItemError::SetNull),
            scalar => {
                out.extend_from_slice(b"v:");
                write_scalar(scalar, out);
                Ok(())
            }
        },
    }
}

fn spell_keyed(
    shape: &Shape,
    keys: &[flotilla_proto::schema::Text],
    item: &Value,
    out: &mut Vec<u8>,
) -> Result<(), ItemError> {
    let map = match item {
        Value::Object(map) => map,
        Value::Null => return Err(ItemError::KeyedNull),
        _ => return Err(ItemError::KeyedOther),
    };
    let of = match shape {
        Shape::Struct(of) => Some(&**of),
        _ => None,
    };
    out.extend_from_slice(b"k:{");
    let bare = out.len();
    let mut write_key = |key: &str| {
        let before = out.len();
        if before > bare {
            out.push(b',');
        }
        json::write_str(key, out);
        out.push(b':');
        match map.get(key) {
            Some(value) => write_scalar(value, out),
            None => match of.and_then(|of| of.field(key)).and_then(|(_, field)| default(field)) {
                Some(text) => out.extend_from_slice(text.as_bytes()),
                None => out.truncate(before),
            },
        }
    };
    if keys.is_sorted() {
        keys.iter().for_each(|key| write_key(key));
    } else {
        let mut sorted: Vec<&str> = keys.iter().map(|key| &**key).collect();
        sorted.sort_unstable();
        sorted.into_iter().for_each(write_key);
    }
    if out.len() == bare {
        let names: Vec<String> = keys.iter().map(|key| quote(key)).collect();
        return Err(ItemError::NoKeys(names.join(" ")));
    }
    out.push(b'}');
    Ok(())
}

/// Returns the default of a key as JSON: the default of the field, or the zero value for fields that OpenAPI requires.
fn default(field: &Field) -> Option<&str> {
    if let Some(text) = &field.default {
        return Some(text);
    }
    match (field.presence, &field.shape) {
        (Presence::Always, Shape::String { .. }) => Some("\"\""),
        (Presence::Always, Shape::Int32 | Shape::Int64 | Shape::Uint(_) | Shape::Double) => Some("0"),
        (Presence::Always, Shape::Bool) => Some("false"),
        _ => None,
    }
}

fn spell(prefix: &str, write: impl FnOnce(&mut Vec<u8>)) -> Str {
    let mut out = Vec::with_capacity(64);
    out.extend_from_slice(prefix.as_bytes());
    write(&mut out);
    // The JSON writer writes UTF-8 only.
    Str::from_utf8(&out).unwrap_or_default()
}

/// Writes a scalar. Whole floats are written as integers, so that 1 and 1.0 are the same element.
fn write_scalar(value: &Value, out: &mut Vec<u8>) {
    #[expect(clippy::cast_possible_truncation, reason = "the number is whole and within 53 bits")]
    match value {
        Value::Float(number) if number.get().fract() == 0.0 && number.get().abs() < 9e15 => {
            json::write(&Value::Int(number.get() as i64), out);
        }
        other => json::write(other, out),
    }
}

/// A spelling that could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unreadable;

/// Returns the canonical spelling of an element that a client sent. `None` for kinds of elements that do not exist; the
/// caller drops those.
///
/// # Errors
/// The element is malformed.
pub fn canonical(spelled: &str) -> Result<Option<Str>, Unreadable> {
    let (kind, rest) = spelled.split_at_checked(2).ok_or(Unreadable)?;
    match kind {
        "f:" => Ok(Some(Str::from(spelled))),
        "v:" => {
            let value = json::parse(rest.as_bytes()).map_err(|_| Unreadable)?;
            Ok(Some(spell("v:", |out| write_scalar(&value, out))))
        }
        "k:" => match json::parse(rest.as_bytes()) {
            Ok(Value::Object(mut map)) => {
                map.sort();
                Ok(Some(spell("k:", |out| json::write(&Value::Object(map), out))))
            }
            _ => Err(Unreadable),
        },
        "i:" => rest.parse::<i64>().map(|index| Some(Str::from(format!("i:{index}")))).map_err(|_| Unreadable),
        other if other.ends_with(':') => Ok(None),
        _ => Err(Unreadable),
    }
}

/// Returns the name of a member. `None` for other elements.
pub fn name(spelled: &str) -> Option<&str> {
    spelled.strip_prefix("f:")
}

/// Formats an element for messages: `.name`, `[name="c"]`, `[="x"]`, `[0]`.
pub fn shown(spelled: &str) -> String {
    let (kind, rest) = spelled.split_at_checked(2).unwrap_or((spelled, ""));
    let parsed = || json::parse(rest.as_bytes()).unwrap_or_default();
    match kind {
        "f:" => format!(".{rest}"),
        "v:" => format!("[={}]", shown_value(&parsed())),
        "k:" => {
            let keys = parsed();
            let map =
                keys.as_object().map(|map| map.iter().map(|(key, value)| format!("{key}={}", shown_value(value))));
            format!("[{}]", map.into_iter().flatten().collect::<Vec<_>>().join(","))
        }
        _ => format!("[{rest}]"),
    }
}

/// Formats a value as the reference does in keys: members of an object follow each other without a separator.
fn shown_value(value: &Value) -> String {
    match value {
        Value::Str(text) => quote(text),
        Value::Float(number) => float(number.get()),
        Value::Array(items) => format!("[{}]", items.iter().map(shown_value).collect::<Vec<_>>().join(",")),
        Value::Object(map) => map.iter().map(|(key, value)| format!("{key}={}", shown_value(value))).collect(),
        other => String::from_utf8_lossy(&json::to_vec(other)).into_owned(),
    }
}

/// Compares elements in the order in which `fieldsV1` lists them: first members, then items with keys, then items of
/// sets, then items with an index. Elements of one kind are ordered by their name, keys, value or index.
pub fn compare(a: &str, b: &str) -> Ordering {
    fn class(spelled: &str) -> u8 {
        match spelled.as_bytes().first() {
            Some(b'.') => 0,
            Some(b'f') => 1,
            Some(b'k') => 2,
            Some(b'v') => 3,
            _ => 4,
        }
    }
    if a.starts_with('f') && b.starts_with('f') {
        return a.cmp(b);
    }
    class(a).cmp(&class(b)).then_with(|| match class(a) {
        0 | 1 => a.cmp(b),
        4 => {
            let index = |text: &str| text.get(2..).and_then(|digits| digits.parse::<i64>().ok());
            index(a).cmp(&index(b))
        }
        _ => compare_text(a, b).unwrap_or_else(|| {
            let parsed = |text: &str| json::parse(text.get(2..).unwrap_or("").as_bytes()).unwrap_or_default();
            compare_values(&parsed(a), &parsed(b))
        }),
    })
}

/// Compares two canonical spellings of one kind as text. Returns `None`, which is rare, if they first differ outside a
/// string or after an escape: then their values must be compared.
fn compare_text(a: &str, b: &str) -> Option<Ordering> {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let at = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let (Some(&x), Some(&y)) = (a.get(at), b.get(at)) else { return (a == b).then_some(Ordering::Equal) };
    let shared = &a[..at];
    let in_string = shared.iter().filter(|&&byte| byte == b'"').count() % 2 == 1;
    match (x, y) {
        _ if !in_string || shared.contains(&b'\\') => None,
        (b'\\', _) | (_, b'\\') => None,
        (b'"', _) => Some(Ordering::Less),
        (_, b'"') => Some(Ordering::Greater),
        _ => Some(x.cmp(&y)),
    }
}

fn compare_values(a: &Value, b: &Value) -> Ordering {
    fn class(value: &Value) -> u8 {
        match value {
            Value::Int(_) | Value::Float(_) => 0,
            Value::Str(_) => 1,
            Value::Bool(_) => 2,
            Value::Array(_) => 3,
            Value::Object(_) => 4,
            Value::Null | Value::Hole(_) => 5,
        }
    }
    #[expect(clippy::cast_precision_loss, reason = "only mixed numbers are compared as floats")]
    fn float(value: &Value) -> f64 {
        match value {
            Value::Int(number) => *number as f64,
            Value::Float(number) => number.get(),
            _ => 0.0,
        }
    }
    fn members(a: &Map, b: &Map) -> Ordering {
        for ((a_key, a), (b_key, b)) in a.iter().zip(b.iter()) {
            let order = a_key.cmp(b_key).then_with(|| compare_values(a, b));
            if order.is_ne() {
                return order;
            }
        }
        a.len().cmp(&b.len())
    }
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => a.cmp(b),
        (Value::Str(a), Value::Str(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Object(a), Value::Object(b)) => members(a, b),
        (Value::Array(a), Value::Array(b)) => {
            let unequal = a.iter().zip(b).map(|(a, b)| compare_values(a, b)).find(|order| order.is_ne());
            unequal.unwrap_or_else(|| a.len().cmp(&b.len()))
        }
        _ => class(a).cmp(&class(b)).then_with(|| float(a).total_cmp(&float(b))),
    }
}
