use flotilla_proto::value;

use super::*;

fn created(rule: NameRule, namespaced: bool, metadata: Value) -> Vec<String> {
    let mut errors = Errors::default();
    validate_create(rule, namespaced, &value!({"metadata": metadata}), &mut errors);
    errors.0.iter().map(ToString::to_string).collect()
}

fn updated(metadata: Value, old: Value) -> Vec<String> {
    let mut errors = Errors::default();
    validate_update(&Strategy::DEFAULT, true, &value!({"metadata": metadata}), &value!({"metadata": old}), &mut errors);
    errors.0.iter().map(ToString::to_string).collect()
}

#[test]
fn names_follow_the_rule() {
    assert!(created(NameRule::Subdomain, true, value!({"name": "a.b", "namespace": "n"})).is_empty());
    assert!(created(NameRule::PathSegment, false, value!({"name": "a:B c"})).is_empty());
    assert_eq!(
        created(NameRule::PathSegment, false, value!({"name": ".."})),
        ["metadata.name: Invalid value: \"..\": may not be '..'"]
    );
    assert_eq!(
        created(NameRule::Label, false, value!({"namespace": "x"})),
        [
            "metadata.name: Required value: name or generateName is required",
            "metadata.namespace: Forbidden: not allowed on this type"
        ]
    );
    assert_eq!(
        created(NameRule::Service, true, value!({"name": "a.b", "generateName": "b-", "namespace": "n"})).len(),
        1
    );
}

#[test]
fn owners_are_checked() {
    let owner = |kind: &str, name: &str| {
        let fields = value!({"apiVersion": "v1", "kind": kind, "name": name, "uid": "u", "controller": true});
        created(NameRule::Subdomain, false, value!({"name": "o", "ownerReferences": [fields]}))
    };
    assert!(owner("ConfigMap", "x").is_empty());
    assert_eq!(owner("Event", "x").len(), 1);
    assert_eq!(owner("", "").len(), 2);
}

#[test]
fn updates_state_their_causes_twice() {
    let old = value!({"name": "a", "namespace": "n", "uid": "u", "resourceVersion": "1", "creationTimestamp": "t"});
    assert!(updated(old.clone(), old.clone()).is_empty());
    let mut new = old.clone();
    new.set_at(&["deletionTimestamp"], "2020-01-01T00:00:00Z");
    let text = "metadata.deletionTimestamp: Invalid value: \"2020-01-01T00:00:00Z\": field is immutable";
    assert_eq!(updated(new.clone(), old.clone()), [text, text]);
    let mut finalized = new.clone();
    finalized.set_at(&["finalizers"], value!(["b/c", "a/b"]));
    let text = "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{\"a/b\", \"b/c\"}";
    assert_eq!(updated(finalized, new), [text, text]);
}

#[test]
fn managed_fields_have_a_shape() {
    let entry = value!({"operation": "x", "fieldsType": "y", "manager": "a\u{7}b"});
    assert_eq!(
        created(NameRule::Subdomain, false, value!({"name": "a", "managedFields": [entry]})),
        [
            "metadata.managedFields[0].operation: Invalid value: \"x\": must be `Apply` or `Update`",
            "metadata.managedFields[0].fieldsType: Invalid value: \"y\": must be `FieldsV1`",
            "metadata.managedFields[0].manager: Invalid value: \"a\\ab\": invalid character U+0007 (at position 1)",
        ]
    );
}
