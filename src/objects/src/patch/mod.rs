//! Applies PATCH bodies: JSON Patch (RFC 6902), JSON Merge Patch (RFC 7386) and strategic merge patch.
//!
//! All three work on the object in the request's version. The result must still be decoded by the type, which finds
//! unknown fields and wrong types; [`Patch::undecodable`] is the error for them. A body is read after the object was
//! found, so that a missing object answers 404 regardless of the body, and only once for all retries. Server-side apply
//! is in [`crate::fieldmanager`].

pub mod go_text;
mod json;
mod lists;
mod merge;
mod pointer;
pub(crate) mod restore;
mod spent;
mod strategic;
mod why;

pub use json::Operations;

use std::collections::HashSet;

use flotilla_proto::json as text;
use flotilla_proto::schema::Type;
use flotilla_proto::value::{Map, Value};

use crate::field::{ErrorKind, FieldError, quote};
use crate::status::{ApiError, ApiResult, Details};

/// The format of a PATCH body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// `application/json-patch+json`.
    Json,
    /// `application/merge-patch+json`.
    Merge,
    /// `application/strategic-merge-patch+json`; built-in kinds only.
    Strategic,
}

impl Format {
    /// The name of JSON patches in answers of webhooks.
    pub const JSON_PATCH_TYPE: &str = "JSONPatch";
}

/// A PATCH body after reading.
#[derive(Debug, Clone)]
pub struct Patch {
    body: ParsedPatch,
    /// Complaints of strict decoding about the body itself, such as `duplicate field "data.k"`. `fieldValidation` makes
    /// them errors or warnings, together with the complaints about the result.
    pub complaints: Vec<String>,
    /// Whether the body has numbers that a tree cannot hold and that were not decoded yet.
    pub has_holes: bool,
    /// The operations with their values as text, if keys occur more than once in the body.
    as_text: Option<json::Operations>,
}

#[derive(Debug, Clone)]
enum ParsedPatch {
    Json(json::Operations),
    Merge(Value),
    Strategic(Map),
}

impl Patch {
    /// Reads a body. `checked` is false for `fieldValidation=Ignore`, which checks less.
    ///
    /// # Errors
    /// 400 if the body is not a patch of its format, 413 if it has more operations than
    /// [`JSON_PATCH_OPERATIONS`](crate::limits::JSON_PATCH_OPERATIONS).
    pub fn parse(format: Format, body: &[u8], checked: bool) -> ApiResult<Self> {
        let kept = |parsed: text::Parsed| match parsed {
            text::Parsed { deep: true, .. } => Err(text::Error::TooDeep),
            // Nothing reads the numbers of other patches before they are applied, so they are decoded only then.
            text::Parsed { overflow: Some(number), .. }
                if format == Format::Strategic || (format == Format::Merge && checked) =>
            {
                Err(text::Error::Number(number))
            }
            parsed => Ok(parsed),
        };
        let mut parsed = text::parse_tracking(body).and_then(kept).map_err(|error| match format {
            Format::Json if checked => decoding(&error),
            Format::Merge if checked => decoding(&error),
            Format::Merge => ApiError::bad_request(merge::INVALID),
            _ => ApiError::bad_request(error.to_string()),
        })?;
        let has_holes = parsed.overflow.is_some();
        if format == Format::Strategic {
            parsed.value.resolve_literals(); // a strategic merge patch is decoded before it is applied
        }
        let mut complaints = match checked && !parsed.duplicates.is_empty() {
            true => complaints(&String::from_utf8_lossy(body), None),
            false => Vec::new(),
        };
        let mut as_text = None;
        let read = match format {
            Format::Json => {
                let (operations, unknown) = json::Operations::read(parsed.value, checked)?;
                if !complaints.is_empty() {
                    as_text = Some(operations.with_texts(&String::from_utf8_lossy(body)));
                }
                complaints.extend(unknown);
                complaints.iter_mut().for_each(|complaint| complaint.insert_str(0, "json patch "));
                ParsedPatch::Json(operations)
            }
            Format::Merge => ParsedPatch::Merge(merge::read(parsed.value, checked)?),
            Format::Strategic => match parsed.value {
                Value::Object(map) => ParsedPatch::Strategic(map),
                Value::Null => ParsedPatch::Strategic(Map::new()),
                other => return Err(ApiError::bad_request(unmarshal(&other, "map[string]interface {}"))),
            },
        };
        Ok(Self { body: read, complaints, has_holes, as_text })
    }

    /// Returns whether this is a strategic merge patch. The patched object then needs no `kind`.
    pub fn is_strategic(&self) -> bool {
        matches!(self.body, ParsedPatch::Strategic(_))
    }

    /// Returns `current` with the patch applied. `of` is the type of the object in the request's version. `None` stands
    /// for custom resources.
    ///
    /// # Errors
    /// 422 if an operation does not fit the object or lists are nested in lists, 413 if operations move too many
    /// values, 400 or 500 for invalid directives.
    pub fn apply(&self, of: Option<&Type>, current: Value) -> ApiResult<Value> {
        match &self.body {
            ParsedPatch::Json(operations) => operations.apply(current),
            ParsedPatch::Merge(patch) => Ok(merge::apply(current, patch)),
            ParsedPatch::Strategic(patch) => {
                let of = of.ok_or(strategic::Error::Malformed("strategic merge patch format is not supported"))?;
                let before = current.clone();
                let mut patched = strategic::apply(of, current, patch.clone())?;
                restore::numbers(of, &mut patched, &before);
                Ok(patched)
            }
        }
    }

    /// Returns the patched object as text, if keys may occur in it more than once: the reference keeps the values of a
    /// JSON patch as text, and decodes them with the patched object. Returns `None` if that makes no difference, or if
    /// an operation looks into such a value.
    pub fn text(&self, current: &Value) -> Option<String> {
        let operations = self.as_text.as_ref()?;
        let mut made = operations.apply(current.clone()).ok()?;
        operations.sort_touched(&mut made);
        String::from_utf8(text::to_vec_as_stated(&made)).ok()
    }

    /// Returns the error for a patched object that cannot be decoded and whose text is known.
    pub fn undecodable_text(text: &str, why: &str) -> ApiError {
        let (field, shown, detail) = ("patch".to_owned(), quote(text), why.to_owned());
        ApiError::invalid("", "", "", &[FieldError { kind: ErrorKind::Invalid, field, shown, detail }])
    }

    /// Returns the error 422 for a patched object that cannot be decoded. `why` is the decoder's complaint. The error
    /// for a strategic merge has another text where the reference has one.
    pub fn undecodable(&self, of: Option<&Type>, current: &Value, patched: &Value, why: &str) -> ApiError {
        let (shown, detail) = match (&self.body, of) {
            (ParsedPatch::Strategic(patch), Some(of)) => {
                (go_text::map(&spent::rest(of, current, patch)), restore::complaint(of, patched, why))
            }
            (ParsedPatch::Strategic(patch), None) => (go_text::map(patch), why.to_owned()),
            (body, _) => {
                let mut shown = patched.clone();
                match body {
                    ParsedPatch::Json(operations) => operations.sort_touched(&mut shown),
                    ParsedPatch::Merge(patch) => merge::sort_touched(&mut shown, patch),
                    ParsedPatch::Strategic(_) => {}
                }
                (String::from_utf8_lossy(&text::to_vec_as_stated(&shown)).into_owned(), why.to_owned())
            }
        };
        let error = FieldError { kind: ErrorKind::Invalid, field: "patch".to_owned(), shown: quote(&shown), detail };
        ApiError::invalid("", "", "", &[error])
    }
}

/// Returns the complaints of strict decoding about a text, each once, in the order of the text. Without a type it finds
/// only keys that occur more than once.
pub fn complaints(text: &str, of: Option<&Type>) -> Vec<String> {
    let mut seen = HashSet::new();
    let mut complaints = text::strict::complaints(text, of);
    complaints.retain(|complaint| seen.insert(complaint.clone()));
    complaints
}

/// Returns the error 422 with the reference's general text for patches that do not fit.
fn rejected() -> ApiError {
    let message = "the server rejected our request due to an error in our request";
    ApiError { details: Some(Box::<Details>::default()), ..ApiError::new(422, "Invalid", message) }
}

fn decoding(why: &impl std::fmt::Display) -> ApiError {
    ApiError::bad_request(format!("error decoding patch: {why}"))
}

/// Formats Go's error for JSON of another type than expected.
fn unmarshal(value: &Value, into: &str) -> String {
    format!("json: cannot unmarshal {} into Go value of type {into}", value.type_name())
}

#[cfg(test)]
#[path = "patch_tests.rs"]
mod tests;
