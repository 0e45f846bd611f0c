//! Strategic merge patch: maps are merged by the fields of the type, lists by their merge keys, and both by directives
//! in the patch.
//!
//! Sources: "Update API Objects in Place Using kubectl patch" of the Kubernetes documentation, and the design proposals
//! "strategic merge patch" and "preserve order in strategic merge patch". Invalid patches get the reference's answer,
//! mostly a 500 with a text that states the fault.

use flotilla_proto::schema::{Patch as MergeRules, Presence, Shape, Type};
use flotilla_proto::value::{Map, Value};

use super::go_text;
use super::lists;
use super::rejected;
use crate::status::ApiError;

/// The directive of a map or list item: `replace`, `delete` or `merge`.
pub const DIRECTIVE: &str = "$patch";
/// The directive that lists the members of a map that stay.
pub const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_PREFIX: &str = "$deleteFromPrimitiveList";
/// Begins the name of a member that states the order of a list.
pub const ORDER_PREFIX: &str = "$setElementOrder";

const BAD_ORDER: Error = Error::Malformed("invalid patch format of setElementOrder list");

/// The reason why a patch cannot be applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A directive has the wrong form: 400.
    #[error("{0}")]
    Malformed(&'static str),
    /// A list is an item of a list: 422.
    #[error("lists of lists are not supported")]
    ListOfLists,
    /// Any other reason: 500 with this text.
    #[error("{0}")]
    Other(String),
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        match error {
            Error::Malformed(message) => Self::bad_request(message),
            Error::ListOfLists => rejected(),
            Error::Other(message) => Self::unknown(message),
        }
    }
}

/// Returns the error for an unexpected JSON type, in Go's words.
pub fn bad_type(expected: &str, found: &Value) -> Error {
    Error::Other(format!("expected a {expected}, but received a {}", go_text::type_of(found)))
}

/// Returns the error for an item without the merge key of its list.
pub fn no_key(item: &Map, key: &str) -> Error {
    Error::Other(format!("map: {} does not contain declared merge key: {key}", go_text::map(item)))
}

/// Returns the error for an unknown directive.
pub fn bad_directive(directive: &Value, map: &Map) -> Error {
    let (directive, map) = (go_text::value(directive), go_text::map(map));
    Error::Other(format!("unknown patch type: {directive} in map: {map}"))
}

/// The schema of the values that are merged.
#[derive(Clone, Copy)]
pub enum Schema<'a> {
    /// A struct. Its fields have merge rules.
    Struct(&'a Type),
    /// Another Go kind. Its members have no merge rules.
    Other(&'static str),
}

impl<'a> Schema<'a> {
    fn of(shape: &'a Shape) -> Self {
        match shape {
            Shape::Struct(of) => Self::Struct(of),
            Shape::List(_) | Shape::Bytes => Self::Other("slice"),
            Shape::Map(_) => Self::Other("map"),
            Shape::Bool => Self::Other("bool"),
            Shape::Int32 => Self::Other("int32"),
            Shape::Int64 => Self::Other("int64"),
            Shape::Double => Self::Other("float64"),
            Shape::String { .. } => Self::Other("string"),
            _ => Self::Other("struct"),
        }
    }

    /// Returns the Go kind of the values.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Struct(_) => "struct",
            Self::Other(kind) => kind,
        }
    }

    fn field(self, key: &str) -> Result<&'a flotilla_proto::schema::Field, Error> {
        let of = match self {
            Self::Struct(of) => of,
            Self::Other(kind) => {
                let message = format!("merging an object in json but data type is not struct, instead is: {kind}");
                return Err(Error::Other(message));
            }
        };
        let fold = || of.fields.iter().find(|field| field.name.eq_ignore_ascii_case(key));
        of.field(key).map(|(_, field)| field).or_else(fold).ok_or_else(|| {
            Error::Other(format!("unable to find api field in struct {} for the json field {key:?}", of.name))
        })
    }

    /// Returns the schema and the rules of a member that is an object.
    ///
    /// # Errors
    /// If the values are no struct, or the struct has no such field.
    pub fn member(self, key: &str) -> Result<(Self, MergeRules), Error> {
        let field = self.field(key)?;
        Ok((Self::of(&field.shape), field.patch))
    }

    /// Returns the schema of the items of a member that is a list, and the rules of the member.
    ///
    /// # Errors
    /// As for [`Schema::member`], or if the field is not a list, or a list of lists.
    pub fn items(self, key: &str) -> Result<(Self, MergeRules), Error> {
        let field = self.field(key)?;
        match &field.shape {
            Shape::List(list) if matches!(list.item, Shape::List(_)) => {
                Err(Error::Other("unexpected slice of slice".to_owned()))
            }
            Shape::List(list) => Ok((Self::of(&list.item), field.patch)),
            shape if field.presence == Presence::Pointer => Ok((Self::of(shape), field.patch)),
            _ => Err(Error::Other(format!("expected slice or array type, but got: {}", self.kind()))),
        }
    }
}

/// Returns an object of type `of` with the patch applied.
///
/// # Errors
/// See [`Error`].
pub fn apply(of: &Type, target: Value, patch: Map) -> Result<Value, Error> {
    let target = match target {
        Value::Object(map) => map,
        _ => Map::new(),
    };
    merge_map(target, patch, Schema::Struct(of)).map(Value::Object)
}

/// Merges a map of the patch into that of the target.
///
/// # Errors
/// See [`Error`].
pub fn merge_map(mut target: Map, mut patch: Map, schema: Schema<'_>) -> Result<Map, Error> {
    if let Some(directive) = patch.get(DIRECTIVE) {
        return match directive.as_str() {
            Some("replace") => {
                patch.remove(DIRECTIVE);
                Ok(patch)
            }
            Some("delete") => Ok(Map::new()),
            _ => Err(bad_directive(directive, &patch)),
        };
    }
    retain_keys(&mut target, &mut patch)?;
    set_element_orders(&mut target, &mut patch, schema)?;
    for (key, value) in patch {
        if let Some(name) = prefixed(&key, DELETE_PREFIX) {
            let name = name.ok_or(Error::Malformed("invalid patch format of primitive list"))?;
            delete_from_list(&mut target, name, value, schema)?;
        } else {
            merge_member(&mut target, &key, value, schema)?;
        }
    }
    Ok(target)
}

/// Returns the name that follows a directive's prefix. Returns `None` if the key does not have the prefix. The inner
/// `None` means that no slash separates the prefix and the name.
pub fn prefixed<'k>(key: &'k str, prefix: &str) -> Option<Option<&'k str>> {
    key.strip_prefix(prefix).map(|rest| rest.strip_prefix('/'))
}

fn merge_member(target: &mut Map, key: &str, value: Value, schema: Schema<'_>) -> Result<(), Error> {
    if value.is_null() {
        target.remove(key);
        return Ok(());
    }
    match (target.get_mut(key), value) {
        (Some(Value::Object(place)), Value::Object(patch)) => {
            let (inner, rules) = schema.member(key)?;
            *place = if rules.replace { patch } else { merge_map(std::mem::take(place), patch, inner)? };
        }
        (Some(Value::Array(place)), Value::Array(patch)) => {
            let (inner, rules) = schema.items(key)?;
            *place = lists::merge(std::mem::take(place), patch, inner, rules)?;
        }
        (Some(place), value) if same_scalar_type(place, &value) => *place = value,
        (_, mut value) => {
            discard_nulls(&mut value);
            match without_directives(value) {
                Some(value) => target.insert(key, value),
                None => target.remove(key),
            };
        }
    }
    Ok(())
}

fn same_scalar_type(a: &Value, b: &Value) -> bool {
    std::mem::discriminant(a) == std::mem::discriminant(b)
}

fn delete_from_list(target: &mut Map, name: &str, value: Value, schema: Schema<'_>) -> Result<(), Error> {
    if value.is_null() {
        target.remove(name);
        return Ok(());
    }
    match (target.get_mut(name), value) {
        (Some(Value::Array(place)), Value::Array(gone)) => {
            let (inner, rules) = schema.items(name)?;
            *place = lists::delete(std::mem::take(place), gone, inner, rules)?;
            Ok(())
        }
        (Some(place), value) if same_scalar_type(place, &value) => merge_member(target, name, value, schema),
        _ => Ok(()),
    }
}

/// Carries out `$retainKeys`: removes the keys of the target that it does not list. The patch may set only listed keys.
fn retain_keys(target: &mut Map, patch: &mut Map) -> Result<(), Error> {
    const BAD: Error = Error::Malformed("invalid patch format of retainKeys");
    let Some(directive) = patch.remove(RETAIN_KEYS) else { return Ok(()) };
    let Value::Array(keep) = directive else { return Err(BAD) };
    let mut keep: Vec<&str> = keep.iter().filter_map(Value::as_str).collect();
    keep.sort_unstable();
    let kept = |key: &str| keep.binary_search(&key).is_ok();
    let foreign = |(key, value): (&str, &Value)| {
        !value.is_null() && !key.starts_with(DELETE_PREFIX) && !key.starts_with(ORDER_PREFIX) && !kept(key)
    };
    if patch.iter().any(foreign) {
        return Err(BAD);
    }
    target.retain(|key, _| kept(key));
    Ok(())
}

/// Carries out `$setElementOrder/x`: merges the lists `x` and sorts their items into the stated order.
fn set_element_orders(target: &mut Map, patch: &mut Map, schema: Schema<'_>) -> Result<(), Error> {
    if !patch.keys().any(|key| key.starts_with(ORDER_PREFIX)) {
        return Ok(());
    }
    let keys: Vec<String> = patch.keys().filter(|key| key.starts_with(ORDER_PREFIX)).map(str::to_owned).collect();
    for key in keys {
        let order = match patch.remove(&key) {
            Some(Value::Array(order)) => order,
            Some(other) => return Err(bad_type("[]interface {}", &other)),
            None => continue,
        };
        let name = prefixed(&key, ORDER_PREFIX).flatten().ok_or(BAD_ORDER)?;
        let list_of = |value: Option<Value>| match value {
            None => Ok(None),
            Some(Value::Array(items)) => Ok(Some(items)),
            Some(other) => Err(bad_type("[]interface {}", &other)),
        };
        let current = list_of(target.get(name).cloned())?;
        let changes = list_of(patch.get(name).cloned())?;
        let (inner, rules) = schema.items(name)?;
        lists::check_order(changes.as_deref().unwrap_or(&[]), &order, rules)?;
        if current.is_none() && changes.is_none() {
            continue;
        }
        let ordered = lists::merge_ordered(current, changes, &order, inner, rules)?;
        target.insert(name, ordered);
        patch.remove(name);
    }
    Ok(())
}

/// Removes maps with a directive, at any depth. Returns `None` if the value itself is one.
pub fn without_directives(value: Value) -> Option<Value> {
    match value {
        Value::Object(map) if map.contains_key(DIRECTIVE) => None,
        Value::Object(map) => Some(
            map.into_iter().filter_map(|(key, value)| Some((key, without_directives(value)?))).collect::<Map>().into(),
        ),
        Value::Array(items) => Some(Value::Array(items.into_iter().filter_map(without_directives).collect())),
        scalar => Some(scalar),
    }
}

/// Removes members that are `null`, at any depth.
pub fn discard_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => map.retain(|_, value| {
            discard_nulls(value);
            !value.is_null()
        }),
        Value::Array(items) => items.iter_mut().for_each(discard_nulls),
        _ => {}
    }
}
