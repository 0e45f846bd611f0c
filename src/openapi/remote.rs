//! The OpenAPI documents of aggregated API servers, as parts of this server's documents.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use flotilla_proto::json;
use flotilla_proto::value::{Map, Value};

use crate::limits;

/// Prefix of references to definitions in v2.
pub(super) const DEFINITIONS: &str = "#/definitions/";
/// Prefix of references to parameters in v2.
pub(super) const PARAMETERS: &str = "#/parameters/";

/// Documents of other servers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Remote {
    /// URLs of v3 documents, by their path.
    pub index: BTreeMap<String, String>,
    /// v3 documents that were converted from v2, by their path.
    pub converted: BTreeMap<String, Arc<Value>>,
    /// The parts of their v2 documents.
    pub swagger: Swagger,
}

/// Parts of a document of v2.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Swagger {
    /// Items by path.
    pub paths: BTreeMap<String, Value>,
    /// Schemas by name.
    pub definitions: BTreeMap<String, Value>,
    /// Parameters that items share, by name.
    pub parameters: BTreeMap<String, Value>,
    bytes: usize,
}

impl Swagger {
    /// Returns the part of a v2 document below a path prefix, with the definitions and parameters that it refers to.
    pub fn below(document: &Value, prefix: &str) -> Self {
        let mut own = Self::default();
        let mut wanted = Vec::new();
        for (path, item) in members(document, "paths").filter(|(path, _)| path.starts_with(prefix)) {
            references(item, &mut wanted);
            own.paths.insert(path.to_owned(), item.clone());
        }
        let mut seen = BTreeSet::new();
        while let Some(reference) = wanted.pop() {
            if !seen.insert(reference.clone()) {
                continue;
            }
            let found = match (reference.strip_prefix(DEFINITIONS), reference.strip_prefix(PARAMETERS)) {
                (Some(name), _) => Some((document.at(&["definitions", name]), &mut own.definitions, name)),
                (_, Some(name)) => Some((document.at(&["parameters", name]), &mut own.parameters, name)),
                _ => None,
            };
            if let Some((value, to, name)) = found
                && value.as_object().is_some()
            {
                references(value, &mut wanted);
                to.insert(name.to_owned(), value.clone());
            }
        }
        let all = own.paths.iter().chain(&own.definitions).chain(&own.parameters);
        own.bytes = all.map(|(name, value)| name.len() + json::to_vec(value).len()).sum();
        own
    }

    /// Adds the parts of another server if there is room for them. Returns whether they were added. Existing entries
    /// stay: definitions of one name describe the same type.
    pub fn add(&mut self, other: &Self) -> bool {
        if self.bytes + other.bytes > limits::AGGREGATED_OPENAPI_BYTES {
            return false;
        }
        self.bytes += other.bytes;
        for (to, from) in [
            (&mut self.paths, &other.paths),
            (&mut self.definitions, &other.definitions),
            (&mut self.parameters, &other.parameters),
        ] {
            for (name, value) in from {
                to.entry(name.clone()).or_insert_with(|| value.clone());
            }
        }
        true
    }
}

fn members<'a>(document: &'a Value, name: &str) -> impl Iterator<Item = (&'a str, &'a Value)> {
    document.map_at(&[name]).into_iter().flat_map(Map::iter)
}

/// Collects the references in a part of a document.
fn references(value: &Value, out: &mut Vec<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| references(item, out)),
        Value::Object(map) => {
            for (key, value) in map.iter() {
                match value {
                    Value::Str(_) if key == "$ref" => out.extend(value.as_str().map(str::to_owned)),
                    value => references(value, out),
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use flotilla_proto::value;

    use super::*;

    #[test]
    fn a_part_has_the_paths_below_a_prefix_and_their_references() {
        let item = |name: &str| {
            let schema = value!({"$ref": (format!("{DEFINITIONS}{name}"))});
            value!({"get": {"parameters": [{"$ref": "#/parameters/p"}], "responses": {"200": {"schema": schema}}}})
        };
        let document = value!({
            "paths": {"/apis/a/v1/things": (item("Thing")), "/apis/b/v1/others": (item("Other")), "/apis/a/v11/x": {}},
            "definitions": {"Thing": {"properties": {"self": {"$ref": "#/definitions/Thing"},
                "meta": {"$ref": "#/definitions/Meta"}}}, "Meta": {}, "Other": {}},
            "parameters": {"p": {"in": "query"}, "q": {}}
        });
        let mut own = Swagger::below(&document, "/apis/a/v1/");
        let names = |map: &BTreeMap<String, Value>| map.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&own.paths), ["/apis/a/v1/things"]);
        assert_eq!(names(&own.definitions), ["Meta", "Thing"]);
        assert_eq!(names(&own.parameters), ["p"]);
        assert!(own.add(&Swagger::below(&document, "/apis/b/v1/")));
        assert_eq!(names(&own.definitions), ["Meta", "Other", "Thing"]);
        let large = Swagger { bytes: limits::AGGREGATED_OPENAPI_BYTES, ..Swagger::default() };
        assert!(!own.add(&large), "the parts of all servers together are bounded");
    }
}
