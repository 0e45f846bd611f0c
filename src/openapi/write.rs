//! Encodes whole documents. Entries are built and written one by one: a document is never in memory as a tree.

use std::collections::BTreeMap;

use flotilla_proto::json;
use flotilla_proto::value::{Map, Value};

use super::document::Content;
use super::protobuf::{self, FieldEncoding, Message};
use super::remote::Swagger;
use super::{v2, v3};

/// Appends `"NAME":{ENTRIES}`.
fn object(name: &str, entries: impl Iterator<Item = (String, Value)>, out: &mut Vec<u8>) {
    json::write_str(name, out);
    out.extend_from_slice(b":{");
    for (at, (key, value)) in entries.enumerate() {
        if at > 0 {
            out.push(b',');
        }
        json::write_str(&key, out);
        out.push(b':');
        json::write(&value, out);
    }
    out.push(b'}');
}

/// Appends an object's members, each followed by a comma.
fn members(of: &Value, out: &mut Vec<u8>) {
    for (key, value) in of.as_object().into_iter().flat_map(Map::iter) {
        json::write_str(key, out);
        out.push(b':');
        json::write(value, out);
        out.push(b',');
    }
}

/// Returns a v3 document as JSON.
pub(super) fn v3_json(content: &Content) -> Vec<u8> {
    let mut out = vec![b'{'];
    members(&v3::head(content), &mut out);
    object("paths", content.items.iter().map(|(path, item)| (path.clone(), v3::item(item))), &mut out);
    out.extend_from_slice(b",\"components\":{");
    if !content.schemas.is_empty() {
        object("schemas", content.schemas.iter().map(|(name, schema)| (name.clone(), schema.clone())), &mut out);
    }
    if !content.custom {
        if !content.schemas.is_empty() {
            out.push(b',');
        }
        out.extend_from_slice(b"\"securitySchemes\":");
        json::write(&v3::security(), &mut out);
    }
    out.extend_from_slice(b"}}");
    out
}

/// Joins two maps; entries of the first one win.
fn added(
    own: impl Iterator<Item = (String, Value)>,
    has: impl Fn(&str) -> bool,
    further: &BTreeMap<String, Value>,
) -> impl Iterator<Item = (String, Value)> {
    let further = further.iter().filter(move |(name, _)| !has(name));
    own.chain(further.map(|(name, value)| (name.clone(), value.clone())))
}

/// Returns the v2 document as JSON, with the parts of other servers.
pub(super) fn v2_json(content: &Content, further: &Swagger) -> Vec<u8> {
    let mut out = vec![b'{'];
    members(&v2::head(), &mut out);
    let mut shared = BTreeMap::new();
    let paths = content.items.iter().map(|(path, item)| (path.clone(), v2::item(item, &mut shared)));
    object("paths", added(paths, |path| content.items.contains_key(path), &further.paths), &mut out);
    out.push(b',');
    let definitions = content.schemas.iter().map(|(name, schema)| (name.clone(), v2::definition(name, schema)));
    let is_own = |name: &str| content.schemas.contains_key(name);
    object("definitions", added(definitions, is_own, &further.definitions), &mut out);
    out.push(b',');
    let mut parameters = further.parameters.clone();
    parameters.extend(shared);
    object("parameters", parameters.into_iter(), &mut out);
    out.push(b',');
    members(&v2::tail(), &mut out);
    out.pop();
    out.push(b'}');
    out
}

/// Appends a message that is a map of named entries.
fn map(
    number: u32,
    entry: u32,
    kind: FieldEncoding,
    entries: impl Iterator<Item = (String, Value)>,
    out: &mut Vec<u8>,
) {
    let mut inner = Vec::new();
    for (name, value) in entries {
        protobuf::entry(entry, &name, kind, &value, &mut inner);
    }
    protobuf::bytes(number, &inner, out);
}

fn one(number: u32, of: &'static Message, value: &Value, out: &mut Vec<u8>) {
    protobuf::field(number, FieldEncoding::One(of), value, out);
}

/// Returns a v3 document as protobuf (`openapi.v3.Document`).
pub(super) fn v3_protobuf(content: &Content) -> Vec<u8> {
    let paths = content.items.iter().map(|(path, item)| (path.clone(), v3::item(item)));
    let schemas = content.schemas.iter().map(|(name, schema)| (name.clone(), schema.clone()));
    let security = (!content.custom).then(v3::security);
    v3_message(&v3::head(content), paths, schemas, security.as_ref())
}

/// Returns a v3 document of another server as protobuf. Parameters that its items share are left out.
pub(super) fn converted_protobuf(document: &Value) -> Vec<u8> {
    let entries = |path: &[&str]| {
        let map = document.map_at(path).into_iter().flat_map(Map::iter);
        map.map(|(name, value)| (name.to_owned(), value.clone())).collect::<Vec<_>>().into_iter()
    };
    let security = document.get("components").and_then(|components| components.get("securitySchemes"));
    v3_message(document, entries(&["paths"]), entries(&["components", "schemas"]), security)
}

fn v3_message(
    head: &Value,
    paths: impl Iterator<Item = (String, Value)>,
    schemas: impl Iterator<Item = (String, Value)>,
    security: Option<&Value>,
) -> Vec<u8> {
    use protobuf::v3 as messages;
    let mut out = Vec::new();
    protobuf::field(1, FieldEncoding::Text, head.at(&["openapi"]), &mut out);
    one(2, &messages::INFO, head.at(&["info"]), &mut out);
    map(4, 1, FieldEncoding::One(&messages::PATH_ITEM), paths, &mut out);
    let mut components = Vec::new();
    map(1, 1, messages::SCHEMA_OR_REFERENCE, schemas, &mut components);
    if let Some(security) = security {
        one(7, &messages::SECURITY_SCHEMES, security, &mut components);
    }
    protobuf::bytes(5, &components, &mut out);
    out
}

/// Returns the v2 document as protobuf (`openapi.v2.Document`), with the parts of other servers.
pub(super) fn v2_protobuf(content: &Content, further: &Swagger) -> Vec<u8> {
    use protobuf::v2 as messages;
    let (head, tail) = (v2::head(), v2::tail());
    let mut out = Vec::new();
    protobuf::field(1, FieldEncoding::Text, head.at(&["swagger"]), &mut out);
    one(2, &messages::INFO, head.at(&["info"]), &mut out);
    let mut shared = BTreeMap::new();
    let paths = content.items.iter().map(|(path, item)| (path.clone(), v2::item(item, &mut shared)));
    let paths = added(paths, |path| content.items.contains_key(path), &further.paths);
    map(8, 2, FieldEncoding::One(&messages::PATH_ITEM), paths, &mut out);
    let definitions = content.schemas.iter().map(|(name, schema)| (name.clone(), v2::definition(name, schema)));
    let definitions = added(definitions, |name| content.schemas.contains_key(name), &further.definitions);
    map(9, 1, FieldEncoding::One(&messages::SCHEMA), definitions, &mut out);
    let mut parameters = further.parameters.clone();
    parameters.extend(shared);
    map(10, 1, messages::PARAMETER, parameters.into_iter(), &mut out);
    for requirement in tail.list_at(&["security"]) {
        let strings = |(name, list): (&str, &Value)| {
            let mut inner = Map::new();
            inner.insert("value", list.clone());
            (name.to_owned(), Value::from(inner))
        };
        let each: Map = requirement.as_object().into_iter().flat_map(Map::iter).map(strings).collect();
        one(12, &messages::SECURITY_REQUIREMENT, &each.into(), &mut out);
    }
    one(13, &messages::SECURITY_DEFINITIONS, tail.at(&["securityDefinitions"]), &mut out);
    out
}
