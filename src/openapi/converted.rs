//! Converts a document of OpenAPI v2 to v3, for aggregated servers that have no document of v3.
//!
//! As in the reference, the v3 document lacks some of the v2 document: no body is required, and headers and examples
//! are left out.

use flotilla_proto::value;
use flotilla_proto::value::{Map, Value};

use super::remote::{DEFINITIONS, PARAMETERS, Swagger};
use super::schemas::PREFIX;

const METHODS: [&str; 7] = ["get", "put", "post", "delete", "options", "head", "patch"];
/// Members of an operation that are the same in both versions.
const OF_OPERATIONS: [&str; 6] = ["description", "externalDocs", "tags", "summary", "deprecated", "operationId"];
/// Members of a parameter that are the same in both versions.
const OF_PARAMETERS: [&str; 5] = ["name", "description", "in", "required", "allowEmptyValue"];
/// Members of a parameter in v2 that are members of its schema in v3.
const OF_SIMPLE_SCHEMAS: [&str; 3] = ["type", "format", "uniqueItems"];
/// Members of a security scheme that are the same in both versions.
const OF_SECURITY: [&str; 4] = ["description", "type", "name", "in"];

/// Returns the v3 document with the content of a part of a v2 document.
pub fn convert(document: &Value, part: &Swagger) -> Value {
    let each = |map: &std::collections::BTreeMap<String, Value>, convert: fn(&Value) -> Value| -> Map {
        map.iter().map(|(name, value)| (name.as_str(), convert(value))).collect()
    };
    let mut components = Map::new();
    components.insert("schemas", each(&part.definitions, schema));
    if !part.parameters.is_empty() {
        components.insert("parameters", each(&part.parameters, parameter));
    }
    let schemes = document.map_at(&["securityDefinitions"]).into_iter().flat_map(Map::iter);
    let schemes: Map = schemes.map(|(name, scheme)| (name, Value::from(chosen(scheme, &OF_SECURITY)))).collect();
    if !schemes.is_empty() {
        components.insert("securitySchemes", schemes);
    }
    value!({
        "openapi": "3.0.0",
        "info": (document.at(&["info"]).clone()),
        "paths": (each(&part.paths, path_item)),
        "components": components
    })
}

/// Copies the named members and the extensions of an object.
fn chosen(of: &Value, names: &[&str]) -> Map {
    let members = of.as_object().into_iter().flat_map(Map::iter);
    let kept = members.filter(|(name, _)| names.contains(name) || name.starts_with("x-"));
    kept.map(|(name, value)| (name, value.clone())).collect()
}

/// Returns a reference with the prefix `to` instead of `from`.
fn moved(reference: &str, from: &str, to: &str) -> String {
    reference.strip_prefix(from).map_or_else(|| reference.to_owned(), |name| format!("{to}{name}"))
}

fn path_item(of: &Value) -> Value {
    let mut item = chosen(of, &["$ref"]);
    for method in METHODS {
        if of.at(&[method]).as_object().is_some() {
            item.insert(method, operation(of.at(&[method])));
        }
    }
    let parameters: Vec<Value> = of.list_at(&["parameters"]).iter().map(parameter).collect();
    if !parameters.is_empty() {
        item.insert("parameters", parameters);
    }
    item.into()
}

fn operation(of: &Value) -> Value {
    let mut operation = chosen(of, &OF_OPERATIONS);
    let is_body =
        |parameter: &&Value| parameter.str_at(&["name"]) == "body" && parameter.at(&["schema"]).as_object().is_some();
    let (bodies, parameters): (Vec<&Value>, Vec<&Value>) = of.list_at(&["parameters"]).iter().partition(is_body);
    if let Some(body) = bodies.last() {
        operation.insert("requestBody", value!({"content": (content(of, "consumes", body.at(&["schema"])))}));
    }
    if !parameters.is_empty() {
        operation.insert("parameters", parameters.into_iter().map(parameter).collect::<Vec<_>>());
    }
    let responses = of.map_at(&["responses"]).into_iter().flat_map(Map::iter);
    let responses: Map = responses.map(|(code, told)| (code, response(of, told))).collect();
    operation.insert("responses", responses);
    operation.into()
}

fn response(operation: &Value, of: &Value) -> Value {
    let mut response = chosen(of, &["description"]);
    if let Some(reference) = of.at(&["$ref"]).as_str() {
        response.insert("$ref", moved(reference, "#/responses/", "#/components/responses/"));
    }
    if of.at(&["schema"]).as_object().is_some() {
        response.insert("content", content(operation, "produces", of.at(&["schema"])));
    }
    response.into()
}

/// Returns a schema for each media type that an operation lists under `list`.
fn content(operation: &Value, list: &str, of: &Value) -> Map {
    let media = operation.list_at(&[list]).iter().filter_map(Value::as_str);
    media.map(|media| (media, value!({"schema": (schema(of))}))).collect()
}

fn parameter(of: &Value) -> Value {
    if let Some(reference) = of.at(&["$ref"]).as_str() {
        return value!({"$ref": (moved(reference, PARAMETERS, "#/components/parameters/"))});
    }
    let mut parameter = chosen(of, &OF_PARAMETERS);
    let own = of.at(&["schema"]);
    let simple = || -> Value {
        let members = OF_SIMPLE_SCHEMAS.into_iter().filter_map(|name| Some((name, of.get(name)?.clone())));
        members.collect::<Map>().into()
    };
    parameter.insert("schema", if own.as_object().is_some() { schema(own) } else { simple() });
    parameter.into()
}

fn schema(of: &Value) -> Value {
    let Some(members) = of.as_object() else { return of.clone() };
    let each = |map: &Map| -> Map { map.iter().map(|(name, value)| (name, schema(value))).collect() };
    let all = |list: &[Value]| list.iter().map(schema).collect::<Vec<_>>();
    let mut converted = Map::new();
    for (name, value) in members.iter() {
        let value: Value = match (name, value) {
            ("$ref", Value::Str(_)) => moved(value.as_str().unwrap_or_default(), DEFINITIONS, PREFIX).into(),
            ("properties", Value::Object(map)) => each(map).into(),
            ("items" | "allOf" | "anyOf" | "oneOf", Value::Array(list)) => all(list).into(),
            ("items" | "additionalProperties" | "additionalItems" | "not", Value::Object(_)) => schema(value),
            _ => value.clone(),
        };
        converted.insert(name, value);
    }
    // v3 ignores whatever stands beside a reference.
    if converted.len() > 1
        && let Some(reference) = converted.remove("$ref")
    {
        converted.insert("allOf", vec![value!({"$ref": reference})]);
    }
    converted.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_of_v2_are_converted_to_v3() {
        let thing = || value!({"$ref": "#/definitions/Thing"});
        let document = value!({
            "info": {"title": "Things", "version": "v1"},
            "paths": {"/apis/a/v1/things": {
                "post": {
                    "consumes": ["application/json"], "produces": ["application/json", "application/yaml"],
                    "operationId": "createThing", "x-kubernetes-action": "post", "schemes": ["https"],
                    "parameters": [
                        {"name": "body", "in": "body", "required": true, "schema": (thing())},
                        {"name": "dryRun", "in": "query", "type": "string", "uniqueItems": true},
                        {"$ref": "#/parameters/pretty"}
                    ],
                    "responses": {"200": {"description": "OK", "schema": (thing())}, "401": {"description": "No"}}
                },
                "parameters": [{"$ref": "#/parameters/pretty"}]
            }},
            "parameters": {"pretty": {"name": "pretty", "in": "query", "type": "string"}},
            "definitions": {"Thing": {"properties": {
                "part": {"description": "d", "$ref": "#/definitions/Part"},
                "parts": {"type": "array", "items": {"$ref": "#/definitions/Part"}},
                "named": {"additionalProperties": {"$ref": "#/definitions/Part"}}
            }}, "Part": {"type": "string"}},
            "securityDefinitions": {"BearerToken": {"type": "apiKey", "name": "authorization", "in": "header"}}
        });
        let converted = convert(&document, &Swagger::below(&document, "/apis/a/v1/"));
        let part = || value!({"$ref": "#/components/schemas/Part"});
        let reference = || value!({"schema": {"$ref": "#/components/schemas/Thing"}});
        let expected = value!({
            "openapi": "3.0.0",
            "info": {"title": "Things", "version": "v1"},
            "paths": {"/apis/a/v1/things": {
                "post": {
                    "operationId": "createThing", "x-kubernetes-action": "post",
                    "parameters": [
                        {"name": "dryRun", "in": "query", "schema": {"type": "string", "uniqueItems": true}},
                        {"$ref": "#/components/parameters/pretty"}
                    ],
                    "requestBody": {"content": {"application/json": (reference())}},
                    "responses": {
                        "200": {"description": "OK", "content": {
                            "application/json": (reference()), "application/yaml": (reference())
                        }},
                        "401": {"description": "No"}
                    }
                },
                "parameters": [{"$ref": "#/components/parameters/pretty"}]
            }},
            "components": {
                "schemas": {
                    "Thing": {"properties": {
                        "part": {"description": "d", "allOf": [(part())]},
                        "parts": {"type": "array", "items": (part())},
                        "named": {"additionalProperties": (part())}
                    }},
                    "Part": {"type": "string"}
                },
                "parameters": {"pretty": {"name": "pretty", "in": "query", "schema": {"type": "string"}}},
                "securitySchemes": {"BearerToken": {"type": "apiKey", "name": "authorization", "in": "header"}}
            }
        });
        assert_eq!(converted, expected);
    }
}
