//! Value validations.

use super::{Pattern, Structural};
use crate::value::{Str, Value};

/// The value validations of a schema.
#[derive(Debug, Clone, Default)]
pub struct ValueValidations {
    /// The allowed values; any value when there are none.
    pub enumeration: Enumeration,
    /// The format of strings or the width of numbers, as the schema states it; empty for any. Not every format is
    /// checked.
    pub format: Str,
    /// The pattern that strings must match.
    pub pattern: Option<Pattern>,
    /// The least number.
    pub minimum: Option<f64>,
    /// Whether numbers must be above [`ValueValidations::minimum`].
    pub exclusive_minimum: bool,
    /// The greatest number.
    pub maximum: Option<f64>,
    /// Whether numbers must be below [`ValueValidations::maximum`].
    pub exclusive_maximum: bool,
    /// A number of which numbers must be multiples.
    pub multiple_of: Option<f64>,
    /// Fewest characters of strings.
    pub min_length: Option<i64>,
    /// Most characters of strings.
    pub max_length: Option<i64>,
    /// Fewest items of lists.
    pub min_items: Option<i64>,
    /// Most items of lists.
    pub max_items: Option<i64>,
    /// Whether the items of lists must differ from each other.
    pub unique_items: bool,
    /// Fewest members of objects.
    pub min_properties: Option<i64>,
    /// Most members of objects.
    pub max_properties: Option<i64>,
    /// The members that objects must have.
    pub required: Vec<Str>,
    /// Schemas that must all hold.
    pub all_of: Vec<Structural>,
    /// Schemas of which at least one must hold.
    pub any_of: Vec<Structural>,
    /// Schemas of which exactly one must hold.
    pub one_of: Vec<Structural>,
    /// A schema that must not hold.
    pub not: Option<Box<Structural>>,
}

/// The allowed values, where not all are allowed.
#[derive(Debug, Clone, Default)]
pub struct Enumeration {
    values: Vec<Value>,
    /// Those that are strings, sorted.
    texts: Vec<Str>,
    /// Those that are integers, sorted.
    ints: Vec<i64>,
    /// All others.
    others: Vec<Value>,
}

impl Enumeration {
    /// No values are stated.
    const NONE: Self = Self { values: Vec::new(), texts: Vec::new(), ints: Vec::new(), others: Vec::new() };

    /// Returns the enumeration of these values.
    fn of_values(values: Vec<Value>) -> Self {
        let mut of = Self::NONE;
        for value in &values {
            match value {
                Value::Str(text) => of.texts.push(text.clone()),
                Value::Int(number) => of.ints.push(*number),
                other => of.others.push(other.clone()),
            }
        }
        of.texts.sort_unstable();
        of.ints.sort_unstable();
        Self { values, ..of }
    }

    /// Reads the values of a schema.
    pub(super) fn of(values: &[Value]) -> Self {
        Self::of_values(values.to_vec())
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
    #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "Go converts numbers likewise")]
    pub fn names(&self, value: &Value) -> bool {
        let has_float =
            |number: f64| self.others.iter().any(|it| matches!(it, Value::Float(own) if own.get() == number));
        let has_int = |number: i64| self.ints.binary_search(&number).is_ok();
        match value {
            Value::Null => false,
            Value::Str(text) => self.texts.binary_search(text).is_ok(),
            Value::Int(number) => has_int(*number) || has_float(*number as f64),
            Value::Float(number) => has_float(number.get()) || has_int(number.get() as i64),
            other => self.others.contains(other),
        }
    }
}

/// The rules of a schema without value validations.
pub(super) static NONE: ValueValidations = ValueValidations {
    enumeration: Enumeration::NONE,
    format: Str::const_new(""),
    pattern: None,
    minimum: None,
    exclusive_minimum: false,
    maximum: None,
    exclusive_maximum: false,
    multiple_of: None,
    min_length: None,
    max_length: None,
    min_items: None,
    max_items: None,
    unique_items: false,
    min_properties: None,
    max_properties: None,
    required: Vec::new(),
    all_of: Vec::new(),
    any_of: Vec::new(),
    one_of: Vec::new(),
    not: None,
};
