//! Schemas of types in the form of OpenAPI v3.

use std::collections::{BTreeMap, BTreeSet};

use flotilla_proto::catalogue;
use flotilla_proto::json;
use flotilla_proto::schema::{AnyKind, Field, Presence, Shape, Text, Topology, Type};
use flotilla_proto::value;
use flotilla_proto::value::{Map, Value};

use super::prose;

/// Prefix of references to schemas in v3.
pub(super) const PREFIX: &str = "#/components/schemas/";
const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.";
const EXTENSIONS: &str = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.";

/// A group and version.
pub(super) type GroupVersion = (Text, Text);

/// Returns the schemas of some names and all schemas that they refer to, by name.
pub(super) fn closure(
    roots: impl IntoIterator<Item = String>,
    custom: &BTreeMap<String, Value>,
    options: &[GroupVersion],
) -> BTreeMap<String, Value> {
    let mut waiting: Vec<String> = roots.into_iter().collect();
    let mut seen: BTreeSet<String> = waiting.iter().cloned().collect();
    let mut found = BTreeMap::new();
    while let Some(name) = waiting.pop() {
        let Some(schema) = custom.get(&name).cloned().or_else(|| named(&name, options)) else { continue };
        references(&schema, &mut |name| {
            if seen.insert(name.to_owned()) {
                waiting.push(name.to_owned());
            }
        });
        found.insert(name, schema);
    }
    found
}

/// Calls `each` with the name of every schema that a schema refers to.
fn references(schema: &Value, each: &mut impl FnMut(&str)) {
    match schema {
        Value::Object(map) => {
            for (key, value) in map.iter() {
                match value.as_str().and_then(|text| text.strip_prefix(PREFIX)) {
                    Some(name) if key == "$ref" => each(name),
                    _ => references(value, each),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, each)),
        _ => {}
    }
}

/// Returns the schema of this name. Returns `None` if there is none. `options` are the group versions of
/// `DeleteOptions` and `WatchEvent`.
fn named(name: &str, options: &[GroupVersion]) -> Option<Value> {
    scalar(name).or_else(|| catalogue::type_by_openapi(name).map(|of| structure(of, options)))
}

/// Returns the schema of a type that is not described by its fields. Returns `None` for other types.
fn scalar(name: &str) -> Option<Value> {
    let anything = |description: &str| value!({"description": description});
    let date = |description: &str| value!({"description": description, "type": "string", "format": "date-time"});
    Some(match name {
        "io.k8s.apimachinery.pkg.api.resource.Quantity" => value!({
            "description": "An amount: a decimal number with an optional suffix such as m, k, Mi or e3.",
            "oneOf": [{"type": "string"}, {"type": "number"}]
        }),
        "io.k8s.apimachinery.pkg.util.intstr.IntOrString" => value!({
            "description": "A number or a text.",
            "format": "int-or-string",
            "oneOf": [{"type": "integer"}, {"type": "string"}]
        }),
        "io.k8s.apimachinery.pkg.runtime.RawExtension" => {
            value!({"description": "An object of any kind.", "type": "object"})
        }
        _ => match (name.strip_prefix(META), name.strip_prefix(EXTENSIONS)) {
            (Some("Time"), _) => date("A time in whole seconds, as RFC 3339 writes it."),
            (Some("MicroTime"), _) => date("A time in microseconds, as RFC 3339 writes it."),
            (Some("Duration"), _) => {
                value!({"description": "A duration such as 1h30m.", "type": "string"})
            }
            (Some("FieldsV1"), _) => value!({
                "description": "A set of fields as nested objects: keys are f:NAME, v:VALUE, i:INDEX or k:KEYS.",
                "type": "object"
            }),
            (Some("Patch"), _) => value!({"description": "A change to an object.", "type": "object"}),
            (_, Some("JSON")) => anything("Any JSON value."),
            (_, Some("JSONSchemaPropsOrBool")) => anything("A schema or a boolean."),
            (_, Some("JSONSchemaPropsOrArray")) => anything("A schema or a list of schemas."),
            (_, Some("JSONSchemaPropsOrStringArray")) => anything("A schema or a list of strings."),
            _ => return None,
        },
    })
}

fn structure(of: &Type, options: &[GroupVersion]) -> Value {
    let mut out = value!({"description": (prose::of_type(of)), "type": "object"});
    let required: Vec<Value> =
        of.fields.iter().filter(|field| field.required).map(|field| Value::from(&*field.name)).collect();
    if !required.is_empty() {
        out.set_at(&["required"], required);
    }
    let mut properties: Vec<(&str, Value)> =
        of.fields.iter().map(|field| (&*field.name, property(of, field))).collect();
    properties.sort_by_key(|(name, _)| *name);
    if !properties.is_empty() {
        out.set_at(&["properties"], properties.into_iter().collect::<Map>());
    }
    let kinds = kinds_of(of, options);
    if !kinds.is_empty() {
        out.set_at(&["x-kubernetes-group-version-kind"], kinds);
    }
    if of.atomic {
        out.set_at(&["x-kubernetes-map-type"], "atomic");
    }
    if !of.unions.is_empty() {
        let unions = of.unions.iter().map(|union| {
            let mut entry = Value::object();
            if !union.discriminator.is_empty() {
                entry.set_at(&["discriminator"], &*union.discriminator);
            }
            let members: Map = union.members.iter().map(|(field, value)| (&**field, Value::from(&**value))).collect();
            entry.set_at(&["fields-to-discriminateBy"], members);
            entry
        });
        out.set_at(&["x-kubernetes-unions"], unions.collect::<Vec<_>>());
    }
    out
}

/// Returns the group version kinds that objects of a type can have.
fn kinds_of(of: &Type, options: &[GroupVersion]) -> Vec<Value> {
    let entry = |group: &str, version: &str| value!({"group": group, "kind": (&*of.name), "version": version});
    let shared = of.openapi.starts_with(META);
    if shared && matches!(&*of.name, "DeleteOptions" | "WatchEvent") {
        return options.iter().map(|(group, version)| entry(group, version)).collect();
    }
    let kinds = catalogue::kinds().iter().filter(|kind| kind.of.openapi == of.openapi && kind.group != "meta.k8s.io");
    kinds.map(|kind| entry(&kind.group, &kind.version)).collect()
}

/// Returns a field's schema with its description, default and markers.
fn property(of: &Type, field: &Field) -> Value {
    let mut out = Value::object();
    let description = prose::field(of, field);
    if !description.is_empty() {
        out.set_at(&["description"], description);
    }
    let pointer = matches!(field.presence, Presence::Pointer | Presence::AlwaysPointer);
    let default = match &field.default {
        Some(text) => json::parse(text.as_bytes()).ok(),
        None if pointer => None,
        None => zero(&field.shape, field.presence == Presence::Always),
    };
    add_shape(&mut out, &field.shape, default, &field.enumeration);
    if field.granular {
        out.set_at(&["x-kubernetes-map-type"], "granular");
    }
    add_patch(&mut out, field);
    out
}

/// Returns the default that OpenAPI states for a value that is not a pointer.
fn zero(shape: &Shape, always: bool) -> Option<Value> {
    match shape {
        Shape::Struct(_) => Some(Value::object()),
        Shape::Bool if always => Some(false.into()),
        Shape::Int32 | Shape::Int64 | Shape::Uint(_) | Shape::Double if always => Some(0.into()),
        Shape::String { .. } if always => Some("".into()),
        _ => None,
    }
}

/// Adds the schema of a shape. A reference beside other keywords is wrapped in `allOf`.
fn add_shape(out: &mut Value, shape: &Shape, default: Option<Value>, enumeration: &[Text]) {
    let typed = |out: &mut Value, kind: &str, format: &str| {
        out.set_at(&["type"], kind);
        if !format.is_empty() {
            out.set_at(&["format"], format);
        }
    };
    match shape {
        Shape::Bool => typed(out, "boolean", ""),
        Shape::Int32 => typed(out, "integer", "int32"),
        Shape::Int64 => typed(out, "integer", "int64"),
        Shape::Uint(_) => typed(out, "integer", "int64"),
        Shape::Double => typed(out, "number", "double"),
        Shape::String { .. } => typed(out, "string", ""),
        Shape::Bytes => typed(out, "string", "byte"),
        Shape::Struct(of) => return add_reference(out, &of.openapi, default),
        Shape::List(list) => {
            typed(out, "array", "");
            let mut item = Value::object();
            let default = if list.pointer_items { None } else { zero(&list.item, true) };
            add_shape(&mut item, &list.item, default, enumeration);
            out.set_at(&["items"], item);
            if list.stated {
                add_topology(out, &list.topology);
            }
            return;
        }
        Shape::Map(map) => {
            typed(out, "object", "");
            let mut item = Value::object();
            add_shape(&mut item, &map.value, zero(&map.value, true), enumeration);
            out.set_at(&["additionalProperties"], item);
            if map.atomic {
                out.set_at(&["x-kubernetes-map-type"], "atomic");
            }
            return;
        }
        other => return add_reference(out, &reference(other), default),
    }
    if let Some(default) = default {
        out.set_at(&["default"], default);
    }
    if !enumeration.is_empty() {
        out.set_at(&["enum"], super::texts(enumeration));
    }
}

fn add_reference(out: &mut Value, name: &str, default: Option<Value>) {
    let reference = value!({"$ref": (format!("{PREFIX}{name}"))});
    if let Some(default) = default {
        out.set_at(&["default"], default);
    }
    if out.as_object().is_some_and(Map::is_empty) {
        *out = reference;
    } else {
        out.set_at(&["allOf"], vec![reference]);
    }
}

/// Returns the published name of a shape that is neither a plain scalar nor a struct.
fn reference(shape: &Shape) -> String {
    match shape {
        Shape::Quantity => "io.k8s.apimachinery.pkg.api.resource.Quantity".into(),
        Shape::IntOrString => "io.k8s.apimachinery.pkg.util.intstr.IntOrString".into(),
        Shape::MicroTime => format!("{META}MicroTime"),
        Shape::Duration => format!("{META}Duration"),
        Shape::Any(AnyKind::RawExtension) => "io.k8s.apimachinery.pkg.runtime.RawExtension".into(),
        Shape::Any(AnyKind::FieldsV1) => format!("{META}FieldsV1"),
        Shape::Any(AnyKind::Json) => format!("{EXTENSIONS}JSON"),
        Shape::Any(AnyKind::SchemaOrBool) => format!("{EXTENSIONS}JSONSchemaPropsOrBool"),
        Shape::Any(AnyKind::SchemaOrArray) => format!("{EXTENSIONS}JSONSchemaPropsOrArray"),
        Shape::Any(AnyKind::SchemaOrStrings) => format!("{EXTENSIONS}JSONSchemaPropsOrStringArray"),
        _ => format!("{META}Time"),
    }
}

fn add_topology(out: &mut Value, topology: &Topology) {
    let kind = match topology {
        Topology::Atomic => "atomic",
        Topology::Set => "set",
        Topology::Map(keys) => {
            out.set_at(&["x-kubernetes-list-map-keys"], super::texts(keys));
            "map"
        }
    };
    out.set_at(&["x-kubernetes-list-type"], kind);
}

fn add_patch(out: &mut Value, field: &Field) {
    if let Some(key) = field.patch.merge_key {
        out.set_at(&["x-kubernetes-patch-merge-key"], key);
    }
    let strategies =
        [(field.patch.merge, "merge"), (field.patch.retain_keys, "retainKeys"), (field.patch.replace, "replace")];
    let strategies: Vec<&str> = strategies.iter().filter(|(stated, _)| *stated).map(|(_, name)| *name).collect();
    if !strategies.is_empty() {
        out.set_at(&["x-kubernetes-patch-strategy"], strategies.join(","));
    }
}
