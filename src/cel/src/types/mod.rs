//! Types of expressions, as the checker knows them before evaluation.

mod signature;

use std::fmt;
use std::sync::Arc;

pub use signature::{Parameters, Signature};

/// A type, cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// Any type: checked at evaluation.
    Dyn,
    /// As `Dyn`, except that loops cannot iterate it.
    Any,
    /// The type of a part with an error; it fits everything, so that one error is reported once.
    Error,
    /// The type of `null`.
    Null,
    /// `bool`.
    Bool,
    /// `int`, 64 bits.
    Int,
    /// `uint`, 64 bits.
    Uint,
    /// `double`.
    Double,
    /// `string`.
    String,
    /// `bytes`.
    Bytes,
    /// `timestamp`.
    Timestamp,
    /// `duration`.
    Duration,
    /// `list(T)`.
    List(Arc<Type>),
    /// `map(K, V)`.
    Map(Arc<(Type, Type)>),
    /// `type(T)`, the type of a type. `None` for an unknown parameter.
    Type(Option<Arc<Type>>),
    /// A type parameter of an overload, or a variable of inference.
    Param(Arc<str>),
    /// A value of an extension, known by its name, as `optional_type(T)` and `net.IP`.
    Opaque(Arc<Named>),
    /// An object with declared fields, known by its name to a [`crate::environment::Provider`]; also extensions that
    /// upstream declares so, as `kubernetes.Quantity`.
    Object(Arc<str>),
    /// A primitive that may be null: `wrapper(int)`.
    Wrapper(Arc<Type>),
}

/// Name and parameters of an opaque type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Named {
    /// As in `optional_type`.
    pub name: Arc<str>,
    /// As the `int` of `optional_type(int)`.
    pub params: Vec<Type>,
}

/// The name of the type of optional values.
pub const OPTIONAL: &str = "optional_type";

impl Type {
    /// Returns `list(element)`.
    pub fn list(element: Type) -> Self {
        Self::List(Arc::new(element))
    }

    /// Returns `map(key, value)`.
    pub fn map(key: Type, value: Type) -> Self {
        Self::Map(Arc::new((key, value)))
    }

    /// Returns `type(of)`.
    pub fn type_of(of: Type) -> Self {
        Self::Type(Some(Arc::new(of)))
    }

    /// Returns a type parameter.
    pub fn param(name: &str) -> Self {
        Self::Param(name.into())
    }

    /// Returns an opaque type.
    pub fn opaque(name: &str, params: Vec<Type>) -> Self {
        Self::Opaque(Arc::new(Named { name: name.into(), params }))
    }

    /// Returns `optional_type(of)`.
    pub fn optional(of: Type) -> Self {
        Self::opaque(OPTIONAL, vec![of])
    }

    /// Returns an object type by its name.
    pub fn object(name: &str) -> Self {
        Self::Object(name.into())
    }

    /// Returns `wrapper(of)`.
    pub fn wrapper(of: Type) -> Self {
        Self::Wrapper(Arc::new(of))
    }

    /// Returns the type inside an optional. `None` for other types.
    pub fn optional_of(&self) -> Option<&Type> {
        match self {
            Self::Opaque(named) if &*named.name == OPTIONAL => named.params.first(),
            _ => None,
        }
    }

    /// Returns whether the type is checked at evaluation only.
    pub fn is_dyn(&self) -> bool {
        matches!(self, Self::Dyn | Self::Any)
    }

    /// Returns whether the type is checked at evaluation only, or is [`Type::Error`].
    pub fn is_dyn_or_error(&self) -> bool {
        matches!(self, Self::Dyn | Self::Any | Self::Error)
    }

    /// Returns its parameters.
    pub fn parameters(&self) -> Vec<&Type> {
        match self {
            Self::List(element) => vec![element],
            Self::Map(entry) => vec![&entry.0, &entry.1],
            Self::Type(Some(of)) | Self::Wrapper(of) => vec![of],
            Self::Opaque(named) => named.params.iter().collect(),
            _ => Vec::new(),
        }
    }

    /// Returns Kubernetes' name for the type of an expression: `list(null_type)`, `google.protobuf.Timestamp`.
    pub fn declared_name(&self) -> String {
        if let Self::Wrapper(_) = self {
            return self.to_string();
        }
        let params: Vec<String> = self.parameters().into_iter().map(Self::declared_name).collect();
        match &params[..] {
            [] => self.runtime_name().to_owned(),
            params => format!("{}({})", self.runtime_name(), params.join(", ")),
        }
    }

    /// Returns the name that `type(value)` has at run time: `list`, `google.protobuf.Timestamp`, `net.IP`.
    pub fn runtime_name(&self) -> &str {
        match self {
            Self::Dyn => "dyn",
            Self::Any => "google.protobuf.Any",
            Self::Error => "error",
            Self::Null => "null_type",
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Uint => "uint",
            Self::Double => "double",
            Self::String => "string",
            Self::Bytes => "bytes",
            Self::Timestamp => "google.protobuf.Timestamp",
            Self::Duration => "google.protobuf.Duration",
            Self::List(_) => "list",
            Self::Map(_) => "map",
            Self::Type(_) => "type",
            Self::Param(name) | Self::Object(name) => name,
            Self::Opaque(named) => &named.name,
            Self::Wrapper(of) => match **of {
                Self::Bool => "google.protobuf.BoolValue",
                Self::Int => "google.protobuf.Int64Value",
                Self::Uint => "google.protobuf.UInt64Value",
                Self::Double => "google.protobuf.DoubleValue",
                Self::String => "google.protobuf.StringValue",
                Self::Bytes => "google.protobuf.BytesValue",
                _ => "wrapper",
            },
        }
    }
}

/// Formats the type for messages of the checker: `list(int)`, `null`, `type(string)`, `timestamp`.
impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dyn => f.write_str("dyn"),
            Self::Any => f.write_str("any"),
            Self::Error => f.write_str("!error!"),
            Self::Null => f.write_str("null"),
            Self::Timestamp => f.write_str("timestamp"),
            Self::Duration => f.write_str("duration"),
            Self::List(element) => write!(f, "list({element})"),
            Self::Map(entry) => write!(f, "map({}, {})", entry.0, entry.1),
            Self::Type(Some(of)) => write!(f, "type({of})"),
            Self::Type(None) => f.write_str("type"),
            Self::Wrapper(of) => write!(f, "wrapper({of})"),
            Self::Opaque(named) if named.params.is_empty() => f.write_str(&named.name),
            Self::Opaque(named) => {
                write!(f, "{}(", named.name)?;
                for (at, param) in named.params.iter().enumerate() {
                    let comma = if at > 0 { ", " } else { "" };
                    write!(f, "{comma}{param}")?;
                }
                f.write_str(")")
            }
            other => f.write_str(other.runtime_name()),
        }
    }
}
