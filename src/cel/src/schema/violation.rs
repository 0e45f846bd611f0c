//! What is wrong at a place of an object or a definition, as answers state it.

use std::fmt;

use flotilla_golang::strconv::{format_float, quote};
use flotilla_proto::value::Value;

/// In what way a value is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It is not what it must be.
    Invalid,
    /// It must not be there, or not so.
    Forbidden,
    /// It must be there.
    Required,
    /// It is there twice.
    Duplicate,
    /// It is none of those that may be.
    NotSupported,
    /// The server is at fault.
    Internal,
}

/// What is wrong at a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The place.
    pub field: String,
    /// In what way.
    pub kind: Kind,
    /// The value as it is shown; empty where it is not.
    pub shown: String,
    /// What is said of it.
    pub detail: String,
}

impl Violation {
    /// A value that is shown, of a kind that shows it. The whole object has no place, which the reference writes so.
    pub fn new(field: &str, kind: Kind, shown: impl Into<String>, detail: impl Into<String>) -> Self {
        let field = if field.is_empty() { "<nil>" } else { field };
        Self { field: field.to_owned(), kind, shown: shown.into(), detail: detail.into() }
    }

    /// About how much memory it takes.
    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>() + self.field.len() + self.shown.len() + self.detail.len()
    }
}

impl Kind {
    /// As clients read it in `reason`.
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

/// A value as errors show it.
pub fn shown(value: &Value) -> String {
    match value {
        Value::Str(text) => quote(text),
        Value::Float(number) => format_float(number.get()),
        other => String::from_utf8_lossy(&flotilla_proto::json::to_vec(other)).into_owned(),
    }
}
