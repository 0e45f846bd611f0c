//! Converts the results of expressions, apply configurations and JSON patch operations, to trees.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flotilla_cel::library::standard::duration_text;
use flotilla_cel::value::{Map, Tree, Value};
use flotilla_cel::with_room;
use flotilla_proto::value::{Float, Map as Members};

use crate::field::quote;
use crate::limits;
use flotilla_proto::limits::JSON_DEPTH_MAX;

/// Integers above this become text in JSON, since readers may not represent such numbers exactly.
const EXACT_MAX: u64 = 1 << 53;

/// A JSON patch operation.
#[derive(Debug, Clone, PartialEq)]
pub struct PatchOperation {
    /// The operation, such as `add`. Not checked here.
    pub op: String,
    /// The target path.
    pub path: String,
    /// The source path. May be empty.
    pub from: String,
    /// The value, if the operation has one.
    pub value: Option<Tree>,
}

/// The remaining size and depth of a result. The same value may occur in many places, and each becomes a copy in the
/// tree. Variables may nest deeper than a single expression.
#[derive(Debug, Clone, Copy)]
struct Room {
    bytes: usize,
    levels: usize,
}

impl Room {
    /// Returns the bounds of an object in a body.
    const fn new() -> Self {
        Self { bytes: limits::BODY_BYTES, levels: JSON_DEPTH_MAX }
    }

    /// Subtracts the size of a value, without the values in it.
    fn take(&mut self, bytes: usize) -> Result<(), String> {
        let left = self.bytes.checked_sub(bytes + 1);
        self.bytes = left.ok_or_else(|| format!("what it makes has more than {} bytes", limits::BODY_BYTES))?;
        Ok(())
    }

    /// Runs some work one level deeper.
    fn below<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T, String>) -> Result<T, String> {
        let left = self.levels.checked_sub(1);
        self.levels = left.ok_or_else(|| format!("what it makes nests more than {JSON_DEPTH_MAX} levels deep"))?;
        let done = work(self);
        self.levels += 1;
        done
    }
}

/// Converts a list of operations.
///
/// # Errors
/// An item is not an operation, in the reference's words; or the operations exceed the size or depth of a body.
pub fn operations(value: &Value<'_>) -> Result<Vec<PatchOperation>, String> {
    const WHAT: &str = "type mismatch: JSONPatchType.expression should evaluate to array of JSONPatch";
    let list = value.as_list().ok_or("type mismatch: JSONPatchType.expression should evaluate to array")?;
    let (mut operations, mut room) = (Vec::new(), Room::new());
    for item in list.iter() {
        let item = item.map_err(|error| error.to_string())?;
        let Some(fields) = item.as_map().filter(|map| map.object().is_some()) else { return Err(WHAT.to_owned()) };
        operations.push(operation(fields, &mut room)?);
    }
    Ok(operations)
}

fn operation(fields: &Map<'_>, room: &mut Room) -> Result<PatchOperation, String> {
    let text = |name: &str, room: &mut Room| -> Result<String, String> {
        let found = fields.find_field(name).map_err(|error| error.to_string())?;
        let text = found.as_ref().and_then(Value::as_str).unwrap_or_default();
        room.take(text.len())?;
        Ok(text.to_owned())
    };
    let value = fields.find_field("value").map_err(|error| error.to_string())?;
    if let Some(object) = value.as_ref().filter(|value| object_name(value).is_some()) {
        misnamed(object)?;
    }
    let unfit = |why| format!("JSONPath valueExpression evaluated to a type that could not marshal to JSON: {why}");
    let value = value.map(|value| with_room(|| node(&value, true, room))).transpose().map_err(unfit)?;
    Ok(PatchOperation { op: text("op", room)?, path: text("path", room)?, from: text("from", room)?, value })
}

/// Returns the type name of an object that an expression created.
fn object_name<'v>(value: &'v Value<'_>) -> Option<&'v str> {
    value.as_map()?.object().map(|name| &**name)
}

/// Checks that each object has the type of the field that it is assigned to.
///
/// # Errors
/// Some objects have another type: the text names all of them, in the reference's words. Or the object exceeds the size
/// or depth of a body.
pub fn misnamed(object: &Value<'_>) -> Result<(), String> {
    let mut wrong = Vec::new();
    with_room(|| look(object, object_name(object).unwrap_or_default(), &mut wrong, &mut Room::new()))?;
    if wrong.is_empty() { Ok(()) } else { Err(format!("type mismatch: {}", wrong.join("\n"))) }
}

fn look(value: &Value<'_>, path: &str, wrong: &mut Vec<String>, room: &mut Room) -> Result<(), String> {
    room.take(0)?;
    match value {
        Value::Map(map @ Map::Made(entries)) => {
            let name = map.object();
            if let Some(name) = name.filter(|name| ***name != *path) {
                let (found, wanted) = (quote(name), quote(path));
                let why = "which matches field name path from root Object type";
                let text = format!("unexpected type name {found}, expected {wanted}, {why}");
                room.take(text.len())?;
                wrong.push(text);
            }
            room.below(|room| {
                entries.iter().try_for_each(|(key, value)| match (name, key.as_str()) {
                    (Some(_), Some(field)) => look(value, &format!("{path}.{field}"), wrong, room),
                    _ => look(value, path, wrong, room),
                })
            })
        }
        Value::List(list) => {
            room.below(|room| list.iter().flatten().try_for_each(|item| look(&item, path, wrong, room)))
        }
        _ => Ok(()),
    }
}

/// Converts a value to a tree. With `as_json`, integers that JSON cannot represent exactly become text.
///
/// # Errors
/// The value has no JSON form, or exceeds the size or depth of a body.
pub fn tree(value: &Value<'_>, as_json: bool) -> Result<Tree, String> {
    with_room(|| node(value, as_json, &mut Room::new()))
}

fn node(value: &Value<'_>, as_json: bool, room: &mut Room) -> Result<Tree, String> {
    room.take(0)?;
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
        Value::String(text) => {
            room.take(text.len())?;
            Tree::from(&**text)
        }
        Value::Bytes(bytes) => {
            room.take(bytes.len())?;
            STANDARD.encode(bytes).into()
        }
        Value::Timestamp(time) => time.at_offset(0).to_string().into(),
        Value::Duration(span) => duration_text(*span).into(),
        Value::List(list) => room.below(|room| {
            let items = list.iter().map(|item| node(&item.map_err(|error| error.to_string())?, as_json, room));
            Ok(Tree::Array(items.collect::<Result<_, _>>()?))
        })?,
        Value::Map(map) => room.below(|room| members(map, as_json, room))?,
        Value::Optional(Some(value)) => room.below(|room| node(value, as_json, room))?,
        Value::Optional(None) => Tree::Null,
        other => return Err(format!("type conversion error from '{}' to JSON", other.type_of().runtime_name())),
    })
}

fn members(map: &Map<'_>, as_json: bool, room: &mut Room) -> Result<Tree, String> {
    let mut members = Members::new();
    for (key, value) in map.iter() {
        let of = key.type_of();
        let unfit = || format!("map key of type {} is not a string", of.runtime_name());
        let key = key.as_str().ok_or_else(unfit)?;
        room.take(key.len())?;
        members.insert(key, node(&value.map_err(|error| error.to_string())?, as_json, room)?);
    }
    Ok(Tree::Object(members))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_that_are_too_deep_or_too_large_are_refused() {
        let nested = |levels: usize| (0..levels).fold(Value::Int(1), |value, _| Value::list(vec![value]));
        assert!(tree(&nested(JSON_DEPTH_MAX), false).is_ok());
        let why = tree(&nested(JSON_DEPTH_MAX + 1), false).unwrap_err();
        assert_eq!(why, "what it makes nests more than 512 levels deep");
        assert_eq!(misnamed(&nested(JSON_DEPTH_MAX + 1)).unwrap_err(), why);
        // Each level occurs twice in the level around it.
        let doubled = (0..60).fold(Value::Int(1), |value, _| Value::list(vec![value.clone(), value]));
        let why = tree(&doubled, false).unwrap_err();
        assert_eq!(why, "what it makes has more than 3145728 bytes");
        assert_eq!(misnamed(&doubled).unwrap_err(), why);
        let text = Value::from("x".repeat(1 << 20));
        assert!(tree(&Value::list(vec![text.clone(); 2]), true).is_ok());
        assert!(tree(&Value::list(vec![text; 3]), true).is_err());
    }
}
