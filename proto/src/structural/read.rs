//! Reading a schema from JSON.

use super::rules::ValueValidation;
use super::shared::Pool;
use super::{Additional, Enumeration, Extra, ListType, Pattern, Shared, Structural, ValueType, ValueValidations};
use crate::json;
use crate::limits::SCHEMA_DEPTH_MAX;
use crate::value::{Map, Str, Value};

/// The members of a schema that are value validations; most schemas have none of them.
const RULES: [&str; 20] = [
    "allOf",
    "anyOf",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "not",
    "oneOf",
    "pattern",
    "required",
    "uniqueItems",
];

/// Reads schemas. All schemas that one reader reads share their equal parts.
#[derive(Debug, Default)]
pub struct SchemaReader {
    pool: Pool,
}

impl SchemaReader {
    /// Reads a schema. Leaves out the parts that it does not understand.
    pub fn read(&mut self, schema: &Value) -> Structural {
        self.schema(schema, 0)
    }

    /// Reads a schema that is `depth` levels below another.
    fn schema(&mut self, schema: &Value, depth: usize) -> Structural {
        let Some(map) = schema.as_object() else { return Structural::default() };
        if depth > SCHEMA_DEPTH_MAX {
            return Structural { preserves_unknown: true, nullable: true, ..Structural::default() };
        }
        let flag = |key| schema.is_true_at(&[key]);
        let mut read = Structural {
            of: value_type(schema.str_at(&["type"])),
            nullable: flag("nullable"),
            preserves_unknown: flag("x-kubernetes-preserve-unknown-fields"),
            embedded: flag("x-kubernetes-embedded-resource"),
            int_or_string: flag("x-kubernetes-int-or-string"),
            list_type: list_type(schema.str_at(&["x-kubernetes-list-type"])),
            atomic: schema.str_at(&["x-kubernetes-map-type"]) == "atomic",
            ..Structural::default()
        };
        read.properties = self.properties(schema.at(&["properties"]), depth + 1);
        read.extra = extra(schema, &read.properties);
        read.additional = self.additional(schema.at(&["additionalProperties"]), depth + 1);
        read.items = self.below(schema, "items", depth + 1);
        if map.keys().any(|key| RULES.contains(&key)) {
            read.rules = self.rules(schema, depth + 1);
        }
        read
    }

    fn shared(&mut self, schema: &Value, depth: usize) -> Shared {
        let read = self.schema(schema, depth);
        self.pool.share(read)
    }

    fn properties(&mut self, value: &Value, depth: usize) -> Box<[(Str, Shared)]> {
        let members = value.as_object().into_iter().flat_map(Map::iter);
        let mut read: Vec<_> = members.map(|(name, value)| (Str::from(name), self.shared(value, depth))).collect();
        read.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        read.into()
    }

    fn additional(&mut self, value: &Value, depth: usize) -> Additional {
        match value {
            Value::Bool(flag) => Additional::Any(*flag),
            Value::Object(_) => Additional::Of(self.shared(value, depth)),
            _ => Additional::Absent,
        }
    }

    /// Returns the schema in the member `key`. `None` if there is none.
    fn below(&mut self, schema: &Value, key: &str, depth: usize) -> Option<Shared> {
        let value = schema.at(&[key]);
        value.as_object().map(|_| self.shared(value, depth))
    }

    /// Returns the schemas in the list `key`. `None` if there are none.
    fn list(&mut self, schema: &Value, key: &str, depth: usize) -> Option<Box<[Structural]>> {
        let stated = Some(schema.list_at(&[key])).filter(|stated| !stated.is_empty())?;
        Some(stated.iter().map(|value| self.schema(value, depth)).collect())
    }

    fn rules(&mut self, schema: &Value, depth: usize) -> ValueValidations {
        let count = |key| schema.int_at(&[key]);
        let number = |key| number(schema.at(&[key]));
        let flag = |key, rule| schema.is_true_at(&[key]).then_some(rule);
        let text = |key| Some(schema.str_at(&[key])).filter(|text| !text.is_empty());
        let values = Some(schema.list_at(&["enum"])).filter(|values| !values.is_empty());
        let required = Some(texts(schema, "required")).filter(|names| !names.is_empty());
        let stated = [
            values.map(|values| ValueValidation::Enumeration(Box::new(Enumeration::of(values)))),
            text("format").map(|format| ValueValidation::Format(format.into())),
            text("pattern").map(|pattern| ValueValidation::Pattern(Box::new(Pattern::new(pattern)))),
            number("minimum").map(ValueValidation::Minimum),
            flag("exclusiveMinimum", ValueValidation::ExclusiveMinimum),
            number("maximum").map(ValueValidation::Maximum),
            flag("exclusiveMaximum", ValueValidation::ExclusiveMaximum),
            number("multipleOf").map(ValueValidation::MultipleOf),
            count("minLength").map(ValueValidation::MinLength),
            count("maxLength").map(ValueValidation::MaxLength),
            count("minItems").map(ValueValidation::MinItems),
            count("maxItems").map(ValueValidation::MaxItems),
            flag("uniqueItems", ValueValidation::UniqueItems),
            count("minProperties").map(ValueValidation::MinProperties),
            count("maxProperties").map(ValueValidation::MaxProperties),
            required.map(|names| ValueValidation::Required(names.into())),
            self.list(schema, "allOf", depth).map(ValueValidation::AllOf),
            self.list(schema, "anyOf", depth).map(ValueValidation::AnyOf),
            self.list(schema, "oneOf", depth).map(ValueValidation::OneOf),
            self.below(schema, "not", depth).map(ValueValidation::Not),
        ];
        ValueValidations::of(stated.into_iter().flatten().collect())
    }
}

/// Reads the parts that few schemas have. Returns `None` if this schema has none of them.
fn extra(schema: &Value, properties: &[(Str, Shared)]) -> Option<Box<Extra>> {
    let has_default = |(_, (_, property)): &(usize, &(Str, Shared))| property.default_value().is_some();
    let defaulted: Vec<_> = properties.iter().enumerate().filter(has_default).map(|(at, _)| at).collect();
    let default = Some(schema.at(&["default"])).filter(|value| !value.is_null()).cloned();
    let list_map_keys = texts(schema, "x-kubernetes-list-map-keys");
    let default_bytes = default.as_ref().map_or(0, |value| json::to_vec(value).len());
    let has_any = default.is_some() || !defaulted.is_empty() || !list_map_keys.is_empty();
    has_any.then(|| Box::new(Extra { default, default_bytes, defaulted, list_map_keys }))
}

fn value_type(name: &str) -> Option<ValueType> {
    use ValueType::{Array, Boolean, Integer, Number, Object, String};
    [Object, Array, String, Integer, Number, Boolean].into_iter().find(|of| of.name() == name)
}

fn list_type(name: &str) -> Option<ListType> {
    match name {
        "atomic" => Some(ListType::Atomic),
        "set" => Some(ListType::Set),
        "map" => Some(ListType::Map),
        _ => None,
    }
}

fn texts(schema: &Value, key: &str) -> Vec<Str> {
    schema.list_at(&[key]).iter().filter_map(Value::as_str).map(Str::from).collect()
}

#[expect(clippy::cast_precision_loss, reason = "bounds are floats in the API")]
fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Int(number) => Some(*number as f64),
        Value::Float(number) => Some(number.get()),
        _ => None,
    }
}
