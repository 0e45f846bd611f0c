//! Errors at a field of an object or a definition, as answers state them.

use std::fmt;

use flotilla_golang::strconv::{format_float, quote};
use flotilla_proto::value::Value;

/// The kind of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViolationKind {
    /// The value is invalid.
    Invalid,
    /// The value is forbidden.
    Forbidden,
    /// A value is required.
    Required,
    /// The value occurs twice.
    Duplicate,
    /// The value is not one of the supported ones.
    NotSupported,
    /// The server is at fault.
    Internal,
}

/// An error at a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The place.
    pub field: String,
    /// Its kind.
    pub kind: ViolationKind,
    /// The formatted value; empty if it is not shown.
    pub shown: String,
    /// The message.
    pub detail: String,
}

impl Violation {
    /// Returns an error that shows the value. The whole object has no field, which the reference writes as `<nil>`.
    pub fn new(field: &str, kind: ViolationKind, shown: impl Into<String>, detail: impl Into<String>) -> Self {
        let field = if field.is_empty() { "<nil>" } else { field };
        Self { field: field.to_owned(), kind, shown: shown.into(), detail: detail.into() }
    }

    /// Returns approximately how much memory it takes, in bytes.
    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>() + self.field.len() + self.shown.len() + self.detail.len()
    }
}

impl ViolationKind {
    /// Returns the `reason` that clients see.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Invalid => "FieldValueInvalid",
            Self::Forbidden => "FieldValueForbidden",
            Self::Required => "FieldValueRequired",
            Self::Duplicate => "FieldValueDuplicate",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Internal => "InternalError",
        }
    }

    const fn words(self) -> &'static str {
        match self {
            Self::Invalid => "Invalid value",
            Self::Forbidden => "Forbidden",
            Self::Required => "Required value",
            Self::Duplicate => "Duplicate value",
            Self::NotSupported => "Unsupported value",
            Self::Internal => "Internal error",
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.kind.words())?;
        for part in [&self.shown, &self.detail] {
            if !part.is_empty() {
                write!(f, ": {part}")?;
            }
        }
        Ok(())
    }
}

/// Formats a value for errors.
pub fn shown(value: &Value) -> String {
    match value {
        Value::Str(text) => quote(text),
        Value::Float(number) => format_float(number.get()),
        other => String::from_utf8_lossy(&flotilla_proto::json::to_vec(other)).into_owned(),
    }
}
