//! Declared types: the type and size bounds of the values that a schema allows, for the checker and the estimate.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::structural::Schema;
use crate::cost::{Node, SizeRange, SizeSource, VariableStep};
use crate::types::Type;
use crate::value::escape;

/// Most bytes of a request: they bound the sizes that a schema leaves open.
const REQUEST_BYTES: i64 = 3 << 20;
/// Bytes of the shortest values in a request.
const STRING_BYTES_MIN: i64 = 2;
const DURATION_BYTES_MIN: i64 = 3;
const DATE_BYTES: i64 = 12;
const DATE_TIME_BYTES_MIN: i64 = 21;
const BOOL_BYTES_MIN: i64 = 4;
/// Bytes of the longest duration or time.
const TIME_BYTES_MAX: i64 = 32;

/// A declared type.
#[derive(Clone, Debug)]
pub struct Declared {
    /// Its kind.
    pub of: DeclaredKind,
    /// Most characters, items or entries.
    pub elements_max: i64,
    /// Bytes of its shortest value in a request.
    pub bytes_min: i64,
}

/// The kind of a declared type.
#[derive(Clone, Debug)]
pub enum DeclaredKind {
    /// A type of the language.
    Simple(Type),
    /// A list.
    List(Arc<Declared>),
    /// A map of strings.
    Map(Arc<Declared>),
    /// An object with fields, by their names in expressions.
    Object(BTreeMap<Box<str>, Arc<Declared>>),
}

impl Declared {
    fn simple(of: Type, elements_max: i64, bytes_min: i64) -> Self {
        Self { of: DeclaredKind::Simple(of), elements_max, bytes_min }
    }

    /// Returns the declared type of a schema. `None` if CEL has no type for it.
    pub fn of(schema: &Schema, is_resource: bool) -> Option<Self> {
        if schema.int_or_string {
            let most = schema.max_length.map_or(REQUEST_BYTES - 2, |most| most.max(0).saturating_mul(4));
            return Some(Self::simple(Type::Dyn, most, 1));
        }
        if is_resource {
            return Self::of(&schema.with_meta(), false);
        }
        match &*schema.kind {
            "array" => list(schema),
            "object" => match &schema.additional {
                Some(values) => map(schema, values),
                None => Some(object(schema)),
            },
            "string" => Some(text(schema)),
            "boolean" => Some(Self::simple(Type::Bool, 0, BOOL_BYTES_MIN)),
            "number" => Some(Self::simple(Type::Double, 0, 1)),
            "integer" => Some(Self::simple(Type::Int, 0, 1)),
            _ => None,
        }
    }

    /// Returns how many of its values fit into a request.
    pub fn cardinality_max(&self) -> u64 {
        // At least a comma stands between two values.
        (REQUEST_BYTES / (self.bytes_min + 1)).unsigned_abs()
    }

    /// Returns the type of a list's items or of a map's values. `None` for other types.
    pub fn element(&self) -> Option<&Arc<Self>> {
        match &self.of {
            DeclaredKind::List(element) | DeclaredKind::Map(element) => Some(element),
            DeclaredKind::Simple(_) | DeclaredKind::Object(_) => None,
        }
    }

    /// Returns a field of an object, by its name in expressions.
    pub fn field(&self, name: &str) -> Option<&Arc<Self>> {
        match &self.of {
            DeclaredKind::Object(fields) => fields.get(name),
            _ => None,
        }
    }

    /// Returns the type for the checker. Objects are named by their path from `name`.
    fn named(&self, name: &str) -> Type {
        match &self.of {
            DeclaredKind::Simple(of) => of.clone(),
            DeclaredKind::List(element) => Type::list(element.named(&format!("{name}.{ITEM}"))),
            DeclaredKind::Map(element) => Type::map(Type::String, element.named(&format!("{name}.{ENTRY}"))),
            DeclaredKind::Object(_) => Type::object(name),
        }
    }
}

fn list(schema: &Schema) -> Option<Declared> {
    let items = schema.items.as_deref()?;
    let items = Declared::of(items, items.embedded)?;
    let most = schema.max_items.map_or((REQUEST_BYTES - 2) / (items.bytes_min + 1), |most| most.max(0));
    Some(Declared { of: DeclaredKind::List(Arc::new(items)), elements_max: most, bytes_min: 2 })
}

fn map(schema: &Schema, values: &Schema) -> Option<Declared> {
    let values = Declared::of(values, values.embedded)?;
    // An entry is a key in quotes, a colon and a comma beside its value.
    let most = schema.max_properties.map_or((REQUEST_BYTES - 2) / (values.bytes_min + 6), |most| most.max(0));
    Some(Declared { of: DeclaredKind::Map(Arc::new(values)), elements_max: most, bytes_min: 2 })
}

fn object(schema: &Schema) -> Declared {
    let (mut fields, mut bytes_min) = (BTreeMap::new(), 2);
    for (property, of) in &schema.properties {
        let Some(declared) = Declared::of(of, of.embedded) else { continue };
        if schema.required.contains(property) && !of.has_default {
            bytes_min += property.len() as i64 + declared.bytes_min + 4;
        }
        if let Some(name) = escape(property) {
            fields.insert(name.into(), Arc::new(declared));
        }
    }
    Declared { of: DeclaredKind::Object(fields), elements_max: 0, bytes_min }
}

fn text(schema: &Schema) -> Declared {
    match &*schema.format {
        "byte" => {
            let most = schema.max_length.map_or(REQUEST_BYTES - 2, |most| most.max(0));
            Declared::simple(Type::Bytes, most, STRING_BYTES_MIN)
        }
        "duration" => Declared::simple(Type::Duration, TIME_BYTES_MAX, DURATION_BYTES_MIN),
        "date" => Declared::simple(Type::Timestamp, DATE_BYTES, DATE_BYTES),
        "date-time" => Declared::simple(Type::Timestamp, TIME_BYTES_MAX, DATE_TIME_BYTES_MIN),
        _ => {
            // A character has up to four bytes.
            let most = schema.max_length.map(|most| most.max(0).saturating_mul(4));
            let most = most.or(schema.longest_choice).unwrap_or(REQUEST_BYTES - 2);
            Declared::simple(Type::String, most, STRING_BYTES_MIN)
        }
    }
}

/// The object types that rules of one schema can use, by their path. They are looked up when a rule uses one, since a
/// schema has many more than its rules use.
#[derive(Debug)]
pub struct Objects {
    root: Box<str>,
    declared: Arc<Declared>,
}

/// Name of the type of `self`, which no expression can contain.
const SELF_TYPE: &str = "selfType0";
/// Path steps into lists and maps.
const ITEM: &str = "@idx";
const ENTRY: &str = "@elem";

impl Objects {
    /// Returns the object types of a schema, and the type of `self`.
    pub fn of(declared: &Arc<Declared>) -> (Arc<Self>, Type) {
        Self::named(declared, SELF_TYPE)
    }

    /// Returns the object types in a declared type of this name, and the type itself.
    pub fn named(declared: &Arc<Declared>, name: &str) -> (Arc<Self>, Type) {
        (Arc::new(Self { root: name.into(), declared: Arc::clone(declared) }), declared.named(name))
    }

    /// Returns whether there is an object type of this name.
    pub fn has(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// Returns the type of a field of an object type, by the field's name in expressions. A field that has the escaped
    /// name of a word of the language (`__if__`) may also be named by that word.
    pub fn field(&self, object: &str, field: &str) -> Option<Type> {
        let fields = self.find(object)?;
        let found = fields.get_key_value(field).or_else(|| fields.get_key_value(&*format!("__{field}__")));
        found.map(|(own, of)| of.named(&format!("{object}.{own}")))
    }

    /// Returns the fields of an object type.
    fn find(&self, object: &str) -> Option<&BTreeMap<Box<str>, Arc<Declared>>> {
        let way = object.strip_prefix(&*self.root)?;
        if !way.is_empty() && !way.starts_with('.') {
            return None;
        }
        let mut place = &self.declared;
        for step in way.split('.').skip(1) {
            place = match (&place.of, step) {
                (DeclaredKind::List(element), ITEM) | (DeclaredKind::Map(element), ENTRY) => element,
                (DeclaredKind::Object(fields), name) => fields.get(name)?,
                _ => return None,
            };
        }
        match &place.of {
            DeclaredKind::Object(fields) => Some(fields),
            _ => None,
        }
    }
}

/// The sizes that a schema bounds, by the path from `self` or `oldSelf`.
#[derive(Debug)]
pub struct Sizes(pub Arc<Declared>);

impl SizeSource for Sizes {
    fn size(&self, node: &Node<'_>) -> Option<SizeRange> {
        let (_, steps) = node.path.as_deref()?.split_first()?;
        let mut declared = &self.0;
        for step in steps {
            match step {
                VariableStep::Items | VariableStep::Values => declared = declared.element()?,
                // Keys have no bound, and upstream's type of keys states the size 0.
                VariableStep::Keys if matches!(declared.of, DeclaredKind::Map(_)) => return Some(SizeRange::fixed(0)),
                VariableStep::Keys | VariableStep::Indices => return None,
                VariableStep::Name(name) => declared = declared.field(name)?,
            }
        }
        Some(SizeRange::new(0, declared.elements_max.unsigned_abs()))
    }
}
