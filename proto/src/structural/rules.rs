//! Value validations.

use std::hash::{Hash, Hasher};
use std::mem;

use super::shared::hash_value;
use super::{Pattern, Shared, Structural};
use crate::limits::COMPARED_VALUES_MAX;
use crate::value::{Str, Value};

/// The value validations of a schema: only those that it states, because a server may hold hundreds of thousands of
/// schemas, and few state more than two.
#[derive(Debug, Clone, Default, PartialEq, Hash)]
pub struct ValueValidations(Box<[ValueValidation]>);

/// One value validation.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ValueValidation {
    Enumeration(Box<Enumeration>),
    Format(Str),
    Pattern(Box<Pattern>),
    Minimum(f64),
    ExclusiveMinimum,
    Maximum(f64),
    ExclusiveMaximum,
    MultipleOf(f64),
    MinLength(i64),
    MaxLength(i64),
    MinItems(i64),
    MaxItems(i64),
    UniqueItems,
    MinProperties(i64),
    MaxProperties(i64),
    Required(Box<[Str]>),
    AllOf(Box<[Structural]>),
    AnyOf(Box<[Structural]>),
    OneOf(Box<[Structural]>),
    Not(Shared),
}

impl Hash for ValueValidation {
    fn hash<H: Hasher>(&self, state: &mut H) {
        mem::discriminant(self).hash(state);
        match self {
            Self::Format(text) => text.hash(state),
            Self::Pattern(pattern) => pattern.text().hash(state),
            Self::Minimum(bound) | Self::Maximum(bound) | Self::MultipleOf(bound) => {
                (bound + 0.0).to_bits().hash(state)
            }
            Self::MinLength(bound)
            | Self::MaxLength(bound)
            | Self::MinItems(bound)
            | Self::MaxItems(bound)
            | Self::MinProperties(bound)
            | Self::MaxProperties(bound) => bound.hash(state),
            Self::Required(names) => names.hash(state),
            Self::Enumeration(of) => of.values().iter().for_each(|value| hash_value(value, state)),
            Self::AllOf(schemas) | Self::AnyOf(schemas) | Self::OneOf(schemas) => schemas.hash(state),
            Self::Not(schema) => schema.hash(state),
            Self::ExclusiveMinimum | Self::ExclusiveMaximum | Self::UniqueItems => {}
        }
    }
}

/// Defines functions that return the value of one rule, or another value if the schema does not state the rule.
macro_rules! stated {
    ($($(#[$doc:meta])+ $name:ident: $of:ty = $rule:pat => $value:expr, else $other:expr;)+) => {$(
        $(#[$doc])+
        pub fn $name(&self) -> $of {
            self.0.iter().find_map(|rule| match rule { $rule => Some($value), _ => None }).unwrap_or($other)
        }
    )+};
}

impl ValueValidations {
    pub(super) fn of(rules: Vec<ValueValidation>) -> Self {
        Self(rules.into())
    }

    stated! {
        /// Returns the allowed values; any value is allowed if there are none.
        enumeration: &Enumeration = ValueValidation::Enumeration(of) => &**of, else &ANYTHING;
        /// Returns the format of strings or the width of numbers, as the schema states it; empty for any. Not every
        /// format is checked.
        format: &str = ValueValidation::Format(of) => of.as_str(), else "";
        /// Returns the pattern that strings must match.
        pattern: Option<&Pattern> = ValueValidation::Pattern(of) => Some(&**of), else None;
        /// Returns the least number.
        minimum: Option<f64> = ValueValidation::Minimum(of) => Some(*of), else None;
        /// Returns whether numbers must be above [`ValueValidations::minimum`].
        exclusive_minimum: bool = ValueValidation::ExclusiveMinimum => true, else false;
        /// Returns the greatest number.
        maximum: Option<f64> = ValueValidation::Maximum(of) => Some(*of), else None;
        /// Returns whether numbers must be below [`ValueValidations::maximum`].
        exclusive_maximum: bool = ValueValidation::ExclusiveMaximum => true, else false;
        /// Returns a number of which numbers must be multiples.
        multiple_of: Option<f64> = ValueValidation::MultipleOf(of) => Some(*of), else None;
        /// Returns the fewest characters of strings.
        min_length: Option<i64> = ValueValidation::MinLength(of) => Some(*of), else None;
        /// Returns the most characters of strings.
        max_length: Option<i64> = ValueValidation::MaxLength(of) => Some(*of), else None;
        /// Returns the fewest items of lists.
        min_items: Option<i64> = ValueValidation::MinItems(of) => Some(*of), else None;
        /// Returns the most items of lists.
        max_items: Option<i64> = ValueValidation::MaxItems(of) => Some(*of), else None;
        /// Returns whether the items of lists must differ from each other.
        unique_items: bool = ValueValidation::UniqueItems => true, else false;
        /// Returns the fewest members of objects.
        min_properties: Option<i64> = ValueValidation::MinProperties(of) => Some(*of), else None;
        /// Returns the most members of objects.
        max_properties: Option<i64> = ValueValidation::MaxProperties(of) => Some(*of), else None;
        /// Returns the members that objects must have.
        required: &[Str] = ValueValidation::Required(of) => &**of, else &[];
        /// Returns the schemas that must all hold.
        all_of: &[Structural] = ValueValidation::AllOf(of) => &**of, else &[];
        /// Returns the schemas of which at least one must hold.
        any_of: &[Structural] = ValueValidation::AnyOf(of) => &**of, else &[];
        /// Returns the schemas of which exactly one must hold.
        one_of: &[Structural] = ValueValidation::OneOf(of) => &**of, else &[];
        /// Returns the schema that must not hold.
        not: Option<&Structural> = ValueValidation::Not(of) => Some(&**of), else None;
    }
}

/// The allowed values, where not all are allowed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Enumeration {
    values: Vec<Value>,
    /// The index of the values if there are many.
    index: Option<Box<ValuesByType>>,
}

/// The enumeration of a schema that states none.
static ANYTHING: Enumeration = Enumeration { values: Vec::new(), index: None };

/// The values of an enumeration by their type.
#[derive(Debug, Clone, Default, PartialEq)]
struct ValuesByType {
    /// The strings, sorted.
    texts: Vec<Str>,
    /// The integers, sorted.
    ints: Vec<i64>,
    /// All others.
    others: Vec<Value>,
}

impl ValuesByType {
    fn of(values: &[Value]) -> Self {
        let mut of = Self::default();
        for value in values {
            match value {
                Value::Str(text) => of.texts.push(text.clone()),
                Value::Int(number) => of.ints.push(*number),
                other => of.others.push(other.clone()),
            }
        }
        of.texts.sort_unstable();
        of.ints.sort_unstable();
        of
    }

    fn names(&self, value: &Value) -> bool {
        let has_int = |number: i64| self.ints.binary_search(&number).is_ok();
        let is_other = || self.others.iter().any(|own| is_equal(own, value));
        match value {
            Value::Str(text) => self.texts.binary_search(text).is_ok(),
            Value::Int(number) => has_int(*number) || is_other(),
            Value::Float(number) => has_int(as_int(number.get())) || is_other(),
            _ => is_other(),
        }
    }
}

impl Enumeration {
    /// Reads the values of a schema.
    pub(super) fn of(values: &[Value]) -> Self {
        let index = (values.len() > COMPARED_VALUES_MAX).then(|| Box::new(ValuesByType::of(values)));
        Self { values: values.to_vec(), index }
    }

    /// Returns whether no values are stated, so that every value is allowed.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Returns the values, as the schema states them.
    pub fn values(&self) -> &[Value] {
        &self.values
    }

    /// Returns whether a value is among them. Numbers are compared in the type that they have.
    pub fn names(&self, value: &Value) -> bool {
        match &self.index {
            _ if value.is_null() => false,
            Some(index) => index.names(value),
            None => self.values.iter().any(|own| is_equal(own, value)),
        }
    }
}

/// Returns whether a value equals one of an enumeration. A number is converted to the type that the value has.
#[expect(clippy::cast_precision_loss, reason = "Go converts numbers likewise")]
fn is_equal(own: &Value, value: &Value) -> bool {
    match (own, value) {
        (Value::Float(own), Value::Int(number)) => own.get() == *number as f64,
        (Value::Int(own), Value::Float(number)) => *own == as_int(number.get()),
        (own, value) => own == value,
    }
}

#[expect(clippy::cast_possible_truncation, reason = "Go converts numbers likewise")]
const fn as_int(number: f64) -> i64 {
    number as i64
}
