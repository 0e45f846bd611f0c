//! Describes why an operation of a JSON patch does not apply, in the words of the library that Kubernetes uses.

use flotilla_proto::value::Value;

use super::json::{PatchOperation, Verb};
use super::pointer::{PatchLocation, index};

const MISSING: &str = "missing value";
const INVALID_INDEX: &str = "invalid index referenced";

impl PatchOperation {
    /// Describes why the operation does not apply to a document.
    pub(super) fn why(&self, document: &mut Value) -> String {
        let no_path = |verb: &str, why: &str| format!("{verb} operation failed to decode {why}: {MISSING}");
        let from = || self.from.as_deref().ok_or_else(|| "from: operation, missing from field".to_owned());
        let Some(path) = self.path.as_deref() else {
            let why =
                if matches!(self.verb, Verb::Add | Verb::Copy) { "path" } else { "path: operation missing path field" };
            return no_path(self.verb.name(), why);
        };
        match self.verb {
            Verb::Add => match add_fault(document, path) {
                None => missing_place("add", "path", &format!("\"{path}\"")),
                Some(fault) => format!("error in add for path: '{path}': {fault}"),
            },
            Verb::Remove => match take_fault(document, path, true) {
                None => missing_place("remove", "path", &format!("\"{path}\"")),
                Some(fault) => format!("error in remove for path: '{path}': {fault}"),
            },
            Verb::Replace if path.is_empty() => "replace operation value must be object or array: %!w(<nil>)".into(),
            Verb::Replace => match take_fault(document, path, false) {
                None => missing_place("replace", "path", path),
                Some(_) => format!("replace operation does not apply: doc is missing key: {path}: {MISSING}"),
            },
            Verb::Test => match take_fault(document, path, false) {
                None if !path.is_empty() => {
                    format!("test operation does not apply: is missing path: {path}: {MISSING}")
                }
                Some(fault) if !fault.is_empty() => format!("error in test for path: '{path}': {fault}"),
                _ => format!("testing value {path} failed: test failed"),
            },
            Verb::Move | Verb::Copy => {
                let verb = self.verb.name();
                let from = match from() {
                    Ok(from) => from,
                    Err(why) => return no_path(verb, &why),
                };
                match take_fault(document, from, self.verb == Verb::Move) {
                    None => missing_place(verb, "from path", from),
                    Some(fault) if !fault.is_empty() => match self.verb {
                        Verb::Copy => format!("error in copy for from: '{from}': {fault}"),
                        _ => format!("error in move for path: '{}': {fault}", from.rsplit('/').next().unwrap_or(from)),
                    },
                    Some(_) => match add_fault(document, path) {
                        None => missing_place(verb, "destination path", path),
                        Some(fault) if self.verb == Verb::Copy => {
                            format!("error while adding value during copy: {fault}")
                        }
                        Some(fault) => format!("error in move for path: '{path}': {fault}"),
                    },
                }
            }
            Verb::Unknown => format!("Unexpected kind: {}", self.unknown.as_deref().unwrap_or("unknown")),
        }
    }
}

fn missing_place(verb: &str, what: &str, path: &str) -> String {
    format!("{verb} operation does not apply: doc is missing {what}: {path}: {MISSING}")
}

/// Describes why a value cannot be added at a path. Returns `None` if the container does not exist.
fn add_fault(document: &mut Value, path: &str) -> Option<String> {
    let location = PatchLocation::find(document, path).ok()?;
    let Value::Array(items) = &*location.container else { return Some("the document would be too deep".into()) };
    Some(match location.key.parse::<i64>() {
        Err(_) => format!("value was not a proper array index: '{}': {}", location.key, not_a_number(&location.key)),
        Ok(at) if index(&location.key, items.len() + 1).is_none() => invalid_index(at),
        Ok(_) => "the document would be too deep".into(),
    })
}

/// Describes why the value at a path cannot be read or removed. The description is empty if it can. Returns `None` if
/// the container does not exist.
fn take_fault(document: &mut Value, path: &str, must_be: bool) -> Option<String> {
    let location = PatchLocation::find(document, path).ok()?;
    Some(match &*location.container {
        Value::Array(items) => match location.key.parse::<i64>() {
            Err(_) => not_a_number(&location.key),
            Ok(at) if index(&location.key, items.len()).is_none() => invalid_index(at),
            Ok(_) => String::new(),
        },
        container if must_be && container.get(&location.key).is_none() => {
            format!("Unable to remove nonexistent key: {}: {MISSING}", location.key)
        }
        _ => String::new(),
    })
}

fn not_a_number(key: &str) -> String {
    format!("strconv.Atoi: parsing {key:?}: invalid syntax")
}

fn invalid_index(at: i64) -> String {
    format!("Unable to access invalid index: {at}: {INVALID_INDEX}")
}
