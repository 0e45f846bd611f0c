use flotilla_proto::value;
use flotilla_proto::value::Value;

use super::*;

fn definition(group: &str, plural: &str, versions: Value) -> Arc<Definition> {
    let names = value!({"plural": plural, "singular": "thing", "kind": "Thing", "listKind": "ThingList"});
    let object = value!({
        "metadata": {"name": (format!("{plural}.{group}"))},
        "spec": {"group": group, "scope": "Namespaced", "versions": versions},
        "status": {"acceptedNames": names, "conditions": [{"type": "Established", "status": "True"}]}
    });
    Arc::new(Definition::of(&object).unwrap())
}

fn version(name: &str, served: bool, storage: bool) -> Value {
    value!({"name": name, "served": served, "storage": storage, "schema": {"openAPIV3Schema": {"type": "object"}}})
}

#[test]
fn custom_resources_are_served_while_they_are_defined() {
    let resources = Resources::builtin();
    let versions = value!([(version("v1", false, true)), (version("v2", true, false)), (version("v3", true, false))]);
    let things = definition("example.com", "things", versions);
    let served = resources.define([things].iter());
    assert_eq!(served.len(), 2);
    assert!(resources.find("example.com", "v1", "things").is_none(), "it is not served");
    let v2 = resources.find("example.com", "v2", "things").unwrap();
    assert_eq!((v2.table.as_str(), &*v2.stored.version), ("example.com/things", "v1"));
    // The stored version is not served: another one represents the resource.
    assert_eq!(resources.of_kind("example.com", "Thing").unwrap().resource.version, "v2");
    assert_eq!(resources.stored().iter().filter(|of| of.custom.is_some()).count(), 1);
    resources.define([].iter());
    assert!(resources.find("example.com", "v2", "things").is_none());
    assert_eq!(*resources.changes().borrow(), 2);
}

#[test]
fn a_resource_without_served_versions_still_has_objects() {
    let things = definition("example.com", "things", value!([(version("v1", false, true))]));
    let resources = Resources::builtin();
    assert!(resources.define([things.clone()].iter()).is_empty());
    let served = resources.defined_by(Arc::into_inner(things).unwrap()).unwrap();
    assert_eq!((served.table.as_str(), &*served.resource.version), ("example.com/things", "v1"));
}

#[test]
fn definitions_cannot_replace_built_in_resources() {
    let resources = Resources::builtin();
    let ingresses = definition("networking.k8s.io", "ingresses", value!([(version("v1", true, true))]));
    assert!(resources.define([ingresses.clone()].iter()).is_empty());
    // Deleting such a definition must not delete ingresses.
    assert!(resources.defined_by(Arc::into_inner(ingresses).unwrap()).is_none());
    assert!(resources.find("networking.k8s.io", "v1", "ingresses").unwrap().custom.is_none());
}
