//! OpenAPI v2 (Swagger): one document of all paths and definitions.

use std::collections::BTreeMap;

use flotilla_proto::schema::Text;
use flotilla_proto::value;
use flotilla_proto::value::{Map, Value};

use super::custom::SELECTABLE;
use super::document::Content;
use super::operations::{Answered, Operation, PathItem};
use super::parameters::Parameter;
use super::schemas::{GroupVersion, PREFIX};
use super::v3::{add_action, reason, security};
use crate::enablement;
use crate::version::{MAJOR, MINOR};

const DEFINITIONS: &str = "#/definitions/";

/// Returns the parts of the document that come before its paths.
pub(super) fn head() -> Value {
    value!({"swagger": "2.0", "info": {"title": "Kubernetes", "version": (format!("{MAJOR}.{MINOR}"))}})
}

/// Returns the parts of the document that come after its definitions.
pub(super) fn tail() -> Value {
    value!({"securityDefinitions": (security()), "security": [{"BearerToken": []}]})
}

/// Returns the group versions of `DeleteOptions` and `WatchEvent`: all that Kubernetes has.
pub(super) fn options() -> Vec<GroupVersion> {
    enablement::registered().map(|(group, version)| (Text::Borrowed(group), Text::Borrowed(version))).collect()
}

/// Returns the content of the whole document: that of all v3 documents, with all group versions of `DeleteOptions` and
/// `WatchEvent`.
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

/// Converts a v3 schema to v2: drops defaults and the siblings of references, and makes alternatives strings.
pub(super) fn definition(name: &str, schema: &Value) -> Value {
    if matches!(schema, Value::Object(map) if map.contains_key("oneOf")) && name.starts_with("io.k8s.apimachinery.") {
        let mut text = value!({"description": (schema.str_at(&["description"])), "type": "string"});
        if let Some(format) = schema.get("format") {
            text.set_at(&["format"], format.clone());
        }
        return text;
    }
    if schema.is_true_at(&[PRESERVE]) {
        // Clients of v2 would refuse fields that are not listed, so the schema lists none.
        let mut bare = value!({"type": "object"});
        for key in ["x-kubernetes-group-version-kind", SELECTABLE] {
            if let Some(said) = schema.get(key) {
                bare.set_at(&[key], said.clone());
            }
        }
        return bare;
    }
    reduce(schema)
}

/// The keyword that allows fields without a schema.
const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";
/// Keywords of a schema that v2 does not have.
const DROPPED: [&str; 5] = ["default", "nullable", "oneOf", "anyOf", "not"];
/// Fields that an embedded resource must have.
const STATED: [&str; 2] = ["kind", "apiVersion"];

/// Removes everything that clients of v2 cannot handle: the type of nullable values, the fields of objects that allow
/// unknown fields, the type of arrays without an item schema, and `required` for nullable fields.
fn reduce(schema: &Value) -> Value {
    let Value::Object(map) = schema else { return schema.clone() };
    let is_nullable = is_true(map, "nullable");
    let preserves = is_true(map, PRESERVE);
    let opens = is_nullable || preserves;
    let untyped = is_nullable
        || match map.get("type").and_then(Value::as_str) {
            Some("array") => opens || !map.contains_key("items"),
            Some("object") => preserves,
            _ => false,
        };
    let mut out = Map::new();
    for (key, value) in map.iter() {
        match (key, value) {
            ("type", _) if untyped => {}
            ("items" | "properties", _) if opens => {}
            ("required", Value::Array(names)) => {
                let required = required(map, names);
                if !required.is_empty() {
                    out.insert(key, required);
                }
            }
            ("properties", Value::Object(properties)) => {
                let each = properties.iter().map(|(name, property)| (name, reduce(property)));
                out.insert(key, each.collect::<Map>());
            }
            ("allOf", Value::Array(all)) => {
                if let [only] = all.as_slice()
                    && only.get("$ref").is_some()
                {
                    out.insert("$ref", reference(only.str_at(&["$ref"])));
                }
            }
            _ if DROPPED.contains(&key) => {}
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

fn is_true(schema: &Map, key: &str) -> bool {
    schema.get(key) == Some(&Value::Bool(true))
}

/// Returns the names of required fields without the nullable ones.
fn required(schema: &Map, names: &[Value]) -> Vec<Value> {
    let is_nullable = |of: &Value| of.as_object().is_some_and(|of| is_true(of, "nullable"));
    if schema.get("additionalProperties").is_some_and(is_nullable) {
        return Vec::new();
    }
    let opens = is_true(schema, "nullable") || is_true(schema, PRESERVE);
    // In the reference, embedded resources that allow unknown fields do not get these required fields.
    let added = is_true(schema, PRESERVE) && is_true(schema, "x-kubernetes-embedded-resource");
    let properties = schema.get("properties").and_then(Value::as_object).filter(|_| !opens);
    let stays = |name: &&Value| {
        let text = name.as_str().unwrap_or("");
        let is_added = added && STATED.contains(&text);
        let may_be_null = properties.and_then(|all| all.get(text)).is_some_and(is_nullable);
        !is_added && !may_be_null
    };
    names.iter().filter(stays).cloned().collect()
}

fn reference(name: &str) -> String {
    format!("{DEFINITIONS}{}", name.strip_prefix(PREFIX).unwrap_or(name))
}

/// Returns a path item. Adds the parameters that it shares with others to `shared`.
pub(super) fn item(item: &PathItem, shared: &mut BTreeMap<String, Value>) -> Value {
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
