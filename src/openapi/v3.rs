//! OpenAPI v3 documents as JSON values.

use flotilla_proto::value;
use flotilla_proto::value::{Map, Value};

use super::document::Content;
use super::operations::{Answered, Operation, PathItem, RequestBody};
use super::schemas::PREFIX;
use crate::version::{MAJOR, MINOR};

/// Returns the parts of a document that come before its paths.
pub(super) fn head(content: &Content) -> Value {
    let info = if content.custom {
        value!({"title": "Kubernetes CRD Swagger", "version": "v0.1.0"})
    } else {
        value!({"title": "Kubernetes", "version": (format!("{MAJOR}.{MINOR}"))})
    };
    value!({"openapi": "3.0.0", "info": info})
}

/// Returns the security schemes.
pub(super) fn security() -> Value {
    value!({"BearerToken": {
        "type": "apiKey", "description": "Bearer Token authentication", "name": "authorization", "in": "header"
    }})
}

/// Returns a path item.
pub(super) fn item(item: &PathItem) -> Value {
    let mut out = Map::new();
    for of in &item.operations {
        out.insert(of.method, operation(of));
    }
    if !item.parameters.is_empty() {
        out.insert("parameters", item.parameters.iter().map(|parameter| parameter.v3()).collect::<Vec<_>>());
    }
    out.into()
}

fn operation(of: &Operation) -> Value {
    let mut out = value!({"tags": [(of.tag.as_str())], "description": (of.description.as_str()), "operationId": (of.id.as_str())});
    if !of.parameters.is_empty() {
        out.set_at(&["parameters"], of.parameters.iter().map(|parameter| parameter.v3()).collect::<Vec<_>>());
    }
    if let Some(body) = &of.body {
        out.set_at(&["requestBody"], request_body(of, body));
    }
    let schema = match &of.answer {
        Answered::Object(name) => value!({"$ref": (format!("{PREFIX}{name}"))}),
        Answered::Text => value!({"type": "string"}),
    };
    let mut responses = Map::new();
    for code in of.codes {
        let content = content(of.produces, &schema);
        responses.insert(code.to_string(), value!({"description": (reason(*code)), "content": content}));
    }
    responses.insert("401", value!({"description": "Unauthorized"}));
    out.set_at(&["responses"], responses);
    add_action(&mut out, of);
    out
}

fn request_body(of: &Operation, body: &RequestBody) -> Value {
    let content = content(of.consumes, &value!({"$ref": (format!("{PREFIX}{}", body.of))}));
    let mut out = value!({"content": content});
    if body.required {
        out.set_at(&["required"], true);
    }
    out
}

fn content(media: &[&str], schema: &Value) -> Map {
    let mut media = media.to_vec();
    media.sort_unstable();
    media.into_iter().map(|media| (media, value!({"schema": (schema.clone())}))).collect()
}

/// Returns the reason phrase of a status code.
pub(super) fn reason(code: u16) -> &'static str {
    match code {
        201 => "Created",
        202 => "Accepted",
        _ => "OK",
    }
}

/// Adds an operation's action and kind.
pub(super) fn add_action(out: &mut Value, of: &Operation) {
    if !of.action.is_empty() {
        out.set_at(&["x-kubernetes-action"], of.action);
    }
    if let Some((group, version, kind)) = &of.kind {
        let kind = value!({"group": (&**group), "version": (&**version), "kind": (&**kind)});
        out.set_at(&["x-kubernetes-group-version-kind"], kind);
    }
}
