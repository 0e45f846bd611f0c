//! JSON Patch (RFC 6902), as lenient as the reference: `replace` and `test` accept an absent member.

use flotilla_proto::json::{members_of_items, parse_tracking, to_vec};
use flotilla_proto::value::{Hole, Map, Value};

use super::pointer::Failed::{self, DoesNotApply};
use super::pointer::{PatchCost, PatchLocation, PatchResult, member_mut, unescape};
use super::{decoding, rejected, unmarshal};
use crate::field::quote;
use crate::limits;
use crate::status::{ApiError, ApiResult};
use flotilla_proto::limits::JSON_DEPTH_MAX;

/// The operations of a patch, in order.
#[derive(Debug, Clone)]
pub struct Operations(Vec<PatchOperation>);

#[derive(Debug, Clone)]
pub(super) struct PatchOperation {
    pub(super) verb: Verb,
    /// The verb as the client spelled it, if it is unknown.
    pub(super) unknown: Option<String>,
    pub(super) path: Option<String>,
    pub(super) from: Option<String>,
    value: Option<Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    Add,
    Remove,
    Replace,
    Move,
    Copy,
    Test,
    Unknown,
}

impl Verb {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::Remove => "remove",
            Self::Replace => "replace",
            Self::Move => "move",
            Self::Copy => "copy",
            Self::Test => "test",
            Self::Unknown => "unknown",
        }
    }
}

const ENDLESS: &str = "Request entity too large: the operations of the patch move too many values";

impl Operations {
    /// Reads a body as a list of operations. Returns them with the complaints of strict decoding.
    ///
    /// # Errors
    /// 400 if the body is no list of operations, 413 if there are too many.
    pub fn read(body: Value, checked: bool) -> ApiResult<(Self, Vec<String>)> {
        let (list_type, item_type) = match checked {
            true => ("[]handlers.jsonPatchOp", "handlers.jsonPatchOp"),
            false => ("jsonpatch.Patch", "jsonpatch.Operation"),
        };
        let refuse = |why: String| if checked { decoding(&why) } else { ApiError::bad_request(why) };
        let items = match body {
            Value::Array(items) => items,
            Value::Null => Vec::new(),
            other => return Err(refuse(unmarshal(&other, list_type))),
        };
        let mut complaints = Vec::new();
        let mut operations = Vec::with_capacity(items.len().min(limits::JSON_PATCH_OPERATIONS));
        for (n, item) in items.into_iter().enumerate() {
            let map = match item {
                Value::Object(map) => map,
                Value::Null => Map::new(),
                other => return Err(refuse(unmarshal(&other, item_type))),
            };
            if checked {
                check_members(n, &map, &mut complaints).map_err(|why| decoding(&why))?;
            }
            operations.push(PatchOperation::read(map));
        }
        if operations.len() > limits::JSON_PATCH_OPERATIONS {
            let message = format!(
                "Request entity too large: The allowed maximum operations in a JSON patch is {}, got {}",
                limits::JSON_PATCH_OPERATIONS,
                operations.len()
            );
            return Err(ApiError::new(413, "RequestEntityTooLarge", message));
        }
        Ok((Self(operations), complaints))
    }

    /// Reads the patch of a webhook.
    ///
    /// # Errors
    /// If the text is not a JSON patch. The error has the reference's words.
    pub fn parse(text: &[u8]) -> Result<Self, String> {
        let parsed = parse_tracking(text).map_err(|error| error.to_string())?;
        if parsed.deep || parsed.overflow.is_some() {
            return parsed.whole().map(|_| Self(Vec::new())).map_err(|error| error.to_string());
        }
        Self::read(parsed.value, false).map(|(operations, _)| operations).map_err(|error| error.message)
    }

    /// Returns the same operations with their values in the spelling of the body from which they were read.
    pub fn with_texts(&self, body: &str) -> Self {
        let mut texts = members_of_items(body, "value").into_iter();
        let stated = |operation: &PatchOperation| {
            let text = texts.next().flatten();
            let is_container = matches!(operation.value, Some(Value::Object(_) | Value::Array(_)));
            let text = text.filter(|_| is_container).map(|text| Value::Hole(Hole::Literal(text.into())));
            PatchOperation { value: text.or_else(|| operation.value.clone()), ..operation.clone() }
        };
        Self(self.0.iter().map(stated).collect())
    }

    /// Returns whether there are no operations.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Applies all operations, with a detailed error.
    ///
    /// # Errors
    /// The first operation that does not apply, in the words of the library that Kubernetes uses.
    pub fn apply_telling(&self, mut document: Value) -> Result<Value, String> {
        let mut cost = PatchCost::default();
        for operation in &self.0 {
            operation.apply(&mut document, &mut cost).map_err(|failed| match failed {
                Failed::DoesNotApply => operation.why(&mut document),
                Failed::Endless => ENDLESS.to_owned(),
            })?;
        }
        Ok(document)
    }

    /// Applies all operations.
    ///
    /// # Errors
    /// 422 if an operation does not apply, 413 if the operations move too many values.
    pub fn apply(&self, mut document: Value) -> ApiResult<Value> {
        let mut cost = PatchCost::default();
        for operation in &self.0 {
            operation.apply(&mut document, &mut cost).map_err(|failed| match failed {
                Failed::DoesNotApply => rejected(),
                Failed::Endless => ApiError::new(413, "RequestEntityTooLarge", ENDLESS),
            })?;
        }
        Ok(document)
    }

    /// Sorts the members of objects that the operations passed through, since errors of the reference show them sorted.
    pub fn sort_touched(&self, shown: &mut Value) {
        for operation in &self.0 {
            for pointer in [&operation.path, &operation.from].into_iter().flatten() {
                let mut place = &mut *shown;
                for segment in pointer.split('/').skip(1) {
                    if let Value::Object(map) = place {
                        map.sort();
                    }
                    match member_mut(place, &unescape(segment)) {
                        Some(next) => place = next,
                        None => break,
                    }
                }
            }
        }
        if let Value::Object(map) = shown {
            map.sort();
        }
    }
}

/// Checks the members of an operation as strict decoding does.
fn check_members(n: usize, map: &Map, complaints: &mut Vec<String>) -> Result<(), String> {
    for (key, value) in map.iter() {
        match key {
            "op" | "path" | "from" => {
                if !matches!(value, Value::Str(_) | Value::Null) {
                    let found = value.type_name();
                    return Err(format!(
                        "json: cannot unmarshal {found} into Go struct field jsonPatchOp.{key} of type string"
                    ));
                }
            }
            "value" => {
                if let Some(Hole::Number(number)) = value.hole() {
                    let place = "Go struct field jsonPatchOp.value of type float64";
                    return Err(format!("json: cannot unmarshal number {number} into {place}"));
                }
            }
            _ => complaints.push(format!("unknown field {}", quote(&format!("[{n}].{key}")))),
        }
    }
    Ok(())
}

impl PatchOperation {
    fn read(mut map: Map) -> Self {
        let mut text = |key: &str| match map.remove(key) {
            Some(Value::Str(text)) => Some(text.to_string()),
            _ => None,
        };
        let op = text("op");
        let verb = match op.as_deref() {
            Some("add") => Verb::Add,
            Some("remove") => Verb::Remove,
            Some("replace") => Verb::Replace,
            Some("move") => Verb::Move,
            Some("copy") => Verb::Copy,
            Some("test") => Verb::Test,
            _ => Verb::Unknown,
        };
        let unknown = op.filter(|_| verb == Verb::Unknown);
        Self { verb, unknown, path: text("path"), from: text("from"), value: map.remove("value") }
    }

    fn apply(&self, document: &mut Value, cost: &mut PatchCost) -> PatchResult<()> {
        let path = self.path.as_deref().ok_or(DoesNotApply)?;
        match self.verb {
            Verb::Add => add(document, path, self.value.clone().unwrap_or_default(), cost),
            Verb::Remove => PatchLocation::find(document, path)?.remove(cost).map(drop),
            Verb::Replace => replace(document, path, self.value.clone(), cost),
            Verb::Test => test(document, path, self.value.as_ref()),
            Verb::Move => {
                let value = PatchLocation::find(document, self.from.as_deref().ok_or(DoesNotApply)?)?.remove(cost)?;
                add(document, path, value, cost)
            }
            Verb::Copy => {
                let from = PatchLocation::find(document, self.from.as_deref().ok_or(DoesNotApply)?)?;
                let value = from.get()?.cloned().unwrap_or_default();
                cost.copied_bytes += to_vec(&value).len();
                if cost.copied_bytes > limits::JSON_PATCH_COPIED_BYTES {
                    return Err(DoesNotApply);
                }
                add(document, path, value, cost)
            }
            Verb::Unknown => Err(DoesNotApply),
        }
    }
}

fn add(document: &mut Value, path: &str, value: Value, cost: &mut PatchCost) -> PatchResult<()> {
    let location = PatchLocation::find(document, path)?;
    check_depth(path, &value, cost)?;
    location.add(value, cost)
}

fn replace(document: &mut Value, path: &str, value: Option<Value>, cost: &mut PatchCost) -> PatchResult<()> {
    if path.is_empty() {
        return match value {
            Some(value @ (Value::Object(_) | Value::Array(_))) => {
                *document = value;
                Ok(())
            }
            _ => Err(DoesNotApply),
        };
    }
    let value = value.unwrap_or_default();
    let location = PatchLocation::find(document, path)?;
    check_depth(path, &value, cost)?;
    location.set(value)
}

fn test(document: &mut Value, path: &str, value: Option<&Value>) -> PatchResult<()> {
    let equal = if path.is_empty() {
        value == Some(document)
    } else {
        match (PatchLocation::find(document, path)?.get()?, value) {
            (None | Some(Value::Null), None) => true,
            (None, Some(value)) => value.is_null(),
            (found, value) => found == value,
        }
    };
    if equal { Ok(()) } else { Err(DoesNotApply) }
}

/// Bounds the depth of the document. A patch can nest an object into itself repeatedly, and trees are walked by
/// recursion.
fn check_depth(path: &str, value: &Value, cost: &mut PatchCost) -> PatchResult<()> {
    let above = path.bytes().filter(|&b| b == b'/').count();
    if above + depth(value, cost)? > JSON_DEPTH_MAX { Err(DoesNotApply) } else { Ok(()) }
}

fn depth(value: &Value, cost: &mut PatchCost) -> PatchResult<usize> {
    let mut deepest = 0;
    match value {
        Value::Object(map) => {
            cost.take(map.len())?;
            for value in map.values() {
                deepest = deepest.max(depth(value, cost)?);
            }
        }
        Value::Array(items) => {
            cost.take(items.len())?;
            for item in items {
                deepest = deepest.max(depth(item, cost)?);
            }
        }
        _ => return Ok(0),
    }
    Ok(1 + deepest)
}
