use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use flotilla_proto::json;
use flotilla_proto::schema::{Ref, Resource};
use flotilla_proto::value;
use flotilla_proto::value::ObjectText;

use super::*;
use crate::discovery::{Answer, Body, Request};

fn ask(documents: &OpenApi, path: &str, query: &str, accept: &str) -> Answer {
    let request = Request { method: "GET", path, query, accept, ..Request::default() };
    documents.answer(&request).expect("an openapi path")
}

fn parsed(answer: &Answer) -> Value {
    let Body::Encoded(bytes) = &answer.body else { panic!("not encoded") };
    json::parse(bytes).expect("JSON")
}

fn header<'a>(answer: &'a Answer, name: &str) -> Option<&'a str> {
    answer.headers.iter().find(|(own, _)| *own == name).map(|(_, value)| &**value)
}

fn references<'a>(value: &'a Value, found: &mut BTreeSet<&'a str>) {
    match value {
        Value::Object(map) => map.iter().for_each(|(key, value)| match value {
            Value::Str(text) if key == "$ref" => drop(found.insert(text)),
            _ => references(value, found),
        }),
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        _ => {}
    }
}

fn identifiers(document: &Value) -> Vec<String> {
    let items = document.map_at(&["paths"]).expect("paths").values().filter_map(Value::as_object);
    items.flat_map(|item| item.values()).filter_map(|of| of.get("operationId")?.as_str().map(String::from)).collect()
}

#[test]
fn every_document_has_its_references_and_is_listed_with_its_hash() {
    let documents = OpenApi::default();
    let index = parsed(&ask(&documents, "/openapi/v3", "", ""));
    let mut all = Vec::new();
    for (path, entry) in index.map_at(&["paths"]).expect("paths").iter() {
        let url = entry.str_at(&["serverRelativeURL"]);
        let (url, query) = url.split_once('?').expect("a hash");
        assert_eq!(url, format!("/openapi/v3/{path}"));
        let answer = ask(&documents, url, query, "");
        assert_eq!(header(&answer, "cache-control"), Some("public, immutable"));
        let document = parsed(&answer);
        let mut found = BTreeSet::new();
        references(&document, &mut found);
        for name in found {
            let name = name.strip_prefix("#/components/schemas/").expect("a schema");
            assert!(document.at(&["components", "schemas", name]).as_object().is_some(), "{path}: {name}");
        }
        all.extend(identifiers(&document));
    }
    let count = all.len();
    all.sort();
    all.dedup();
    assert_eq!(all.len(), count, "operation identifiers are unique");
    assert!(count > 800, "{count}");
}

#[test]
fn the_v2_document_has_its_references_and_no_defaults() {
    let documents = OpenApi::default();
    let document = parsed(&ask(&documents, "/openapi/v2", "", ""));
    let mut found = BTreeSet::new();
    references(&document, &mut found);
    assert!(found.len() > 600);
    for name in found {
        let (place, name) = name.strip_prefix("#/").and_then(|name| name.split_once('/')).expect("a place");
        assert!(document.at(&[place, name]).as_object().is_some(), "{place} {name}");
    }
    let port = document.at(&["definitions", "io.k8s.api.core.v1.ContainerPort", "properties", "protocol"]);
    assert!(port.get("default").is_none() && port.list_at(&["enum"]).len() == 3);
    let strategy = document.at(&["definitions", "io.k8s.api.apps.v1.DeploymentSpec", "properties", "strategy"]);
    assert_eq!(strategy.str_at(&["$ref"]), "#/definitions/io.k8s.api.apps.v1.DeploymentStrategy");
    assert_eq!(strategy.str_at(&["x-kubernetes-patch-strategy"]), "retainKeys");
}

#[test]
fn hashes_and_tags_let_clients_cache_documents() {
    let documents = OpenApi::default();
    let path = "/openapi/v3/apis/batch/v1";
    let moved = ask(&documents, path, "hash=OLD", "");
    let target = header(&moved, "location").expect("a location").to_owned();
    assert_eq!(moved.status, 301);
    let tag = header(&moved, "etag").expect("a tag").to_owned();
    assert!(target.ends_with(tag.trim_matches('"')));
    let request = Request { method: "GET", path, if_none_match: Some(&tag), ..Request::default() };
    assert_eq!(documents.answer(&request).expect("an openapi path").status, 304);
    assert_eq!(ask(&documents, path, "", "text/html").status, 406);
    assert_eq!(ask(&documents, "/openapi/v3/apis/nope/v1", "", "").status, 404);
    assert!(documents.answer(&Request { path: "/openapi", ..Request::default() }).is_none());
    assert_eq!(header(&ask(&documents.with_custom(Vec::new()), path, "", ""), "etag"), Some(&*tag));
}

/// Reads the fields of a protobuf message: numbers and the bytes of nested ones.
fn fields(mut bytes: &[u8]) -> Vec<(u64, &[u8])> {
    fn varint(bytes: &mut &[u8]) -> u64 {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (first, rest) = bytes.split_first().expect("a byte");
            *bytes = rest;
            value |= u64::from(first & 0x7f) << shift;
            if first & 0x80 == 0 {
                break;
            }
        }
        value
    }
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let length = match key & 7 {
            0 => {
                varint(&mut bytes);
                0
            }
            1 => 8,
            _ => varint(&mut bytes) as usize,
        };
        found.push((key >> 3, &bytes[..length]));
        bytes = &bytes[length..];
    }
    found
}

#[test]
fn protobuf_documents_have_every_path_and_schema() {
    let documents = OpenApi::default();
    let path = "/openapi/v3/apis/apps/v1";
    let json = parsed(&ask(&documents, path, "", ""));
    let answer = ask(&documents, path, "", "application/com.github.proto-openapi.spec.v3@v1.0+protobuf");
    let Body::Encoded(bytes) = &answer.body else { panic!("not encoded") };
    let document = fields(bytes);
    assert_eq!(document[0], (1, b"3.0.0".as_slice()));
    let part = |number| fields(document.iter().find(|(own, _)| *own == number).expect("the part").1);
    let names = |entries: Vec<(u64, &[u8])>| {
        let name = |entry: &[u8]| String::from_utf8(fields(entry)[0].1.to_vec()).expect("a name");
        entries.into_iter().map(|(_, entry)| name(entry)).collect::<Vec<_>>()
    };
    let keys = |path: &[&str]| json.map_at(path).expect("a map").keys().map(String::from).collect::<Vec<_>>();
    assert_eq!(names(part(4)), keys(&["paths"]));
    assert_eq!(names(fields(part(5)[0].1)), keys(&["components", "schemas"]));
}

#[test]
fn custom_resources_have_documents_of_their_own() {
    let pods = catalogue::resource("", "v1", "pods").expect("a resource");
    let widgets = catalogue::kind("apps", "v1", "Deployment").expect("a kind").clone();
    let resource = Resource {
        group: "a.example.com".into(),
        name: Cow::Borrowed("widgets"),
        list_kind: "WidgetList".into(),
        kind: Ref::Shared(Arc::new(flotilla_proto::schema::Kind {
            group: "a.example.com".into(),
            name: "Widget".into(),
            ..widgets
        })),
        subresources: Cow::Borrowed(&[]),
        ..pods.clone()
    };
    let schema = value!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "port": {"x-kubernetes-int-or-string": true},
        "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        "size": {"type": "integer", "default": 3},
        "maybe": {"type": "object", "nullable": true, "format": "f", "properties": {"a": {"type": "string"}}},
        "list": {"type": "array", "nullable": true, "items": {"type": "string"}},
        "map": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "additionalProperties": {"type": "string"}}
    }, "required": ["size", "maybe"]}}});
    let schema = ObjectText::of(&schema);
    let custom = Custom { resource: Ref::Shared(Arc::new(resource)), schema, selectable: Vec::new() };
    let documents = OpenApi::default().with_custom(vec![custom]);
    let document = parsed(&ask(&documents, "/openapi/v3/apis/a.example.com/v1", "", ""));
    let spec = ["components", "schemas", "com.example.a.v1.Widget", "properties", "spec", "properties"];
    let spec = document.at(&spec);
    assert_eq!(spec.list_at(&["port", "anyOf"]).len(), 2);
    assert_eq!(spec.int_at(&["size", "default"]), Some(3));
    let path = "/apis/a.example.com/v1/namespaces/{namespace}/widgets/{name}";
    assert_eq!(document.str_at(&["paths", path, "get", "operationId"]), "readAExampleComV1NamespacedWidget");
    assert!(
        document
            .at(&["paths", path, "patch", "requestBody", "content"])
            .get("application/strategic-merge-patch+json")
            .is_none()
    );
    let second = parsed(&ask(&documents, "/openapi/v2", "", ""));
    let spec = second.at(&["definitions", "com.example.a.v1.Widget", "properties", "spec", "properties"]);
    assert_eq!(
        *spec,
        value!({
            "any": {"x-kubernetes-preserve-unknown-fields": true},
            "list": {},
            "map": {"x-kubernetes-preserve-unknown-fields": true, "additionalProperties": {"type": "string"}},
            "maybe": {"format": "f"},
            "port": {"x-kubernetes-int-or-string": true},
            "size": {"type": "integer"}
        })
    );
    let required = ["definitions", "com.example.a.v1.Widget", "properties", "spec", "required"];
    assert_eq!(*second.at(&required), value!(["size"]), "a nullable field is not required");
}
