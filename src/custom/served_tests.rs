use flotilla_proto::value;

use super::*;

/// Three versions of a kind: `v1` is stored; `v2` has one field more, with a default; `v3` is not served.
fn versions() -> Vec<Custom> {
    let schema = |fields: Value| value!({"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}}});
    let one = schema(value!({"a": {"type": "string"}}));
    let two = schema(value!({"a": {"type": "string"}, "two": {"type": "integer", "default": 2}}));
    let definition = value!({
        "spec": {"group": "g.example", "scope": "Cluster", "versions": [
            {"name": "v1", "served": true, "storage": true, "schema": (one.clone())},
            {"name": "v2", "served": true, "schema": two},
            {"name": "v3", "served": false, "schema": one}
        ]},
        "status": {
            "acceptedNames": {"plural": "things", "kind": "Thing"},
            "conditions": [{"type": "Established", "status": "True"}]
        }
    });
    Custom::of(&Arc::new(Definition::of(&definition).unwrap())).collect()
}

fn thing(version: &str, spec: Value) -> Value {
    value!({"apiVersion": (format!("g.example/{version}")), "kind": "Thing", "metadata": {"name": "x"}, "spec": spec})
}

#[test]
fn conversions_keep_the_fields_that_both_versions_have() {
    let [v1, v2] = &versions()[..] else { panic!("two versions are served") };
    let stored = v2.store(thing("v2", value!({"a": "a", "two": 7}))).unwrap();
    assert_eq!(stored, thing("v1", value!({"a": "a"})));
    // An object gets the defaults of the version in which it is stored.
    assert_eq!(v2.show(stored.clone()).unwrap(), thing("v2", value!({"a": "a"})));
    assert_eq!(v1.show(thing("v2", value!({"a": "a"}))).unwrap(), thing("v1", value!({"a": "a"})));
    assert_eq!(v2.show(thing("v2", value!({"a": "a"}))).unwrap(), thing("v2", value!({"a": "a", "two": 2})));
    assert_eq!(v1.show(thing("v3", value!({}))).unwrap(), thing("v1", value!({})));
    let error = v1.show(thing("v4", value!({}))).unwrap_err();
    assert_eq!(
        (error.code, &*error.message),
        (500, "request to convert CR from an invalid group/version: g.example/v4")
    );
    assert!(v1.interpret(&stored, "g.example/v3").is_ok());
    let refused = |api_version: &str| v1.interpret(&stored, api_version).unwrap_err().message;
    assert_eq!(refused("g.example/v4"), "request to convert CR to an invalid group/version: g.example/v4");
    assert!(refused("other.example/v1").ends_with("is not suitable for converting to \"other.example/v1\""));
}

#[test]
fn a_sent_object_is_read_by_the_version_that_it_states() {
    let of = &versions()[0];
    let conform = |object: Value| {
        let mut object = object;
        let unknown = of.conform(&mut object).unwrap();
        (unknown, object.at(&["spec"]).clone())
    };
    let spec = || value!({"a": "a", "two": 2, "three": 3});
    assert_eq!(conform(thing("v1", spec())).0, ["spec.three", "spec.two"]);
    assert_eq!(conform(thing("v2", spec())).0, ["spec.three"]);
    assert_eq!(conform(thing("v9", spec())), (vec!["spec".to_owned()], Value::Null));
    let mut other = thing("v1", spec());
    other.set_at(&["kind"], "Other");
    assert_eq!(conform(other.clone()), (Vec::new(), spec()));
    assert!(of.check_type(&thing("v1", spec())).is_ok());
    let refused = |object: &Value| of.check_type(object).unwrap_err().message;
    let expected = "Other.g.example \"x\" is invalid: kind: Invalid value: \"Other\": must be Thing";
    assert_eq!(refused(&other), expected);
    let mut core = thing("v1", spec());
    core.set_at(&["apiVersion"], "v1");
    assert_eq!(refused(&core), "Thing \"x\" is invalid: apiVersion: Invalid value: \"v1\": must be g.example/v1");
}

#[test]
fn sent_and_shown_objects_lose_null_values_and_merged_ones_keep_them() {
    let of = &versions()[1];
    let mut sent = thing("v2", value!({"a": null, "two": null}));
    of.conform(&mut sent).unwrap();
    assert_eq!(sent.at(&["spec"]), &value!({"two": null}));
    let mut merged = thing("v2", value!({"a": null, "two": null}));
    of.default(&mut merged).unwrap();
    assert_eq!(merged.at(&["spec"]), &value!({"a": null, "two": 2}));
    assert_eq!(of.show(merged).unwrap().at(&["spec"]), &value!({"two": 2}));
    assert_eq!(of.show(thing("v1", value!({"a": null}))).unwrap().at(&["spec"]), &value!({}));
}
