//! Structural schemas: the schema of the objects of one version of a CustomResourceDefinition (`openAPIV3Schema`).
//!
//! A schema is made once, from a definition that was validated before, and then used for every object: [`prune`] drops
//! unknown members, [`default()`] fills in absent ones, [`object_type`] returns the type that server-side apply uses.
//! The value validations in its [`ValueValidations`] are checked elsewhere, where their errors are worded.

mod default;
mod pattern;
mod prune;
mod read;
mod rules;
mod shared;
mod types;

use std::hash::{Hash, Hasher};

use crate::value::{Map, Str, Value};

pub use default::{Overgrown, default, drop_nulls};
pub use pattern::Pattern;
pub use prune::prune;
pub use read::SchemaReader;
pub use rules::{Enumeration, ValueValidations};
use shared::hash_value;

pub use shared::Shared;
pub use types::object_type;

/// Properties are looked up one by one when the schema has this many times more of them than the object has members.
const SPARSE_FACTOR: usize = 8;

/// The members that every object has, whatever its schema contains.
const META: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// The schema of one place in an object.
#[derive(Debug, Clone, Default, PartialEq, Hash)]
pub struct Structural {
    /// The type of values. `None` when any type is allowed.
    pub of: Option<ValueType>,
    /// Whether `null` is a value, instead of meaning absence.
    pub nullable: bool,
    /// The members of objects, sorted by name; see [`Structural::property`].
    pub properties: Box<[(Str, Shared)]>,
    /// The schema of other members of objects.
    pub additional: Additional,
    /// The schema of the items of lists.
    pub items: Option<Shared>,
    /// Whether members that the schema does not name are kept (`x-kubernetes-preserve-unknown-fields`).
    pub preserves_unknown: bool,
    /// Whether objects are API objects themselves, with apiVersion, kind and metadata
    /// (`x-kubernetes-embedded-resource`).
    pub embedded: bool,
    /// Whether values are integers or strings (`x-kubernetes-int-or-string`).
    pub int_or_string: bool,
    /// How apply identifies the items of lists (`x-kubernetes-list-type`). `None` if it is not stated.
    pub list_type: Option<ListType>,
    /// Whether apply treats objects as one value (`x-kubernetes-map-type: atomic`).
    pub atomic: bool,
    /// The value validations, see [`Structural::rules`].
    rules: ValueValidations,
    /// The parts that few schemas have, boxed since a server may hold hundreds of thousands of schemas.
    extra: Option<Box<Extra>>,
}

/// The parts of a schema that few schemas have.
#[derive(Debug, Clone, Default, PartialEq)]
struct Extra {
    default: Option<Value>,
    /// The size of the default as text, in bytes.
    default_bytes: usize,
    /// The indexes of the properties that have a default.
    defaulted: Vec<usize>,
    list_map_keys: Vec<Str>,
}

impl Hash for Extra {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.defaulted, &self.list_map_keys).hash(state);
        self.default.iter().for_each(|value| hash_value(value, state));
    }
}

/// The parts of a schema without [`Extra`].
static NO_EXTRA: Extra = Extra { default: None, default_bytes: 0, defaulted: Vec::new(), list_map_keys: Vec::new() };

/// The `type` of a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ValueType {
    /// An object.
    Object,
    /// A list.
    Array,
    /// A string.
    String,
    /// A number without fraction.
    Integer,
    /// A number.
    Number,
    /// `true` or `false`.
    Boolean,
}

/// `x-kubernetes-list-type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ListType {
    /// The list is one value.
    Atomic,
    /// Every item occurs once.
    Set,
    /// Items are identified by keys.
    Map,
}

/// `additionalProperties`.
#[derive(Debug, Clone, Default, PartialEq, Hash)]
pub enum Additional {
    /// The schema does not state it.
    #[default]
    Absent,
    /// Whether other members are allowed.
    Any(bool),
    /// The schema of other members.
    Of(Shared),
}

impl Structural {
    /// Reads a schema. Leaves out the parts that it does not understand.
    pub fn of(schema: &Value) -> Self {
        SchemaReader::default().read(schema)
    }

    /// Returns the value that absent values get. Returns `None` if they stay absent.
    pub fn default_value(&self) -> Option<&Value> {
        self.extra().default.as_ref()
    }

    /// Returns the members that identify the items of a list of type `map` (`x-kubernetes-list-map-keys`).
    pub fn list_map_keys(&self) -> &[Str] {
        &self.extra().list_map_keys
    }

    /// Returns the properties that have a default.
    fn defaulted(&self) -> impl Iterator<Item = &(Str, Shared)> {
        self.extra().defaulted.iter().map(|at| &self.properties[*at])
    }

    fn extra(&self) -> &Extra {
        self.extra.as_deref().unwrap_or(&NO_EXTRA)
    }

    /// Returns the schema of the member `name`. Returns `None` if it is not one of [`Structural::properties`].
    pub fn property(&self, name: &str) -> Option<&Structural> {
        let found = self.properties.binary_search_by(|(key, _)| key.as_str().cmp(name));
        found.ok().map(|at| &*self.properties[at].1)
    }

    /// Returns the schema of the member `name`: its own, or the one of other members.
    pub fn member(&self, name: &str) -> Option<&Structural> {
        self.property(name).or_else(|| self.additional.schema())
    }

    /// Returns the properties that an object has, in the order of the schema. If the schema has far more properties
    /// than the object has members, the time depends on the members only.
    pub fn stated<'a>(&'a self, map: &'a Map) -> impl Iterator<Item = (&'a Str, &'a Structural, &'a Value)> {
        let is_sparse = self.properties.len() > SPARSE_FACTOR * (map.len() + 1);
        let mut at: Vec<usize> = Vec::new();
        if is_sparse {
            let place = |name| self.properties.binary_search_by(|(key, _)| key.as_str().cmp(name)).ok();
            at.extend(map.keys().filter_map(place));
            at.sort_unstable();
        }
        let all = 0..if is_sparse { 0 } else { self.properties.len() };
        at.into_iter().chain(all).filter_map(|at| {
            let (name, property) = &self.properties[at];
            Some((name, &**property, map.get(name)?))
        })
    }

    /// Returns the value validations.
    pub const fn rules(&self) -> &ValueValidations {
        &self.rules
    }
}

impl Additional {
    /// Returns the schema of other members. Returns `None` if there is none.
    pub fn schema(&self) -> Option<&Structural> {
        match self {
            Self::Of(schema) => Some(schema),
            Self::Absent | Self::Any(_) => None,
        }
    }
}

impl ValueType {
    /// Returns the name as schemas and errors have it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Object => "object",
            Self::Array => "array",
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
        }
    }
}

/// Returns whether every object has the member, whatever its schema contains.
fn is_meta(name: &str) -> bool {
    META.contains(&name)
}

#[cfg(test)]
mod tests;
