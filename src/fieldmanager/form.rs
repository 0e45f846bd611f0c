//! How apply sees a value: what of it is one thing, and what has parts with owners of their own.

use flotilla_proto::schema::{AnyKind, Field, List, Map as MapShape, Shape, Topology, Type};
use flotilla_proto::value::{Map, Value};

/// How apply sees the values of a field, an item or a map entry.
#[derive(Clone, Copy)]
pub enum Form<'t> {
    /// A scalar.
    Scalar(Scalar),
    /// A struct; as one value, or field by field.
    Struct {
        /// Its fields.
        of: &'t Type,
        /// Whether it is one value.
        atomic: bool,
    },
    /// A map from strings; as one value, or entry by entry.
    Map(&'t MapShape),
    /// A list; as one value, or item by item.
    List(&'t List),
    /// Whatever JSON holds: objects member by member, lists as one value.
    Deduced,
    /// Whatever JSON holds, as one value.
    Opaque,
}

/// Which scalars a field takes.
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

/// What apply does with a concrete value of a [`Form`].
#[derive(Clone, Copy)]
pub enum Parts<'t> {
    /// It is one thing.
    Leaf,
    /// It has items.
    Items(&'t List),
    /// It has members.
    Members,
}

impl<'t> Form<'t> {
    /// The form of an object.
    pub fn of_type(of: &'t Type) -> Self {
        Self::Struct { of, atomic: of.atomic }
    }

    /// The form of items and entries of this shape.
    pub fn of_shape(shape: &'t Shape) -> Self {
        match shape {
            Shape::Bool => Self::Scalar(Scalar::Boolean),
            Shape::Int32 | Shape::Int64 | Shape::Uint(_) | Shape::Double => Self::Scalar(Scalar::Numeric),
            Shape::String { .. } | Shape::Bytes | Shape::Duration => Self::Scalar(Scalar::Text),
            Shape::Quantity | Shape::IntOrString | Shape::Time | Shape::MicroTime => Self::Scalar(Scalar::Untyped),
            Shape::Any(AnyKind::RawExtension) => Self::Opaque,
            Shape::Any(_) => Self::Deduced,
            Shape::Struct(of) => Self::of_type(of),
            Shape::List(list) => Self::List(list),
            Shape::Map(map) => Self::Map(map),
        }
    }

    /// The form of a field's value.
    pub fn of_field(field: &'t Field) -> Self {
        match &field.shape {
            Shape::Struct(of) => Self::Struct { of, atomic: of.atomic && !field.granular },
            shape => Self::of_shape(shape),
        }
    }

    /// The form of the member `key`; `None` when a struct neither declares it nor is open for others.
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

    /// Whether a struct declares the member `key`; what is in a map is never declared.
    pub fn declares(self, key: &str) -> bool {
        matches!(self, Self::Struct { of, .. } if of.field(key).is_some())
    }

    /// The form of the members and items that a set's element spells, `None` where there cannot be any.
    pub fn below(self, element: &str) -> Option<Self> {
        match (super::element::name(element), self) {
            (Some(name), Self::Struct { .. } | Self::Map(_) | Self::Deduced) => self.member(name),
            (None, Self::List(list)) => Some(Self::of_shape(&list.item)),
            _ => None,
        }
    }

    /// Whether values are one thing although they may have members or items.
    pub fn atomic(self) -> bool {
        match self {
            Self::Struct { atomic, .. } => atomic,
            Self::Map(map) => map.atomic,
            Self::List(list) => list.topology == Topology::Atomic,
            Self::Opaque => true,
            Self::Scalar(_) | Self::Deduced => false,
        }
    }

    /// What to do with a value.
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

/// How many fields are looked at one by one from where the next member is expected.
const AHEAD: usize = 64;

/// Looks up the members of values of one form, fastest in the order in which the type declares them.
pub struct Members<'t> {
    form: Form<'t>,
    next: usize,
}

impl<'t> Members<'t> {
    /// Of a value of this form.
    pub fn of(form: Form<'t>) -> Self {
        Self { form, next: 0 }
    }

    /// The form of a member that the type declares; `None` for others, also for entries of maps.
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

    /// The form of a member; what a struct does not declare takes any form.
    pub fn any(&mut self, key: &str) -> Form<'t> {
        match self.form {
            Form::Struct { .. } => self.declared(key).unwrap_or(Form::Deduced),
            form => form.member(key).unwrap_or(Form::Deduced),
        }
    }
}

/// The members of a value, none when it is no object.
pub fn members(value: Option<&Value>) -> Option<&Map> {
    value.and_then(Value::as_object).filter(|map| !map.is_empty())
}

/// The items of a value, none when it is no list.
pub fn items(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).unwrap_or(&[])
}
