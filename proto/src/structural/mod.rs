//! Structural schemas: what a CustomResourceDefinition says of the objects of one version (`openAPIV3Schema`).
//!
//! A schema is made once, of a definition that was validated before, and then asked about every object: [`prune`]
//! drops what it does not know, [`default()`] fills in what is absent, [`object_type`] is what server-side apply sees
//! of it. What its [`Rules`] say of values is checked where errors are worded.

mod default;
mod pattern;
mod prune;
mod read;
mod rules;
mod types;

use crate::value::{Map, Str, Value};

pub use default::{Overgrown, default, drop_nulls};
pub use pattern::Pattern;
pub use prune::prune;
pub use rules::{Enumeration, Rules};
pub use types::object_type;

/// Most levels of a schema that are read; what is below is taken as it comes.
const DEPTH_MAX: usize = 256;

/// How many more properties than an object has members a schema has before they are looked up one by one.
const SPARSE_FACTOR: usize = 8;

/// The members that every object has, whatever its schema says.
const META: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// What one place of an object may hold.
#[derive(Debug, Clone, Default)]
pub struct Structural {
    /// The type of values; `None` when any will do.
    pub of: Option<ValueType>,
    /// Whether `null` is a value, not the absence of one.
    pub nullable: bool,
    /// What absent values are set to.
    pub default: Option<Value>,
    /// How many bytes the default takes as text.
    default_bytes: usize,
    /// Which of the properties have a default.
    defaulted: Vec<usize>,
    /// The members of objects, sorted by name; see [`Structural::property`].
    pub properties: Vec<(Str, Structural)>,
    /// What other members of objects hold.
    pub additional: Additional,
    /// What the items of lists are.
    pub items: Option<Box<Structural>>,
    /// Whether members that the schema does not name are kept (`x-kubernetes-preserve-unknown-fields`).
    pub preserves_unknown: bool,
    /// Whether objects are objects of the API themselves, with apiVersion, kind and metadata
    /// (`x-kubernetes-embedded-resource`).
    pub embedded: bool,
    /// Whether values are integers or strings (`x-kubernetes-int-or-string`).
    pub int_or_string: bool,
    /// How the items of lists are told apart (`x-kubernetes-list-type`), if it is stated.
    pub list_type: Option<ListType>,
    /// The members that identify the items of a list of type `map` (`x-kubernetes-list-map-keys`).
    pub list_map_keys: Vec<Str>,
    /// Whether apply treats objects as one value (`x-kubernetes-map-type: atomic`).
    pub atomic: bool,
    /// What values must fulfil, see [`Structural::rules`].
    rules: Option<Box<Rules>>,
}

/// The `type` of a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListType {
    /// The list is one value.
    Atomic,
    /// Every item stands once.
    Set,
    /// Items have keys.
    Map,
}

/// `additionalProperties`.
#[derive(Debug, Clone, Default)]
pub enum Additional {
    /// It is not stated.
    #[default]
    Absent,
    /// Whether there may be any.
    Any(bool),
    /// What they hold.
    Of(Box<Structural>),
}

impl Structural {
    /// Reads a schema. What it does not understand it leaves out.
    pub fn of(schema: &Value) -> Self {
        read::schema(schema, 0)
    }

    /// The schema of the member `name`, if it is one of [`Structural::properties`].
    pub fn property(&self, name: &str) -> Option<&Structural> {
        let found = self.properties.binary_search_by(|(key, _)| key.as_str().cmp(name));
        found.ok().map(|at| &self.properties[at].1)
    }

    /// The schema of the member `name`: its own, or the one that other members have.
    pub fn member(&self, name: &str) -> Option<&Structural> {
        self.property(name).or_else(|| self.additional.schema())
    }

    /// The properties that an object has, in the order of the schema. Takes time as the object has members, where the
    /// schema has very many more.
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
            Some((name, property, map.get(name)?))
        })
    }

    /// What values must fulfil.
    pub fn rules(&self) -> &Rules {
        self.rules.as_deref().unwrap_or(&rules::NONE)
    }
}

impl Additional {
    /// What other members hold, if it is stated.
    pub fn schema(&self) -> Option<&Structural> {
        match self {
            Self::Of(schema) => Some(schema),
            Self::Absent | Self::Any(_) => None,
        }
    }
}

impl ValueType {
    /// As schemas and errors name it.
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

/// Whether every object has the member, whatever its schema says.
fn is_meta(name: &str) -> bool {
    META.contains(&name)
}

#[cfg(test)]
mod tests;
