//! What expressions say is to be changed: apply configurations and operations of JSON patches, as trees.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flotilla_cel::library::standard::{duration_text, timestamp_text};
use flotilla_cel::value::{Map, Tree, Value};
use flotilla_proto::value::{Float, Map as Members};

use crate::field::quote;

/// Above this, JSON has a number as text.
const EXACT_MAX: u64 = 1 << 53;

/// An operation of a JSON patch.
#[derive(Debug, Clone, PartialEq)]
pub struct Operation {
    /// As `add`; it may be anything.
    pub op: String,
    /// Where.
    pub path: String,
    /// From where; may be empty.
    pub from: String,
    /// What, if anything.
    pub value: Option<Tree>,
}

/// The operations that a list of them says.
///
/// # Errors
/// In the reference's words, what of it is none.
pub fn operations(value: &Value<'_>) -> Result<Vec<Operation>, String> {
    const WHAT: &str = "type mismatch: JSONPatchType.expression should evaluate to array of JSONPatch";
    let list = value.as_list().ok_or("type mismatch: JSONPatchType.expression should evaluate to array")?;
    let mut operations = Vec::with_capacity(list.len());
    for item in list.iter() {
        let item = item.map_err(|error| error.to_string())?;
        let Some(fields) = item.as_map().filter(|map| map.object().is_some()) else { return Err(WHAT.to_owned()) };
        operations.push(operation(fields)?);
    }
    Ok(operations)
}

fn operation(fields: &Map<'_>) -> Result<Operation, String> {
    let text = |name: &str| -> Result<String, String> {
        let found = fields.find_field(name).map_err(|error| error.to_string())?;
        Ok(found.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned())
    };
    let value = fields.find_field("value").map_err(|error| error.to_string())?;
    if let Some(object) = value.as_ref().filter(|value| object_name(value).is_some()) {
        misnamed(object)?;
    }
    let unfit = |why| format!("JSONPath valueExpression evaluated to a type that could not marshal to JSON: {why}");
    let value = value.map(|value| tree(&value, true)).transpose().map_err(unfit)?;
    Ok(Operation { op: text("op")?, path: text("path")?, from: text("from")?, value })
}

/// The name of the type of an object that an expression made.
fn object_name<'v>(value: &'v Value<'_>) -> Option<&'v str> {
    value.as_map()?.object().map(|name| &**name)
}

/// Says where the type of an object is not named after the field that it is put into.
///
/// # Errors
/// In the reference's words.
pub fn misnamed(object: &Value<'_>) -> Result<(), String> {
    let mut wrong = Vec::new();
    look(object, object_name(object).unwrap_or_default(), &mut wrong);
    if wrong.is_empty() { Ok(()) } else { Err(format!("type mismatch: {}", wrong.join("\n"))) }
}

fn look(value: &Value<'_>, path: &str, wrong: &mut Vec<String>) {
    match value {
        Value::Map(map @ Map::Made(entries)) => {
            let name = map.object();
            if let Some(name) = name.filter(|name| ***name != *path) {
                let (found, wanted) = (quote(name), quote(path));
                let why = "which matches field name path from root Object type";
                wrong.push(format!("unexpected type name {found}, expected {wanted}, {why}"));
            }
            for (key, value) in entries.iter() {
                match (name, key.as_str()) {
                    (Some(_), Some(field)) => look(value, &format!("{path}.{field}"), wrong),
                    _ => look(value, path, wrong),
                }
            }
        }
        Value::List(list) => list.iter().flatten().for_each(|item| look(&item, path, wrong)),
        _ => {}
    }
}

/// A value as a tree; `as_json` has numbers that JSON cannot hold exactly as text.
///
/// # Errors
/// Where it has no form in JSON.
pub fn tree(value: &Value<'_>, as_json: bool) -> Result<Tree, String> {
    let number = |number: i64| {
        if as_json && number.unsigned_abs() > EXACT_MAX { number.to_string().into() } else { Tree::Int(number) }
    };
    Ok(match value {
        Value::Null => Tree::Null,
        Value::Bool(truth) => Tree::Bool(*truth),
        Value::Int(int) => number(*int),
        Value::Uint(uint) => i64::try_from(*uint).map_or_else(|_| uint.to_string().into(), number),
        Value::Double(double) => {
            let unfit = || format!("unsupported value: {}", flotilla_cel::double_text(*double));
            Tree::Float(Float::new(*double).ok_or_else(unfit)?)
        }
        Value::String(text) => Tree::from(&**text),
        Value::Bytes(bytes) => STANDARD.encode(bytes).into(),
        Value::Timestamp(time) => timestamp_text(*time).into(),
        Value::Duration(span) => duration_text(*span).into(),
        Value::List(list) => {
            let items = list.iter().map(|item| tree(&item.map_err(|error| error.to_string())?, as_json));
            Tree::Array(items.collect::<Result<_, _>>()?)
        }
        Value::Map(map) => {
            let mut members = Members::new();
            for (key, value) in map.iter() {
                let of = key.type_of();
                let unfit = || format!("map key of type {} is not a string", of.runtime_name());
                let key = key.as_str().ok_or_else(unfit)?;
                members.insert(key, tree(&value.map_err(|error| error.to_string())?, as_json)?);
            }
            Tree::Object(members)
        }
        Value::Optional(Some(value)) => tree(value, as_json)?,
        Value::Optional(None) => Tree::Null,
        other => return Err(format!("type conversion error from '{}' to JSON", other.type_of().runtime_name())),
    })
}
