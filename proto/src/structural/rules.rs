//! What values must fulfil.

use super::{Pattern, Structural};
use crate::value::{Str, Value};

/// The value validations of a schema.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    /// The values that are allowed; any when there are none.
    pub enumeration: Vec<Value>,
    /// The form of strings or the width of numbers, as the schema states it; empty for any. Not every format is
    /// checked.
    pub format: Str,
    /// What strings must match.
    pub pattern: Option<Pattern>,
    /// The least number.
    pub minimum: Option<f64>,
    /// Whether numbers must be above [`Rules::minimum`].
    pub exclusive_minimum: bool,
    /// The greatest number.
    pub maximum: Option<f64>,
    /// Whether numbers must be below [`Rules::maximum`].
    pub exclusive_maximum: bool,
    /// What numbers are multiples of.
    pub multiple_of: Option<f64>,
    /// Fewest characters of strings.
    pub min_length: Option<i64>,
    /// Most characters of strings.
    pub max_length: Option<i64>,
    /// Fewest items of lists.
    pub min_items: Option<i64>,
    /// Most items of lists.
    pub max_items: Option<i64>,
    /// Whether lists have every item once.
    pub unique_items: bool,
    /// Fewest members of objects.
    pub min_properties: Option<i64>,
    /// Most members of objects.
    pub max_properties: Option<i64>,
    /// Members that objects must have.
    pub required: Vec<Str>,
    /// Schemas that all hold.
    pub all_of: Vec<Structural>,
    /// Schemas of which one or more hold.
    pub any_of: Vec<Structural>,
    /// Schemas of which exactly one holds.
    pub one_of: Vec<Structural>,
    /// A schema that does not hold.
    pub not: Option<Box<Structural>>,
}

/// The rules of a schema that states none.
pub(super) static NONE: Rules = Rules {
    enumeration: Vec::new(),
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
