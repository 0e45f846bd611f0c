//! From any JSON value to an object of a type, as Go's decoder and encoder together would leave it.
//!
//! One walk finds unknown fields and wrong types, drops what `omitempty` drops, adds what is always encoded, makes
//! quantities and times canonical, and puts fields into the order of the catalogue. Everything behind it can rely on
//! that form: two conformed values are equal exactly if they encode equally.

use crate::base64;
use crate::quantity::{self, Quantity};
use crate::schema::{AnyKind, Field, List, Map as MapShape, Presence, Shape, Type};
use crate::time::{self, Timestamp};
use crate::value::{Str, Value};

/// Why a value is not of the type, in the words of the reference's decoder.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A JSON value of the wrong type, or a number that does not fit.
    #[error("json: cannot unmarshal {found} into Go {place} of type {wanted}")]
    Type {
        /// What stands there: `string`, `number 2.5`.
        found: String,
        /// `struct field PodSpec.spec.containers`, or `value` at the top.
        place: String,
        /// The Go type.
        wanted: String,
    },
    /// No quantity.
    #[error(transparent)]
    Quantity(#[from] quantity::Error),
    /// No time.
    #[error(transparent)]
    Time(#[from] time::Error),
    /// No duration.
    #[error("time: invalid duration {0:?}")]
    Duration(String),
    /// No base64.
    #[error("illegal base64 data at input byte {0}")]
    Base64(usize),
}

/// Where the walk is: the field's struct and its path, as links on the stack.
#[derive(Clone, Copy)]
struct Place<'a> {
    parent: Option<&'a Place<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Root,
    Field(&'a Type, &'a str),
    Index(usize),
    Key(&'a str),
}

impl Place<'_> {
    /// The path with indexes and keys, as strict decoding reports it.
    fn path(&self, out: &mut String) {
        if let Some(parent) = self.parent {
            parent.path(out);
        }
        match self.step {
            Step::Root => {}
            Step::Field(_, name) | Step::Key(name) => {
                if !out.is_empty() {
                    out.push('.');
                }
                out.push_str(name);
            }
            Step::Index(index) => {
                out.push('[');
                out.push_str(&index.to_string());
                out.push(']');
            }
        }
    }

    /// The path of field names alone, as type errors report it.
    fn fields(&self, out: &mut String) {
        if let Some(parent) = self.parent {
            parent.fields(out);
        }
        if let Step::Field(owner, name) = self.step {
            let embedding = owner.field(name).map(|(at, _)| owner.embedding(at)).unwrap_or_default();
            for name in embedding.into_iter().chain([name]) {
                if !out.is_empty() {
                    out.push('.');
                }
                out.push_str(name);
            }
        }
    }

    /// The struct that holds the innermost field.
    fn owner(&self) -> Option<&str> {
        match self.step {
            Step::Field(owner, _) => Some(&owner.name),
            Step::Root => None,
            _ => self.parent.and_then(Place::owner),
        }
    }

    fn describe(&self) -> String {
        match self.owner() {
            Some(owner) => {
                let mut path = format!("struct field {owner}.");
                let mut fields = String::new();
                self.fields(&mut fields);
                path.push_str(&fields);
                path
            }
            None => "value".into(),
        }
    }
}

/// Conforms `value` to a type. Returns the paths of fields that the type does not have; they are dropped.
pub fn conform(of: &Type, value: &mut Value) -> Result<Vec<String>, Error> {
    conform_changed(of, value, &Value::Null)
}

/// As [`conform`], for a value that was made of one which conforms: what both share is left as it is.
pub fn conform_changed(of: &Type, value: &mut Value, before: &Value) -> Result<Vec<String>, Error> {
    let mut walk = Walk { unknown: Vec::new() };
    let root = Place { parent: None, step: Step::Root };
    walk.structure(of, value, before, &root).map(drop)?;
    Ok(walk.unknown)
}

/// The value of a type of which nothing is set.
pub fn zero(of: &Type) -> Value {
    let mut value = Value::object();
    // An empty object conforms to every type.
    let _ = conform(of, &mut value);
    value
}

struct Walk {
    unknown: Vec<String>,
}

/// Whether a value and all that is in it is in the form in which it is stored, if nobody changes it: see
/// [`Map::settle`].
type Settled = bool;

impl Walk {
    fn structure(&mut self, of: &Type, value: &mut Value, before: &Value, place: &Place<'_>) -> Result<Settled, Error> {
        if value.is_same(before) {
            return Ok(false);
        }
        let Value::Object(map) = value else {
            return Err(mismatch(value, place, || format!("{}.{}", of.package, of.name)));
        };
        debug_assert!(of.fields.len() <= 128, "the set of seen fields has 128 places");
        let (mut seen, mut ordered, mut next) = (0_u128, true, 0);
        let mut settled = true;
        let mut failure = None;
        map.retain(|key, member| {
            if failure.is_some() {
                return true;
            }
            let Some(at) = position(of, key, next) else {
                let here = Place { parent: Some(place), step: Step::Key(key) };
                let mut path = String::new();
                here.path(&mut path);
                self.unknown.push(path);
                return false;
            };
            let field = &of.fields[at];
            let here = Place { parent: Some(place), step: Step::Field(of, key) };
            match self.field(field, member, before.at(&[key]), &here) {
                Ok(Some(is_settled)) => {
                    settled &= is_settled;
                    ordered &= at >= next;
                    next = at + 1;
                    seen |= 1 << at;
                    true
                }
                Ok(None) => false,
                Err(error) => {
                    failure = Some(error);
                    true
                }
            }
        });
        if let Some(error) = failure {
            return Err(error);
        }
        for (at, field) in of.fields.iter().enumerate() {
            let missing = seen & (1 << at) == 0;
            match field.presence {
                Presence::Always if missing => {
                    ordered &= next <= at;
                    next = at + 1;
                    map.insert(Str::from(&*field.name), zero_of(&field.shape));
                }
                Presence::AlwaysPointer if missing => {
                    ordered &= next <= at;
                    next = at + 1;
                    map.insert(Str::from(&*field.name), Value::Null);
                }
                _ => {}
            }
        }
        if !ordered {
            map.sort_by_rank(|key| position(of, key, 0).unwrap_or(usize::MAX));
        }
        if settled {
            map.settle();
        }
        Ok(settled)
    }

    /// Conforms a member; `None` when it is to be dropped.
    fn field(
        &mut self,
        field: &Field,
        value: &mut Value,
        before: &Value,
        place: &Place<'_>,
    ) -> Result<Option<Settled>, Error> {
        if value.is_null() {
            return Ok(None);
        }
        let settled = self.shape(&field.shape, value, before, place)?;
        Ok(match field.presence {
            Presence::OmitEmpty => (!is_empty(value)).then_some(settled),
            Presence::Always => Some(settled && !is_forgotten(field, value)),
            Presence::Pointer | Presence::AlwaysPointer => Some(settled),
        })
    }

    fn shape(&mut self, shape: &Shape, value: &mut Value, before: &Value, place: &Place<'_>) -> Result<Settled, Error> {
        match shape {
            Shape::Struct(of) => return self.structure(of, value, before, place),
            Shape::List(list) => return self.list((list, shape), value, before, place),
            Shape::Map(map) => return self.map((map, shape), value, before, place),
            _ => {}
        }
        scalar(shape, value, place).map(|()| true)
    }

    fn list(
        &mut self,
        (list, shape): (&List, &Shape),
        value: &mut Value,
        before: &Value,
        place: &Place<'_>,
    ) -> Result<Settled, Error> {
        let Value::Array(items) = value else {
            return Err(mismatch(value, place, || go_type(shape)));
        };
        let mut settled = true;
        for (index, item) in items.iter_mut().enumerate() {
            if item.is_null() {
                if !list.pointer_items {
                    *item = zero_of(&list.item);
                }
                continue;
            }
            let here = Place { parent: Some(place), step: Step::Index(index) };
            settled &= self.shape(&list.item, item, item_of(before, index), &here)?;
        }
        Ok(settled)
    }

    fn map(
        &mut self,
        (map, shape): (&MapShape, &Shape),
        value: &mut Value,
        before: &Value,
        place: &Place<'_>,
    ) -> Result<Settled, Error> {
        if value.is_same(before) {
            return Ok(false);
        }
        let Value::Object(members) = value else {
            return Err(mismatch(value, place, || go_type(shape)));
        };
        let mut settled = true;
        for (key, member) in members.iter_mut() {
            if member.is_null() {
                *member = match map.value {
                    // Storage does not tell empty from nil.
                    Shape::Bytes => Value::Str(Str::const_new("")),
                    _ => zero_of(&map.value),
                };
                continue;
            }
            let here = Place { parent: Some(place), step: Step::Key(key) };
            settled &= self.shape(&map.value, member, before.at(&[key]), &here)?;
        }
        members.sort();
        Ok(settled)
    }
}

/// Conforms what is no struct, list or map of them.
fn scalar(shape: &Shape, value: &mut Value, place: &Place<'_>) -> Result<(), Error> {
    match shape {
        Shape::Bool => match value {
            Value::Bool(_) => Ok(()),
            _ => Err(mismatch(value, place, || "bool".into())),
        },
        Shape::Int32 => integer(value, i32::MIN.into(), i32::MAX.into(), place, "int32"),
        Shape::Int64 => integer(value, i64::MIN, i64::MAX, place, "int64"),
        Shape::Uint(8) => integer(value, 0, u8::MAX.into(), place, "uint8"),
        Shape::Uint(16) => integer(value, 0, u16::MAX.into(), place, "uint16"),
        Shape::Uint(32) => integer(value, 0, u32::MAX.into(), place, "uint32"),
        Shape::Uint(_) => integer(value, 0, i64::MAX, place, "uint64"),
        Shape::Double => match value {
            Value::Int(_) | Value::Float(_) => Ok(()),
            _ => Err(mismatch(value, place, || "float64".into())),
        },
        Shape::String { .. } => match value {
            Value::Str(_) => Ok(()),
            _ => Err(mismatch(value, place, || go_type(shape))),
        },
        Shape::Bytes => bytes(value, place),
        Shape::Quantity => amount(value),
        Shape::IntOrString => match value {
            Value::Str(_) => Ok(()),
            Value::Int(_) | Value::Float(_) => integer(value, i32::MIN.into(), i32::MAX.into(), place, "int32"),
            _ => Err(mismatch(value, place, || "int32".into())),
        },
        Shape::Time | Shape::MicroTime => moment(value, matches!(shape, Shape::MicroTime), place),
        Shape::Duration => duration(value, place),
        Shape::Any(kind) => free_form(*kind, value, place),
        Shape::Struct(_) | Shape::List(_) | Shape::Map(_) => Ok(()),
    }
}

/// The item of a list, or null.
pub(crate) fn item_of(list: &Value, index: usize) -> &Value {
    list.as_array().and_then(|items| items.get(index)).unwrap_or(&Value::Null)
}

/// The position of a field, looked for from where fields in catalogue order would have it.
pub(crate) fn position(of: &Type, name: &str, next: usize) -> Option<usize> {
    let fields = &of.fields;
    let from = next.min(fields.len());
    fields[from..]
        .iter()
        .position(|field| field.name == name)
        .map(|at| from + at)
        .or_else(|| fields[..from].iter().position(|field| field.name == name))
}

/// What Go drops under `omitempty`.
pub(crate) fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) | Value::Int(0) => true,
        Value::Float(number) => *number == 0.0,
        Value::Str(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::Bool(true) | Value::Int(_) => false,
    }
}

/// Makes lists and maps that are always encoded `null` where they are empty, as storage does, which does not tell
/// empty from nil. What conforms to the type does so afterwards.
/// What is shared with `before`, in which that was done, is left as it is, and so is what was not changed since it was
/// conformed to the type and had nothing to forget then.
pub fn forget_empty(of: &Type, value: &mut Value, before: &Value) {
    if value.is_same(before) {
        return;
    }
    let Value::Object(map) = value else { return };
    if map.is_settled() {
        return;
    }
    let mut next = 0;
    for (key, member) in map.iter_mut() {
        let Some(at) = position(of, key, next) else { continue };
        next = at + 1;
        let field = &of.fields[at];
        if is_forgotten(field, member) {
            *member = Value::Null;
        } else {
            forget_empty_in(&field.shape, member, before.at(&[key]));
        }
    }
}

/// Whether a member is written as `null` because it is empty.
fn is_forgotten(field: &Field, value: &Value) -> bool {
    field.presence == Presence::Always && matches!(field.shape, Shape::List(_) | Shape::Map(_)) && is_empty(value)
}

pub(crate) fn holds_structs(shape: &Shape) -> bool {
    matches!(shape, Shape::Struct(_) | Shape::List(_) | Shape::Map(_))
}

fn forget_empty_in(shape: &Shape, value: &mut Value, before: &Value) {
    match (shape, value) {
        (Shape::Struct(of), value) => forget_empty(of, value, before),
        (Shape::List(list), Value::Array(items)) if holds_structs(&list.item) => {
            for (index, item) in items.iter_mut().enumerate() {
                forget_empty_in(&list.item, item, item_of(before, index));
            }
        }
        (Shape::Map(map), Value::Object(members)) if holds_structs(&map.value) => {
            members.iter_mut().for_each(|(key, member)| forget_empty_in(&map.value, member, before.at(&[key])));
        }
        _ => {}
    }
}

/// How a value of which nothing is set is encoded where it is always encoded.
pub(crate) fn zero_of(shape: &Shape) -> Value {
    match shape {
        Shape::Bool => Value::Bool(false),
        Shape::Int32 | Shape::Int64 | Shape::Uint(_) | Shape::Double | Shape::IntOrString => Value::Int(0),
        Shape::String { .. } => Value::Str(Str::const_new("")),
        Shape::Quantity => Value::Str(Str::const_new("0")),
        Shape::Duration => Value::Str(Str::const_new("0s")),
        Shape::Struct(of) => zero(of),
        Shape::Bytes | Shape::Time | Shape::MicroTime | Shape::Any(_) | Shape::List(_) | Shape::Map(_) => Value::Null,
    }
}

/// The name of a shape's Go type, as decoding errors state it.
pub fn go_type(shape: &Shape) -> String {
    match shape {
        Shape::Bool => "bool".into(),
        Shape::Int32 | Shape::IntOrString => "int32".into(),
        Shape::Int64 => "int64".into(),
        Shape::Uint(bits) => format!("uint{bits}"),
        Shape::Double => "float64".into(),
        Shape::String { named } if named.is_empty() => "string".into(),
        Shape::String { named } => named.to_string(),
        Shape::Bytes => "[]uint8".into(),
        Shape::Quantity => "resource.Quantity".into(),
        Shape::Time => "v1.Time".into(),
        Shape::MicroTime => "v1.MicroTime".into(),
        Shape::Duration => "v1.Duration".into(),
        Shape::Any(AnyKind::RawExtension) => "runtime.RawExtension".into(),
        Shape::Any(AnyKind::FieldsV1) => "v1.FieldsV1".into(),
        Shape::Any(AnyKind::Json) => "v1.JSON".into(),
        Shape::Any(_) => "v1.JSONSchemaProps".into(),
        Shape::Struct(of) => format!("{}.{}", of.package, of.name),
        Shape::List(list) if list.named.is_empty() => {
            format!("[]{}{}", if list.pointer_items { "*" } else { "" }, go_type(&list.item))
        }
        Shape::List(list) => list.named.to_string(),
        Shape::Map(map) if map.named.is_empty() => format!("map[string]{}", go_type(&map.value)),
        Shape::Map(map) => map.named.to_string(),
    }
}

fn mismatch(value: &Value, place: &Place<'_>, wanted: impl FnOnce() -> String) -> Error {
    Error::Type { found: value.type_name().into(), place: place.describe(), wanted: wanted() }
}

fn integer(value: &mut Value, low: i64, high: i64, place: &Place<'_>, wanted: &str) -> Result<(), Error> {
    match value {
        Value::Int(number) if (low..=high).contains(number) => Ok(()),
        Value::Int(_) | Value::Float(_) => {
            let mut text = b"number ".to_vec();
            crate::json::write(value, &mut text);
            let found = String::from_utf8_lossy(&text).into_owned();
            Err(Error::Type { found, place: place.describe(), wanted: wanted.into() })
        }
        _ => Err(mismatch(value, place, || wanted.into())),
    }
}

fn bytes(value: &mut Value, place: &Place<'_>) -> Result<(), Error> {
    let Value::Str(text) = value else {
        return Err(mismatch(value, place, || "[]uint8".into()));
    };
    let canonical = base64::canonical(text).map_err(Error::Base64)?;
    if canonical != text.as_str() {
        *text = canonical.into();
    }
    Ok(())
}

fn amount(value: &mut Value) -> Result<(), Error> {
    let parsed = match value {
        Value::Str(text) => Quantity::parse(text.trim())?,
        Value::Int(number) => Quantity::from_int(*number),
        Value::Float(number) => Quantity::parse(&number.to_string())?,
        _ => return Err(quantity::Error::Form.into()),
    };
    let canonical = parsed.to_string();
    if value.as_str() != Some(&canonical) {
        *value = canonical.into();
    }
    Ok(())
}

fn moment(value: &mut Value, micro: bool, place: &Place<'_>) -> Result<(), Error> {
    let Value::Str(text) = value else {
        return Err(mismatch(value, place, || "string".into()));
    };
    let canonical = if micro { Timestamp::parse_micro(text)?.micro() } else { Timestamp::parse(text)?.to_string() };
    if canonical != text.as_str() {
        *text = canonical.into();
    }
    Ok(())
}

fn duration(value: &mut Value, place: &Place<'_>) -> Result<(), Error> {
    let Value::Str(text) = value else {
        return Err(mismatch(value, place, || "string".into()));
    };
    let nanos = crate::duration::parse(text).ok_or_else(|| Error::Duration(text.to_string()))?;
    let canonical = crate::duration::format(nanos);
    if canonical != text.as_str() {
        *text = canonical.into();
    }
    Ok(())
}

/// Free-form values keep what they hold; maps in them sort, as Go's do.
fn free_form(kind: AnyKind, value: &mut Value, place: &Place<'_>) -> Result<(), Error> {
    let fits = match kind {
        AnyKind::Json | AnyKind::RawExtension | AnyKind::FieldsV1 => true,
        AnyKind::SchemaOrBool => matches!(value, Value::Object(_) | Value::Bool(_)),
        AnyKind::SchemaOrArray | AnyKind::SchemaOrStrings => matches!(value, Value::Object(_) | Value::Array(_)),
    };
    if fits { Ok(()) } else { Err(mismatch(value, place, || go_type(&Shape::Any(kind)))) }
}
