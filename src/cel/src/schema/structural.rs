//! A structural schema, reduced to the parts that rules need: types, bounds, correlation of lists and maps, and the
//! rules.

use flotilla_proto::value::{Map, Value};

use crate::limits::SCHEMA_DEPTH_MAX;

/// The schema of one value.
#[derive(Clone, Debug, Default)]
pub struct Schema {
    /// `type`; empty for none.
    pub kind: Box<str>,
    /// `format`; empty for none.
    pub format: Box<str>,
    /// `nullable`.
    pub nullable: bool,
    /// `x-kubernetes-embedded-resource`.
    pub embedded: bool,
    /// `x-kubernetes-int-or-string`.
    pub int_or_string: bool,
    /// The members of objects, sorted by name.
    pub properties: Vec<(Box<str>, Schema)>,
    /// The schema of all other members, if there is one.
    pub additional: Option<Box<Schema>>,
    /// Whether there is an `additionalProperties` of any kind.
    pub has_additional: bool,
    /// The schema of a list's items.
    pub items: Option<Box<Schema>>,
    /// `x-kubernetes-list-type`; empty for none.
    pub list_type: Box<str>,
    /// `x-kubernetes-list-map-keys`.
    pub list_map_keys: Vec<Box<str>>,
    /// `x-kubernetes-map-type`; empty for none.
    pub map_type: Box<str>,
    /// Whether it has a default.
    pub has_default: bool,
    /// `maxLength`.
    pub max_length: Option<i64>,
    /// `maxItems`.
    pub max_items: Option<i64>,
    /// `maxProperties`.
    pub max_properties: Option<i64>,
    /// The length of the longest string of `enum`, in bytes. `None` without `enum`.
    pub longest_choice: Option<i64>,
    /// `required`.
    pub required: Vec<Box<str>>,
    /// `x-kubernetes-validations`.
    pub rules: Vec<Rule>,
}

/// A rule as it was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    /// The expression.
    pub rule: String,
    /// The message about values that break it; if empty, a message with the rule's text is used.
    pub message: String,
    /// An expression that computes the message; empty for none.
    pub message_expression: String,
    /// The reason of the error.
    pub reason: Option<String>,
    /// The field of the error, relative to the schema; empty for the schema's own place.
    pub field_path: String,
    /// Whether `oldSelf` is an optional.
    pub optional_old_self: Option<bool>,
}

impl Schema {
    /// Parses a schema; ignores unknown keywords.
    pub fn of(schema: &Value) -> Self {
        read(schema, 0)
    }

    /// Returns the schema of a member, if it is one of [`Schema::properties`].
    pub fn property(&self, name: &str) -> Option<&Self> {
        let found = self.properties.binary_search_by(|(property, _)| (**property).cmp(name));
        found.ok().map(|place| &self.properties[place].1)
    }

    /// Returns whether this schema or one below it has rules.
    pub fn has_rules(&self) -> bool {
        !self.rules.is_empty()
            || self.items.as_deref().is_some_and(Self::has_rules)
            || self.additional.as_deref().is_some_and(Self::has_rules)
            || self.properties.iter().any(|(_, schema)| schema.has_rules())
    }

    /// Returns whether members of objects correlate with those of the old object.
    pub fn is_correlatable(&self) -> bool {
        matches!(&*self.map_type, "" | "granular" | "atomic")
    }

    /// Returns the schema with the fields that every resource has: `kind`, `apiVersion`, and `metadata` with names.
    pub fn with_meta(&self) -> Self {
        let text = || Self { kind: "string".into(), ..Self::default() };
        let is_text = |schema: Option<&Self>| schema.is_some_and(|schema| &*schema.kind == "string");
        let metadata = self.property("metadata").filter(|metadata| &*metadata.kind == "object");
        let has_names =
            metadata.is_some_and(|meta| is_text(meta.property("name")) && is_text(meta.property("generateName")));
        if is_text(self.property("kind")) && is_text(self.property("apiVersion")) && has_names {
            return self.clone();
        }
        let names = vec![("generateName".into(), text()), ("name".into(), text())];
        let metadata = Self { kind: "object".into(), properties: names, ..Self::default() };
        let mut schema = self.clone();
        for (name, property) in [("apiVersion", text()), ("kind", text()), ("metadata", metadata)] {
            match schema.properties.binary_search_by(|(known, _)| (**known).cmp(name)) {
                Ok(place) => schema.properties[place].1 = property,
                Err(place) => schema.properties.insert(place, (name.into(), property)),
            }
        }
        schema
    }
}

fn read(schema: &Value, depth: usize) -> Schema {
    if schema.as_object().is_none() || depth > SCHEMA_DEPTH_MAX {
        return Schema::default();
    }
    let (flag, count) = (|key: &str| schema.is_true_at(&[key]), |key: &str| schema.int_at(&[key]));
    let text = |key: &str| schema.str_at(&[key]).into();
    let below = |key: &str| {
        let value = schema.at(&[key]);
        value.as_object().map(|_| Box::new(read(value, depth + 1)))
    };
    let choices = schema.list_at(&["enum"]);
    let lengths = choices.iter().map(|choice| choice.as_str().map_or(0, |text| text.len() as i64));
    let members = schema.at(&["properties"]).as_object().into_iter().flat_map(Map::iter);
    let mut properties: Vec<_> = members.map(|(name, value)| (name.into(), read(value, depth + 1))).collect();
    properties.sort_unstable_by(|(a, _): &(Box<str>, _), (b, _)| a.cmp(b));
    Schema {
        kind: text("type"),
        format: text("format"),
        nullable: flag("nullable"),
        embedded: flag("x-kubernetes-embedded-resource"),
        int_or_string: flag("x-kubernetes-int-or-string"),
        properties,
        additional: below("additionalProperties"),
        has_additional: !schema.at(&["additionalProperties"]).is_null(),
        items: below("items"),
        list_type: text("x-kubernetes-list-type"),
        list_map_keys: texts(schema, "x-kubernetes-list-map-keys"),
        map_type: text("x-kubernetes-map-type"),
        has_default: !schema.at(&["default"]).is_null(),
        max_length: count("maxLength"),
        max_items: count("maxItems"),
        max_properties: count("maxProperties"),
        longest_choice: lengths.max(),
        required: texts(schema, "required"),
        rules: schema.list_at(&["x-kubernetes-validations"]).iter().map(Rule::of).collect(),
    }
}

fn texts(schema: &Value, key: &str) -> Vec<Box<str>> {
    schema.list_at(&[key]).iter().filter_map(Value::as_str).map(Into::into).collect()
}

impl Rule {
    /// Reads a rule.
    pub fn of(rule: &Value) -> Self {
        let text = |key: &str| rule.str_at(&[key]).to_owned();
        Self {
            rule: text("rule"),
            message: text("message"),
            message_expression: text("messageExpression"),
            reason: rule.at(&["reason"]).as_str().map(str::to_owned),
            field_path: text("fieldPath"),
            optional_old_self: rule.at(&["optionalOldSelf"]).as_bool(),
        }
    }

    /// Returns whether `oldSelf` is an optional.
    pub fn has_optional_old_self(&self) -> bool {
        self.optional_old_self == Some(true)
    }

    /// Returns the name of the rule in errors: its message, or its text.
    pub fn name(&self) -> &str {
        if self.message.is_empty() { self.rule.trim() } else { self.message.trim() }
    }

    /// Returns the message about a value that breaks the rule, without a computed message.
    pub fn message(&self) -> String {
        if self.message.is_empty() { format!("failed rule: {}", self.name()) } else { self.message.trim().to_owned() }
    }

    /// Formats the rule for errors: the reference's structure as JSON.
    pub fn shown(&self) -> String {
        let mut out = Vec::new();
        let text = |out: &mut Vec<u8>, text: &str| flotilla_proto::json::write_str(text, out);
        for (key, value) in [
            ("{\"Rule\":", &self.rule),
            (",\"Message\":", &self.message),
            (",\"MessageExpression\":", &self.message_expression),
        ] {
            out.extend_from_slice(key.as_bytes());
            text(&mut out, value);
        }
        out.extend_from_slice(b",\"Reason\":");
        match &self.reason {
            Some(reason) => text(&mut out, reason),
            None => out.extend_from_slice(b"null"),
        }
        out.extend_from_slice(b",\"FieldPath\":");
        text(&mut out, &self.field_path);
        let optional = self.optional_old_self.map_or("null".to_owned(), |flag| flag.to_string());
        out.extend_from_slice(format!(",\"OptionalOldSelf\":{optional}}}").as_bytes());
        String::from_utf8_lossy(&out).into_owned()
    }
}
