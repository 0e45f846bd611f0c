//! Paths of fields, and the errors about fields that 422 answers contain.

use std::collections::HashSet;
use std::fmt;

pub use flotilla_golang::strconv::quote;
use flotilla_proto::json;
use flotilla_proto::value::Value;

use crate::limits;

/// A place in an object. Paths are chains on the stack, so that a rule that holds costs no allocation.
/// `Path::root("spec").child("ports").index(2).child("name")` is shown as `spec.ports[2].name`.
#[derive(Debug, Clone, Copy)]
pub struct Path<'a> {
    parent: Option<&'a Path<'a>>,
    segment: Segment<'a>,
}

#[derive(Debug, Clone, Copy)]
enum Segment<'a> {
    Name(&'a str),
    Index(usize),
    Key(&'a str),
}

impl<'a> Path<'a> {
    /// Returns a path of one name, which may contain dots. An empty name is the object itself.
    pub const fn root(name: &'a str) -> Self {
        Self { parent: None, segment: Segment::Name(name) }
    }

    /// Returns the path of a member.
    pub const fn child(&'a self, name: &'a str) -> Path<'a> {
        Self { parent: Some(self), segment: Segment::Name(name) }
    }

    /// Returns the path of a list item.
    pub const fn index(&'a self, index: usize) -> Path<'a> {
        Self { parent: Some(self), segment: Segment::Index(index) }
    }

    /// Returns the path of a map entry.
    pub const fn key(&'a self, key: &'a str) -> Path<'a> {
        Self { parent: Some(self), segment: Segment::Key(key) }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            parent.fmt(f)?;
        }
        match self.segment {
            Segment::Name(name) => {
                let first = self
                    .parent
                    .is_none_or(|parent| matches!(parent, Path { parent: None, segment: Segment::Name("") }));
                if first { f.write_str(name) } else { write!(f, ".{name}") }
            }
            Segment::Index(index) => write!(f, "[{index}]"),
            Segment::Key(key) => write!(f, "[{key}]"),
        }
    }
}

/// In which way a field is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// It must be set.
    Required,
    /// The value occurs twice.
    Duplicate,
    /// The value breaks a rule.
    Invalid,
    /// The value is none of those allowed.
    NotSupported,
    /// It must not be set, or not in this way.
    Forbidden,
    /// The value is too long.
    TooLong,
    /// The list has too many items.
    TooMany,
    /// The named object does not exist.
    NotFound,
    /// The server failed to check it.
    Internal,
    /// The value has the wrong type.
    TypeInvalid,
}

impl ErrorKind {
    /// Returns the reason that causes state.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::Duplicate => "FieldValueDuplicate",
            Self::Invalid => "FieldValueInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Forbidden => "FieldValueForbidden",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
            Self::NotFound => "FieldValueNotFound",
            Self::Internal => "InternalError",
            Self::TypeInvalid => "FieldValueTypeInvalid",
        }
    }

    const fn title(self) -> &'static str {
        match self {
            Self::Required => "Required value",
            Self::Duplicate => "Duplicate value",
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::NotSupported => "Unsupported value",
            Self::Forbidden => "Forbidden",
            Self::TooLong => "Too long",
            Self::TooMany => "Too many",
            Self::NotFound => "Not found",
            Self::Internal => "Internal error",
        }
    }
}

/// One validation error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldError {
    /// The kind of the error.
    pub kind: ErrorKind,
    /// Path of the field.
    pub field: String,
    /// The value as the message shows it; empty if it is not shown.
    pub shown: String,
    /// The fault, in words; may be empty.
    pub detail: String,
}

impl FieldError {
    /// Returns the message without the field's path, as causes have it.
    pub fn body(&self) -> String {
        let mut text = self.kind.title().to_owned();
        if !self.shown.is_empty() {
            text.push_str(": ");
            text.push_str(&self.shown);
        }
        if !self.detail.is_empty() {
            text.push_str(": ");
            text.push_str(&self.detail);
        }
        text
    }
}

impl FieldError {
    /// Returns roughly how much memory the error takes, in bytes.
    fn bytes(&self) -> usize {
        size_of::<Self>() + self.field.len() + self.shown.len() + self.detail.len()
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.body())
    }
}

/// Joins errors as Go does: each once, in brackets when there are several.
pub fn joined(errors: Vec<String>) -> String {
    let mut seen = HashSet::with_capacity(errors.len());
    let mut once: Vec<String> = errors.into_iter().filter(|error| seen.insert(error.clone())).collect();
    match once.len() {
        0 | 1 => once.pop().unwrap_or_default(),
        _ => format!("[{}]", once.join(", ")),
    }
}

/// Validation errors in the order in which they were found, up to [`ERROR_BYTES`](limits::ERROR_BYTES): an object can
/// break very many rules, with long messages.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Errors(pub Vec<FieldError>, ErrorSize);

/// How many bytes of errors were collected.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct ErrorSize(usize);

impl ErrorSize {
    /// Returns whether the bound is reached. Then there is at least one error.
    pub fn is_enough(self) -> bool {
        self.0 >= limits::ERROR_BYTES
    }

    /// Counts an error.
    pub fn count(&mut self, error: &FieldError) {
        self.0 += error.bytes();
    }

    /// Subtracts an error that was dropped.
    pub fn forget(&mut self, error: &FieldError) {
        self.0 -= error.bytes();
    }
}

impl From<Vec<FieldError>> for Errors {
    fn from(errors: Vec<FieldError>) -> Self {
        let mut size = ErrorSize::default();
        errors.iter().for_each(|error| size.count(error));
        Self(errors, size)
    }
}

impl Errors {
    /// Returns whether there is no error.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns all errors as one text.
    pub fn joined(&self) -> String {
        joined(self.0.iter().map(ToString::to_string).collect())
    }

    /// Returns whether the bound is reached, so that further errors need not be formatted. Then there is at least one
    /// error.
    pub fn is_full(&self) -> bool {
        self.1.is_enough()
    }

    /// Adds errors that were found elsewhere, until the bound is reached.
    pub fn append(&mut self, errors: impl IntoIterator<Item = FieldError>) {
        for error in errors {
            if self.is_full() {
                return;
            }
            self.1.count(&error);
            self.0.push(error);
        }
    }

    /// Adds an error of any kind; `shown` and `detail` may be empty.
    pub fn push(&mut self, kind: ErrorKind, path: &Path<'_>, shown: impl Into<String>, detail: impl Into<String>) {
        if !self.is_full() {
            let error = FieldError { kind, field: path.to_string(), shown: shown.into(), detail: detail.into() };
            self.append([error]);
        }
    }

    /// Adds an error about a value. Formats the value only if the bound is not reached.
    fn about(&mut self, kind: ErrorKind, path: &Path<'_>, value: &Value, detail: impl Into<String>) {
        if !self.is_full() {
            self.push(kind, path, shown(value), detail);
        }
    }

    /// Adds an error: the field must be set.
    pub fn required(&mut self, path: &Path<'_>, detail: impl Into<String>) {
        self.push(ErrorKind::Required, path, "", detail);
    }

    /// Adds an error: the value breaks a rule.
    pub fn invalid(&mut self, path: &Path<'_>, value: &Value, detail: impl Into<String>) {
        self.about(ErrorKind::Invalid, path, value, detail);
    }

    /// Adds an error: the text breaks a rule.
    pub fn invalid_str(&mut self, path: &Path<'_>, text: &str, detail: impl Into<String>) {
        if !self.is_full() {
            self.push(ErrorKind::Invalid, path, quote(text), detail);
        }
    }

    /// Adds an error: the value occurs twice.
    pub fn duplicate(&mut self, path: &Path<'_>, value: &Value) {
        self.about(ErrorKind::Duplicate, path, value, "");
    }

    /// Adds an error: the text is none of those allowed, which the message shows in this order.
    pub fn not_supported(&mut self, path: &Path<'_>, text: &str, allowed: &[&str]) {
        if self.is_full() {
            return;
        }
        let list: Vec<String> = allowed.iter().map(|word| quote(word)).collect();
        let detail = if list.is_empty() { String::new() } else { format!("supported values: {}", list.join(", ")) };
        self.push(ErrorKind::NotSupported, path, quote(text), detail);
    }

    /// Adds an error: the field must not be set, or not in this way.
    pub fn forbidden(&mut self, path: &Path<'_>, detail: impl Into<String>) {
        self.push(ErrorKind::Forbidden, path, "", detail);
    }

    /// Adds an error: the text or list of bytes has more than `max` bytes.
    pub fn too_long(&mut self, path: &Path<'_>, max: usize) {
        let unit = if max == 1 { "byte" } else { "bytes" };
        self.push(ErrorKind::TooLong, path, "", format!("may not be more than {max} {unit}"));
    }

    /// Adds an error: the list has more than `max` items.
    pub fn too_many(&mut self, path: &Path<'_>, actual: usize, max: usize) {
        let unit = if max == 1 { "item" } else { "items" };
        self.push(ErrorKind::TooMany, path, actual.to_string(), format!("must have at most {max} {unit}"));
    }

    /// Adds an error: the value names something that does not exist.
    pub fn not_found(&mut self, path: &Path<'_>, value: &Value) {
        self.about(ErrorKind::NotFound, path, value, "");
    }
}

/// Formats a value as error messages show it: quoted text, plain numbers, JSON for the rest.
pub fn shown(value: &Value) -> String {
    match value {
        Value::Str(text) => quote(text),
        Value::Null => "null".into(),
        Value::Float(number) => float(number.get()),
        other => String::from_utf8_lossy(&json::to_vec_as_stated(other)).into_owned(),
    }
}

/// Formats a free-form value as error messages show it: with sorted members, as in Go's maps.
pub fn shown_sorted(value: &Value) -> String {
    match value {
        Value::Object(_) | Value::Array(_) => {
            let mut sorted = value.clone();
            sorted.sort_members();
            shown(&sorted)
        }
        other => shown(other),
    }
}

/// Formats a float as Go's `%v` does: with an exponent of at least two digits below 1e-4 and from 1e6 on.
pub fn float(number: f64) -> String {
    let scientific = format!("{number:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    match exponent.parse::<i32>() {
        Ok(exponent) if !(-4..6).contains(&exponent) && number.is_finite() => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{mantissa}e{sign}{:02}", exponent.abs())
        }
        _ => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_shown_as_in_kubernetes() {
        let spec = Path::root("spec");
        assert_eq!(spec.child("ports").index(2).child("name").to_string(), "spec.ports[2].name");
    }

    #[test]
    fn errors_are_counted_while_they_are_made() {
        let (mut errors, value) = (Errors::default(), Value::from("x".repeat(100_000)));
        for index in 0..1_000 {
            errors.invalid(&Path::root("list").index(index), &value, "wrong");
        }
        assert!(errors.is_full() && (10..20).contains(&errors.0.len()), "{}", errors.0.len());
        let first = Errors::from(errors.0[..2].to_vec());
        let mut others = first.clone();
        others.append(errors.0.iter().cloned());
        assert!(!first.is_full() && others.is_full());
    }
}
