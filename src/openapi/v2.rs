//! OpenAPI v2 (Swagger): one document of all paths and definitions.

use std::collections::BTreeMap;

use flotilla_proto::schema::Text;
use flotilla_proto::value;
use flotilla_proto::value::{Map, Value};

use super::document::Content;
use super::operations::{Answered, Item, Operation};
use super::parameters::Parameter;
use super::schemas::{GroupVersion, PREFIX};
use super::v3::{add_action, reason, security};
use crate::discovery::version::{MAJOR, MINOR};

const DEFINITIONS: &str = "#/definitions/";

/// The parts of the document that come before its paths.
pub(super) fn head() -> Value {
    value!({"swagger": "2.0", "info": {"title": "Kubernetes", "version": (format!("{MAJOR}.{MINOR}"))}})
}

/// The parts of the document that come after its definitions.
pub(super) fn tail() -> Value {
    value!({"securityDefinitions": (security()), "security": [{"BearerToken": []}]})
}

/// The group versions under which kinds of options stand: every one that Kubernetes knows.
pub(super) fn options() -> Vec<GroupVersion> {
    let lines = include_str!("group_versions.txt").lines().filter(|line| !line.starts_with('#'));
    lines
        .flat_map(|line| {
            let mut words = line.split_ascii_whitespace();
            let group = words.next().unwrap_or_default();
            words
                .map(move |version| (Text::Borrowed(if group == "core" { "" } else { group }), Text::Borrowed(version)))
        })
        .collect()
}

/// The content of the whole document: that of all v3 documents, with all versions of options.
pub(super) fn merge(contents: impl IntoIterator<Item = Content>) -> Content {
    let mut all = Content { custom: false, items: BTreeMap::new(), schemas: BTreeMap::new() };
    for content in contents {
        all.items.extend(content.items);
        all.schemas.extend(content.schemas);
    }
    let options = options();
    for name in ["DeleteOptions", "WatchEvent"] {
        if let Some(schema) = all.schemas.get_mut(&format!("{}{name}", super::META)) {
            let entry =
                |(group, version): &GroupVersion| value!({"group": (&**group), "kind": name, "version": (&**version)});
            schema.set_at(&["x-kubernetes-group-version-kind"], options.iter().map(entry).collect::<Vec<_>>());
        }
    }
    all
}

/// A v3 schema as v2 can state it: no defaults, alternatives as strings, references alone.
pub(super) fn definition(name: &str, schema: &Value) -> Value {
    if matches!(schema, Value::Object(map) if map.contains_key("oneOf")) && name.starts_with("io.k8s.apimachinery.") {
        let mut text = value!({"description": (schema.str_at(&["description"])), "type": "string"});
        if let Some(format) = schema.get("format") {
            text.set_at(&["format"], format.clone());
        }
        return text;
    }
    if schema.is_true_at(&[PRESERVE]) {
        // Clients of v2 would refuse fields that are not listed, so nothing is.
        let kinds = schema.at(&["x-kubernetes-group-version-kind"]).clone();
        return value!({"type": "object", "x-kubernetes-group-version-kind": kinds});
    }
    reduce(schema)
}

/// Says that fields without a schema are let through.
const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";
/// Keywords of a schema that v2 does not have.
const DROPPED: [&str; 5] = ["default", "nullable", "oneOf", "anyOf", "not"];
/// Keywords that mean nothing once a value of unknown or several types is let through.
const STRUCTURAL: [&str; 6] = ["type", "format", "properties", "required", "items", "additionalProperties"];

fn reduce(schema: &Value) -> Value {
    let Value::Object(map) = schema else { return schema.clone() };
    let is = |key: &str| map.get(key) == Some(&Value::Bool(true));
    let open = is(PRESERVE) || is("x-kubernetes-int-or-string") || is("nullable");
    let mut out = Map::new();
    for (key, value) in map.iter() {
        if DROPPED.contains(&key) || (open && STRUCTURAL.contains(&key)) {
            continue;
        }
        match (key, value) {
            ("properties", Value::Object(properties)) => {
                let each = properties.iter().map(|(name, property)| (name, reduce(property)));
                out.insert(key, each.collect::<Map>());
            }
            ("allOf", Value::Array(all)) => {
                if let [only] = all.as_slice() {
                    out.insert("$ref", reference(only.str_at(&["$ref"])));
                }
            }
            ("$ref", Value::Str(name)) => {
                out.insert("$ref", reference(name));
            }
            ("items" | "additionalProperties", value) => {
                out.insert(key, reduce(value));
            }
            _ => {
                out.insert(key, value.clone());
            }
        }
    }
    out.into()
}

fn reference(name: &str) -> String {
    format!("{DEFINITIONS}{}", name.strip_prefix(PREFIX).unwrap_or(name))
}

/// A path item; parameters that it shares with others are added to `shared`.
pub(super) fn item(item: &Item, shared: &mut BTreeMap<String, Value>) -> Value {
    let mut out = Map::new();
    for of in &item.operations {
        out.insert(of.method, operation(of, shared));
    }
    if !item.parameters.is_empty() {
        let parameters: Vec<Value> = item.parameters.iter().map(|of| parameter(of, shared)).collect();
        out.insert("parameters", parameters);
    }
    out.into()
}

fn parameter(of: &Parameter, shared: &mut BTreeMap<String, Value>) -> Value {
    share(&of.shared, || of.v2(), shared)
}

fn share(name: &str, full: impl FnOnce() -> Value, shared: &mut BTreeMap<String, Value>) -> Value {
    if name.is_empty() {
        return full();
    }
    shared.entry(name.to_owned()).or_insert_with(full);
    value!({"$ref": (format!("#/parameters/{name}"))})
}

fn operation(of: &Operation, shared: &mut BTreeMap<String, Value>) -> Value {
    let list = |media: &[&str]| Value::Array(media.iter().map(|media| Value::from(*media)).collect());
    let mut out = value!({"description": (of.description.as_str())});
    if !of.consumes.is_empty() {
        out.set_at(&["consumes"], list(of.consumes));
    }
    out.set_at(&["produces"], list(of.produces));
    out.set_at(&["schemes"], value!(["https"]));
    out.set_at(&["tags"], value!([(of.tag.as_str())]));
    out.set_at(&["operationId"], of.id.as_str());
    let mut parameters = Vec::new();
    if let Some(body) = &of.body {
        let full = || {
            let mut full = value!({"name": "body", "in": "body"});
            if body.required {
                full.set_at(&["required"], true);
            }
            full.set_at(&["schema"], value!({"$ref": (format!("{DEFINITIONS}{}", body.of))}));
            full
        };
        parameters.push(share(body.shared, full, shared));
    }
    parameters.extend(of.parameters.iter().map(|of| parameter(of, shared)));
    if !parameters.is_empty() {
        out.set_at(&["parameters"], parameters);
    }
    let schema = match &of.answer {
        Answered::Object(name) => value!({"$ref": (format!("{DEFINITIONS}{name}"))}),
        Answered::Text => value!({"type": "string"}),
    };
    let mut responses = Map::new();
    for code in of.codes {
        let schema = schema.clone();
        responses.insert(code.to_string(), value!({"description": (reason(*code)), "schema": schema}));
    }
    responses.insert("401", value!({"description": "Unauthorized"}));
    out.set_at(&["responses"], responses);
    add_action(&mut out, of);
    out
}
