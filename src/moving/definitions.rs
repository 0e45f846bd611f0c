//! Reads definitions of custom resources in `apiextensions.k8s.io/v1beta1`. kube-apiserver stores them in this version,
//! even in 1.36. In it, a definition states once, outside of its versions, the members that all versions of a resource
//! share. Source: k8s.io/apiextensions-apiserver 0.36, the conversions of `v1` and the defaults of `v1beta1`.

use flotilla_proto::value;
use flotilla_proto::value::{Map, Value};

/// The older version, which is the stored one.
pub(super) const VERSION: &str = "apiextensions.k8s.io/v1beta1";
const PRESENT: &str = "apiextensions.k8s.io/v1";

/// The fields that all versions may share: the name in the spec, and the name within a version.
const SHARED: [(&str, &str); 4] = [
    ("subresources", "subresources"),
    ("validation", "schema"),
    ("additionalPrinterColumns", "additionalPrinterColumns"),
    ("selectableFields", "selectableFields"),
];

/// Converts a definition from the older version to the present one.
pub(super) fn upgrade(definition: &mut Value) {
    definition.set_at(&["apiVersion"], PRESENT);
    let mut spec = definition.remove_at(&["spec"]).unwrap_or_else(Value::object);
    add_names(&mut spec);
    let mut versions = match spec.remove_at(&["versions"]) {
        Some(Value::Array(versions)) => versions,
        _ => Vec::new(),
    };
    let only = spec.remove_at(&["version"]).unwrap_or_default();
    if versions.is_empty() && only.as_str().is_some_and(|name| !name.is_empty()) {
        versions.push(value!({"name": only, "served": true, "storage": true}));
    }
    for (beside, within) in SHARED {
        let Some(shared) = spec.remove_at(&[beside]).filter(|shared| !shared.is_null()) else { continue };
        versions.iter_mut().for_each(|version| version.set_at(&[within], shared.clone()));
    }
    versions.iter_mut().for_each(rename_paths);
    if definition.list_at(&["status", "storedVersions"]).is_empty() {
        let stored = versions.iter().filter(|version| version.is_true_at(&["storage"])).take(1);
        let stored: Vec<Value> = stored.map(|version| version.at(&["name"]).clone()).collect();
        definition.set_at(&["status", "storedVersions"], Value::Array(stored));
    }
    spec.set_at(&["versions"], Value::Array(versions));
    let conversion = spec.remove_at(&["conversion"]).unwrap_or_default();
    spec.set_at(&["conversion"], converted(&conversion));
    // The present version drops unknown fields unless it states otherwise. The older one keeps them.
    match spec.at(&["preserveUnknownFields"]).as_bool() {
        Some(false) => drop(spec.remove_at(&["preserveUnknownFields"])),
        Some(true) => {}
        None => spec.set_at(&["preserveUnknownFields"], true),
    }
    definition.set_at(&["spec"], spec);
}

fn add_names(spec: &mut Value) {
    let kind = spec.str_at(&["names", "kind"]).to_owned();
    for (field, name) in [("singular", kind.to_lowercase()), ("listKind", format!("{kind}List"))] {
        if spec.str_at(&["names", field]).is_empty() && !kind.is_empty() {
            spec.set_at(&["names", field], name);
        }
    }
    if spec.str_at(&["scope"]).is_empty() {
        spec.set_at(&["scope"], "Namespaced");
    }
}

/// Renames the path of each column, which has another name in the older version.
fn rename_paths(version: &mut Value) {
    let columns = version.get_mut("additionalPrinterColumns").and_then(Value::as_array_mut);
    for column in columns.into_iter().flatten().filter_map(Value::as_object_mut) {
        rename(column, "JSONPath", "jsonPath");
    }
}

fn rename(map: &mut Map, from: &str, to: &str) {
    if let Some(member) = map.remove(from) {
        map.insert(to, member);
    }
}

fn converted(conversion: &Value) -> Value {
    let strategy = Some(conversion.str_at(&["strategy"])).filter(|text| !text.is_empty()).unwrap_or("None");
    let (client, reviews) = (conversion.at(&["webhookClientConfig"]), conversion.at(&["conversionReviewVersions"]));
    let mut converted = value!({"strategy": strategy});
    if !client.is_null() {
        converted.set_at(&["webhook", "clientConfig"], client.clone());
    }
    if !reviews.is_null() {
        converted.set_at(&["webhook", "conversionReviewVersions"], reviews.clone());
    } else if strategy == "Webhook" {
        converted.set_at(&["webhook", "conversionReviewVersions"], value!(["v1beta1"]));
    }
    converted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_shared_by_versions_are_copied_to_each() {
        let mut definition = value!({
            "apiVersion": VERSION,
            "spec": {
                "group": "g.example", "version": "v1", "names": {"plural": "things", "kind": "Thing"},
                "validation": {"openAPIV3Schema": {"type": "object"}},
                "subresources": {"status": {}},
                "versions": [{"name": "v1", "served": true, "storage": false}, {"name": "v2", "storage": true}],
                "additionalPrinterColumns": [{"name": "A", "type": "string", "JSONPath": ".a"}],
                "conversion": {"strategy": "Webhook", "webhookClientConfig": {"url": "https://h"}},
                "preserveUnknownFields": false
            }
        });
        upgrade(&mut definition);
        let version = |name: &str| {
            let mut version = value!({
                "name": name, "schema": {"openAPIV3Schema": {"type": "object"}}, "subresources": {"status": {}},
                "additionalPrinterColumns": [{"name": "A", "type": "string", "jsonPath": ".a"}]
            });
            version.set_at(&["storage"], name == "v2");
            if name == "v1" {
                version.set_at(&["served"], true);
            }
            version
        };
        let mut expected = value!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "spec": {
                "group": "g.example", "scope": "Namespaced",
                "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
                "versions": [(version("v1")), (version("v2"))],
                "conversion": {
                    "strategy": "Webhook",
                    "webhook": {"clientConfig": {"url": "https://h"}, "conversionReviewVersions": ["v1beta1"]}
                }
            },
            "status": {"storedVersions": ["v2"]}
        });
        definition.sort_members();
        expected.sort_members();
        assert_eq!(definition, expected);
    }

    #[test]
    fn a_single_version_needs_no_list() {
        let mut definition = value!({"spec": {"version": "v1beta1", "names": {"kind": "Thing"}}});
        upgrade(&mut definition);
        let versions = value!([{"name": "v1beta1", "served": true, "storage": true}]);
        assert_eq!(definition.at(&["spec", "versions"]), &versions);
        assert!(definition.is_true_at(&["spec", "preserveUnknownFields"]));
        assert_eq!(definition.at(&["spec", "conversion"]), &value!({"strategy": "None"}));
        assert_eq!(definition.list_at(&["status", "storedVersions"]), [Value::from("v1beta1")]);
    }
}
