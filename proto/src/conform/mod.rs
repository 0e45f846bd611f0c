//! Turns any JSON value into an object of a type, as Go's decoder and encoder together would leave it.
//!
//! One walk finds unknown fields and wrong types, drops values as `omitempty` does, adds fields that are always
//! encoded, makes quantities and times canonical, and puts fields into the order of the catalogue. Later stages can
//! rely on that form: two conformed values are equal exactly if their encodings are equal.

#[cfg(test)]
mod built_in_tests;
mod emptiness;
mod scalar;
mod value_path;

pub use emptiness::{forget_empty, forget_equal};
pub use scalar::go_type;

use self::emptiness::is_forgotten;
use self::scalar::{mismatch, scalar, schema_place};
use self::value_path::{PathStep, ValuePath};
use crate::catalogue;
use crate::complaints::Complaints;
use crate::quantity;
use crate::schema::{AnyKind, Field, List, Map as MapShape, Presence, Ref, Shape, Text, Type};
use crate::time;
use crate::value::{Map, Str, Value};

/// The reason why a value does not conform to its type, in the words of the reference's decoder.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A JSON value of the wrong type, or a number that does not fit.
    #[error("json: cannot unmarshal {found} into Go {path} of type {wanted}")]
    Type {
        /// The value that was found: `string`, `number 2.5`.
        found: String,
        /// `struct field PodSpec.spec.containers`, or `value` at the top.
        path: String,
        /// The Go type.
        wanted: String,
    },
    /// The text is not a quantity.
    #[error(transparent)]
    Quantity(#[from] quantity::Error),
    /// The text is not a time.
    #[error(transparent)]
    Time(#[from] time::Error),
    /// The text is not a duration.
    #[error("time: invalid duration {0:?}")]
    Duration(String),
    /// An error in an embedded object of a custom resource.
    #[error("{0}")]
    Embedded(String),
    /// Neither a schema nor a boolean, where a definition of a resource allows both.
    #[error("boolean or JSON schema expected")]
    SchemaOrBool,
    /// The text is not base64.
    #[error("illegal base64 data at input byte {0}")]
    Base64(usize),
}

/// Conforms `value` to a type. Returns the paths of fields that the type does not have. All of them are dropped, even
/// if there are too many to be returned.
pub fn conform(of: &Type, value: &mut Value) -> Result<Vec<String>, Error> {
    conform_changed(of, value, &Value::Null)
}

/// The same as [`conform`], for a value that was made from a conformed one: parts that both share are skipped.
pub fn conform_changed(of: &Type, value: &mut Value, before: &Value) -> Result<Vec<String>, Error> {
    let mut walk = Walk { unknown: Some(Complaints::default()), first: None };
    let root = ValuePath { parent: None, step: PathStep::Root };
    walk.structure(of, value, before, &root)?;
    match walk.first {
        Some(error) => Err(error),
        None => Ok(walk.unknown.map(Complaints::into_vec).unwrap_or_default()),
    }
}

/// Conforms a scalar that is decoded by itself, so that its errors do not state its path.
pub fn conform_scalar(shape: &Shape, value: &mut Value) -> Result<(), Error> {
    scalar(shape, value, &ValuePath { parent: None, step: PathStep::Root })
}

/// Returns the value of a type in which no field is set.
pub fn zero(of: &Type) -> Value {
    let mut value = Value::object();
    // An empty object conforms to every type.
    let _ = conform(of, &mut value);
    value
}

struct Walk {
    /// The paths of unknown fields; `None` if nobody asks for them.
    unknown: Option<Complaints>,
    /// The first error that does not end the walk.
    first: Option<Error>,
}

/// The methods return whether a value and everything in it has the form in which it is stored. That holds until the
/// value is changed: see [`Map::mark_conformed`].
impl Walk {
    fn structure(&mut self, of: &Type, value: &mut Value, before: &Value, path: &ValuePath<'_>) -> Result<bool, Error> {
        if value.is_same(before) {
            return Ok(false);
        }
        let Value::Object(map) = value else {
            return self.go_on(mismatch(value, path, || format!("{}.{}", of.package, of.name)));
        };
        debug_assert!(of.fields.len() <= 128, "the set of seen fields has 128 places");
        let (mut seen, mut ordered, mut next) = (0_u128, true, 0);
        let mut conformed = true;
        let mut failure = None;
        map.retain(|key, member| {
            if failure.is_some() {
                return true;
            }
            let Some(at) = of.position(key, next) else {
                if let Some(unknown) = self.unknown.as_mut().filter(|unknown| !unknown.is_full()) {
                    let here = ValuePath { parent: Some(path), step: PathStep::Key(key) };
                    let mut path = String::new();
                    here.path(&mut path);
                    unknown.add(path);
                }
                return false;
            };
            let field = &of.fields[at];
            let here = ValuePath { parent: Some(path), step: PathStep::Field(of, key) };
            match self.field(field, member, before.at(&[key]), &here) {
                Ok(Some(is_conformed)) => {
                    conformed &= is_conformed;
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
        ordered &= add_missing(of, map, seen, next);
        if !ordered {
            map.sort_by_rank(|key| of.position(key, 0).unwrap_or(usize::MAX));
        }
        if conformed {
            map.mark_conformed();
        }
        Ok(conformed)
    }

    /// Conforms a member. Returns `None` when it must be dropped.
    fn field(
        &mut self,
        field: &Field,
        value: &mut Value,
        before: &Value,
        path: &ValuePath<'_>,
    ) -> Result<Option<bool>, Error> {
        if value.is_null() {
            return Ok(None);
        }
        let conformed = self.shape(&field.shape, value, before, path)?;
        Ok(match field.presence {
            Presence::OmitEmpty => (!is_empty(value)).then_some(conformed),
            Presence::Always | Presence::Pointer | Presence::AlwaysPointer => {
                Some(conformed && !is_forgotten(field, value))
            }
        })
    }

    fn shape(&mut self, shape: &Shape, value: &mut Value, before: &Value, path: &ValuePath<'_>) -> Result<bool, Error> {
        match shape {
            Shape::Struct(of) => return self.structure(of, value, before, path),
            Shape::List(list) => return self.list((list, shape), value, before, path),
            Shape::Map(map) => return self.map((map, shape), value, before, path),
            Shape::Any(kind) if kind.holds_schemas() => return nested_schema(*kind, value, before, path),
            _ => {}
        }
        match scalar(shape, value, path) {
            Ok(()) => Ok(true),
            Err(error) if decodes_itself(shape) => Err(error),
            Err(error) => self.go_on(error),
        }
    }

    /// Notes an error, and walks on, as Go's decoder does: a later error of a type with its own decoder is reported
    /// instead.
    fn go_on(&mut self, error: Error) -> Result<bool, Error> {
        self.first.get_or_insert(error);
        Ok(false)
    }

    fn list(
        &mut self,
        (list, shape): (&List, &Shape),
        value: &mut Value,
        before: &Value,
        path: &ValuePath<'_>,
    ) -> Result<bool, Error> {
        let Value::Array(items) = value else {
            return self.go_on(mismatch(value, path, || go_type(shape)));
        };
        self.items(&list.item, list.pointer_items, items, before, path)
    }

    fn items(
        &mut self,
        shape: &Shape,
        are_pointers: bool,
        items: &mut [Value],
        before: &Value,
        path: &ValuePath<'_>,
    ) -> Result<bool, Error> {
        let mut conformed = true;
        for (index, item) in items.iter_mut().enumerate() {
            if item.is_null() {
                if !are_pointers {
                    *item = zero_of(shape);
                }
                continue;
            }
            let here = ValuePath { parent: Some(path), step: PathStep::Index(index) };
            conformed &= self.shape(shape, item, item_of(before, index), &here)?;
        }
        Ok(conformed)
    }

    fn map(
        &mut self,
        (map, shape): (&MapShape, &Shape),
        value: &mut Value,
        before: &Value,
        path: &ValuePath<'_>,
    ) -> Result<bool, Error> {
        if value.is_same(before) {
            return Ok(false);
        }
        let Value::Object(members) = value else {
            return self.go_on(mismatch(value, path, || go_type(shape)));
        };
        let mut conformed = true;
        for (key, member) in members.iter_mut() {
            if member.is_null() {
                *member = match map.value {
                    // Storage does not distinguish empty from nil.
                    Shape::Bytes => Value::Str(Str::const_new("")),
                    _ => zero_of(&map.value),
                };
                continue;
            }
            let here = ValuePath { parent: Some(path), step: PathStep::Key(key) };
            conformed &= self.shape(&map.value, member, before.at(&[key]), &here)?;
        }
        members.sort();
        Ok(conformed)
    }
}

/// Conforms a schema inside a schema. A decoder of its own reads it: that decoder drops unknown fields without a word,
/// and its first error ends the decoding.
fn nested_schema(kind: AnyKind, value: &mut Value, before: &Value, path: &ValuePath<'_>) -> Result<bool, Error> {
    let path = ValuePath { parent: Some(path), step: PathStep::Decoder };
    schema_place(kind, value)?;
    let Some(of) = catalogue::json_schema() else { return Ok(true) };
    let mut walk = Walk { unknown: None, first: None };
    let conformed = match value {
        Value::Array(items) => {
            let item = if kind == AnyKind::SchemaOrStrings {
                Shape::String { named: Text::default() }
            } else {
                Shape::Struct(Ref::Static(of))
            };
            walk.items(&item, false, items, before, &path)?
        }
        Value::Object(_) => walk.structure(of, value, before, &path)?,
        _ => true,
    };
    walk.first.map_or(Ok(conformed), Err)
}

/// Adds the fields that are always there and whose bits are not in `seen`; `next` follows the last member's field.
/// Returns whether the added members are in the order of the schema.
fn add_missing(of: &Type, map: &mut Map, seen: u128, mut next: usize) -> bool {
    let mut ordered = true;
    for (at, field) in of.fields.iter().enumerate().filter(|(at, _)| seen & (1 << at) == 0) {
        let zero = match field.presence {
            Presence::Always => zero_of(&field.shape),
            Presence::AlwaysPointer => Value::Null,
            _ => continue,
        };
        ordered &= next <= at;
        next = at + 1;
        map.insert(Str::from(&*field.name), zero);
    }
    ordered
}

/// Returns whether the Go type has a decoder of its own. An error of such a type ends the decoding.
fn decodes_itself(shape: &Shape) -> bool {
    use Shape::{Any, Duration, IntOrString, MicroTime, Quantity, Time};
    matches!(shape, Any(_) | Duration | IntOrString | MicroTime | Quantity | Time)
}

/// Returns an item of a list; null if there is none.
pub(crate) fn item_of(list: &Value, index: usize) -> &Value {
    list.as_array().and_then(|items| items.get(index)).unwrap_or(&Value::Null)
}

/// Returns whether Go drops a value under `omitempty`.
pub(crate) fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) | Value::Int(0) => true,
        Value::Float(number) => number.get() == 0.0,
        Value::Str(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::Bool(true) | Value::Int(_) | Value::Hole(_) => false,
    }
}

pub(crate) fn holds_structs(shape: &Shape) -> bool {
    matches!(shape, Shape::Struct(_) | Shape::List(_) | Shape::Map(_))
}

/// Returns the value that Go encodes for an unset field that is always encoded.
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
