//! Schemas of custom resources: those of their definitions, completed for publication.

use flotilla_proto::schema::{Ref, Resource};
use flotilla_proto::value;
use flotilla_proto::value::{Map, ObjectText, Value};

use super::schemas::PREFIX;
use super::{META, definition_name, prose};

/// A served version of a custom resource.
#[derive(Debug, Clone)]
pub struct Custom {
    /// The resource.
    pub resource: Ref<Resource>,
    /// `openAPIV3Schema` of the version. `None` when it has none.
    pub schema: Option<ObjectText>,
    /// The fields that `fieldSelector` may name, as in `spec.a`.
    pub selectable: Vec<String>,
}

/// The keyword that lists the selectable fields.
pub(super) const SELECTABLE: &str = "x-kubernetes-selectable-fields";

/// Returns the schemas of the kind and of its list, by name.
pub(super) fn schemas(of: &Custom) -> [(String, Value); 2] {
    let resource = &*of.resource;
    let key = |kind: &str| (resource.group.clone(), resource.version.clone(), kind.to_owned().into());
    let name = definition_name(&key(&resource.kind.name));
    let mut object = of.schema.as_ref().map_or_else(|| value!({"type": "object"}), |schema| publish(&schema.parse()));
    complete(&mut object, &format!("{META}ObjectMeta"));
    mark(&mut object, of, &resource.kind.name);
    let mut list = value!({
        "description": (format!("A list of {} objects.", resource.kind.name)),
        "type": "object",
        "required": ["items"],
        "properties": {"items": {
            "description": "The objects.",
            "type": "array",
            "items": {"$ref": (format!("{PREFIX}{name}"))}
        }}
    });
    complete(&mut list, &format!("{META}ListMeta"));
    mark(&mut list, of, &resource.list_kind);
    [(name, object), (definition_name(&key(&resource.list_kind)), list)]
}

/// Adds the kind and the selectable fields to a schema.
fn mark(schema: &mut Value, of: &Custom, kind: &str) {
    let entry = value!({"group": (&*of.resource.group), "kind": kind, "version": (&*of.resource.version)});
    schema.set_at(&["x-kubernetes-group-version-kind"], vec![entry]);
    if !of.selectable.is_empty() {
        let fields = of.selectable.iter().map(|path| value!({"fieldPath": (path.as_str())}));
        schema.set_at(&[SELECTABLE], fields.collect::<Vec<_>>());
    }
}

/// Adds the fields that every object has.
fn complete(schema: &mut Value, metadata: &str) {
    let standard = [
        ("apiVersion", value!({"description": (prose::API_VERSION), "type": "string"})),
        ("kind", value!({"description": (prose::KIND), "type": "string"})),
        ("metadata", value!({"description": (prose::METADATA), "allOf": [{"$ref": (format!("{PREFIX}{metadata}"))}]})),
    ];
    let mut properties = schema.map_at(&["properties"]).cloned().unwrap_or_default();
    for (name, property) in standard {
        properties.insert(name, property);
    }
    properties.sort();
    schema.set_at(&["properties"], properties);
}

/// Returns a schema in its published form: embedded resources are complete, and both types of int-or-string are listed.
fn publish(schema: &Value) -> Value {
    let Value::Object(map) = schema else { return schema.clone() };
    let mut out = Map::new();
    for (key, value) in map.iter() {
        let value = match (key, value) {
            ("properties" | "patternProperties", Value::Object(properties)) => {
                let mut properties: Map = properties.iter().map(|(name, of)| (name, publish(of))).collect();
                properties.sort();
                properties.into()
            }
            ("items" | "additionalProperties" | "not", value) => publish(value),
            ("allOf" | "anyOf" | "oneOf", Value::Array(all)) => Value::Array(all.iter().map(publish).collect()),
            _ => value.clone(),
        };
        out.insert(key, value);
    }
    let is = |key: &str| map.get(key) == Some(&Value::Bool(true));
    if is("x-kubernetes-int-or-string") && !map.contains_key("anyOf") && !map.contains_key("allOf") {
        out.insert("anyOf", value!([{"type": "integer"}, {"type": "string"}]));
    }
    let mut out = Value::Object(out);
    if is("x-kubernetes-embedded-resource") {
        let mut required = out.list_at(&["required"]).to_vec();
        for name in ["kind", "apiVersion"] {
            if !required.iter().any(|own| own.as_str() == Some(name)) {
                required.push(name.into());
            }
        }
        out.set_at(&["required"], required);
        complete(&mut out, &format!("{META}ObjectMeta"));
    }
    out
}
