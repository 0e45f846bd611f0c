//! Divides values into the parts that can have owners of their own.

use flotilla_proto::schema::{AnyKind, Field, List, Map as MapShape, Shape, Topology, Type};
use flotilla_proto::value::{Map, Value};

/// How apply divides the values of a field, an item or a map entry.
#[derive(Clone, Copy)]
pub enum Form<'t> {
    /// A scalar.
    Scalar(Scalar),
    /// A struct, atomic or divided into its fields.
    Struct {
        /// Its fields.
        of: &'t Type,
        /// Whether the struct is atomic.
        atomic: bool,
    },
    /// A map with string keys, atomic or divided into its entries.
    Map(&'t MapShape),
    /// A list, atomic or divided into its items.
    List(&'t List),
    /// Any JSON. Objects are divided into members; lists are atomic.
    Deduced,
    /// Any JSON, atomic.
    Opaque,
}

/// The scalars that a field accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scalar {
    /// Numbers.
    Numeric,
    /// Strings.
    Text,
    /// Booleans.
    Boolean,
    /// Any scalar: quantities, times.
    Untyped,
}

/// How apply divides a given value of a [`Form`].
#[derive(Clone, Copy)]
pub enum Parts<'t> {
    /// It is atomic or a scalar.
    Leaf,
    /// It is divided into items.
    Items(&'t List),
    /// It is divided into members.
    Members,
}

impl<'t> Form<'t> {
    /// Returns the form of an object.
    pub fn of_type(of: &'t Type) -> Self {
        Self::Struct { of, atomic: of.atomic }
    }

    /// Returns the form of items and entries of this shape.
    pub fn of_shape(shape: &'t Shape) -> Self {
        match shape {
            Shape::Bool => Self::Scalar(Scalar::Boolean),
            Shape::Int32 | Shape::Int64 | Shape::Uint(_) | Shape::Double => Self::Scalar(Scalar::Numeric),
            Shape::String { .. } | Shape::Bytes | Shape::Duration => Self::Scalar(Scalar::Text),
            Shape::Quantity | Shape::Time | Shape::MicroTime => Self::Scalar(Scalar::Untyped),
            // The schema of the reference does not state the types of either.
            Shape::IntOrString | Shape::Any(AnyKind::RawExtension) => Self::Opaque,
            Shape::Any(_) => Self::Deduced,
            Shape::Struct(of) => Self::of_type(of),
            Shape::List(list) => Self::List(list),
            Shape::Map(map) => Self::Map(map),
        }
    }

    /// Returns the form of a field's value.
    pub fn of_field(field: &'t Field) -> Self {
        match &field.shape {
            Shape::Struct(of) => Self::Struct { of, atomic: of.atomic && !field.granular },
            shape => Self::of_shape(shape),
        }
    }

    /// Returns the form of the member `key`. `None` if a struct neither declares it nor is open for other members.
    pub fn member(self, key: &str) -> Option<Self> {
        match self {
            Self::Struct { of, .. } => {
                let declared = of.field(key).map(|(_, field)| Self::of_field(field));
                declared.or_else(|| of.open.then_some(Self::Deduced))
            }
            Self::Map(map) => Some(Self::of_shape(&map.value)),
            Self::Deduced => Some(Self::Deduced),
            _ => Some(Self::Opaque),
        }
    }

    /// Returns whether a struct declares the member `key`. Maps declare nothing.
    pub fn declares(self, key: &str) -> bool {
        matches!(self, Self::Struct { of, .. } if of.field(key).is_some())
    }

    /// Returns the form of the values that an element of a set names. `None` if this form cannot have such an element.
    pub fn below(self, element: &str) -> Option<Self> {
        match (super::element::name(element), self) {
            (Some(name), Self::Struct { .. } | Self::Map(_) | Self::Deduced) => self.member(name),
            (None, Self::List(list)) => Some(Self::of_shape(&list.item)),
            _ => None,
        }
    }

    /// Returns whether values are atomic, that is, have one owner for everything in them.
    pub fn atomic(self) -> bool {
        match self {
            Self::Struct { atomic, .. } => atomic,
            Self::Map(map) => map.atomic,
            Self::List(list) => list.topology == Topology::Atomic,
            Self::Opaque => true,
            Self::Scalar(_) | Self::Deduced => false,
        }
    }

    /// Returns how a value is divided.
    pub fn parts(self, value: &Value) -> Parts<'t> {
        match self {
            Self::Scalar(_) | Self::Opaque => Parts::Leaf,
            _ if self.atomic() => Parts::Leaf,
            Self::List(list) => Parts::Items(list),
            Self::Struct { .. } | Self::Map(_) => Parts::Members,
            Self::Deduced => match value {
                Value::Object(_) | Value::Null => Parts::Members,
                _ => Parts::Leaf,
            },
        }
    }
}

/// How many fields, from the expected one on, are compared with a name before the fields are searched.
const AHEAD: usize = 64;

/// Looks up the forms of the members of a value. This is fastest in the order in which the type declares them.
pub struct Members<'t> {
    form: Form<'t>,
    next: usize,
}

impl<'t> Members<'t> {
    /// Begins with the first member of a value of this form.
    pub fn of(form: Form<'t>) -> Self {
        Self { form, next: 0 }
    }

    /// Returns the form of a member that the type declares. `None` for other members and for entries of maps.
    pub fn declared(&mut self, key: &str) -> Option<Form<'t>> {
        let Form::Struct { of, .. } = self.form else { return None };
        let ahead = of.fields.get(self.next..)?.iter().take(AHEAD);
        let found = match ahead.clone().position(|field| field.name == key) {
            Some(at) => self.next + at,
            None => of.field(key)?.0,
        };
        self.next = found + 1;
        Some(Form::of_field(&of.fields[found]))
    }

    /// Returns the form of a member. Members that a struct does not declare may hold any JSON.
    pub fn any(&mut self, key: &str) -> Form<'t> {
        match self.form {
            Form::Struct { .. } => self.declared(key).unwrap_or(Form::Deduced),
            form => form.member(key).unwrap_or(Form::Deduced),
        }
    }
}

/// Returns the members of a value. `None` if the value is not an object or has none.
pub fn members(value: Option<&Value>) -> Option<&Map> {
    value.and_then(Value::as_object).filter(|map| !map.is_empty())
}

/// Returns the items of a value. Empty if the value is not a list.
pub fn items(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).unwrap_or(&[])
}
