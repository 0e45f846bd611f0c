use flotilla_proto::json;
use flotilla_proto::structural::{Structural, default, object_type};

use super::*;

fn object(text: &str) -> Value {
    json::parse(text.as_bytes()).expect("test data is JSON")
}

fn of_spec(spec: &str) -> (Structural, Type) {
    let schema = format!(r#"{{"type": "object", "properties": {{"spec": {spec}}}}}"#);
    let schema = Structural::of(&object(&schema));
    let of = object_type(&schema, "Free", "v1");
    (schema, of)
}

/// Returns the object after a spec was applied, or the text of the error.
fn applied(of: &(Structural, Type), by: &str, live: Option<&Value>, spec: &str) -> Result<Value, String> {
    let (group, version, kind) = ("x.example", "v1", "Free");
    let resource = ManagedResource { of: &of.1, group, version, kind, fixed: false, reset: &[], versions: &OneVersion };
    let config =
        format!(r#"{{"apiVersion": "x.example/v1", "kind": "Free", "metadata": {{"name": "a"}}, "spec": {spec}}}"#);
    let write = Write { manager: by, subresource: "", now: "2026-01-02T03:04:05Z" };
    let outcome = apply(&resource, &write, live, &object(&config), false).map_err(|error| error.message)?;
    let mut object = outcome.object.clone().or(live.cloned()).expect("an object");
    default(&of.0, &mut object).expect("small");
    outcome.finish(&mut object);
    Ok(object)
}

/// Returns the fields of the spec that a manager owns.
fn owned(object: &Value, manager: &str) -> String {
    let entries = object.list_at(&["metadata", "managedFields"]);
    let entry = entries.iter().find(|entry| entry.str_at(&["manager"]) == manager);
    let spec = entry.map(|entry| entry.at(&["fieldsV1", "f:spec"]).clone());
    String::from_utf8(json::to_vec(&spec.unwrap_or_default())).expect("JSON is UTF-8")
}

#[test]
fn a_string_with_a_format_is_any_scalar() {
    let of = of_spec(r#"{"type": "object", "properties": {"at": {"type": "string", "format": "date-time"}}}"#);
    for (value, shown) in [("[1]", "[1]"), (r#"{"z": 1}"#, "map[z:1]")] {
        let why = applied(&of, "m", None, &format!(r#"{{"at": {value}}}"#)).unwrap_err();
        assert!(why.ends_with(&format!(".spec.at: expected any scalar, got &{{{shown}}}")), "{why}");
    }
    assert_eq!(owned(&applied(&of, "m", None, r#"{"at": 5}"#).unwrap(), "m"), r#"{"f:at":{}}"#);
}

#[test]
fn numbers_of_custom_resources_stay_as_they_are() {
    let of = of_spec(r#"{"type": "object", "properties": {"n": {"type": "integer"}}}"#);
    let one = applied(&of, "m", None, r#"{"n": 1e19}"#).unwrap();
    assert!(matches!(one.at(&["spec", "n"]), Value::Float(number) if number.get() == 1e19), "{one:?}");
}

#[test]
fn data_without_a_schema_is_owned_by_its_members() {
    let of = of_spec(
        r#"{"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
        "known": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "tmpl": {"type": "object", "x-kubernetes-embedded-resource": true,
            "x-kubernetes-preserve-unknown-fields": true},
        "raw": {"x-kubernetes-preserve-unknown-fields": true}}}"#,
    );
    let one =
        applied(&of, "m1", None, r#"{"known": ["a"], "free": {"x": {"y": "z"}, "list": [1, {"a": "b"}]}}"#).unwrap();
    assert_eq!(
        owned(&one, "m1"),
        r#"{"f:free":{".":{},"f:list":{},"f:x":{".":{},"f:y":{}}},"f:known":{"v:\"a\"":{}}}"#
    );
    let two = applied(&of, "m2", Some(&one), r#"{"known": ["b"], "free": {"x": {"w": "v"}}}"#).unwrap();
    assert_eq!(two.at(&["spec", "free", "x"]), &object(r#"{"y": "z", "w": "v"}"#));
    assert_eq!(owned(&two, "m2"), r#"{"f:free":{".":{},"f:x":{".":{},"f:w":{}}},"f:known":{"v:\"b\"":{}}}"#);
    let why = applied(&of, "m2", Some(&two), r#"{"free": {"x": {"y": "other"}, "list": [2]}}"#).unwrap_err();
    assert!(why.contains(".spec.free.list") && why.contains(".spec.free.x.y"), "{why}");
    let embedded = r#"{"tmpl": {"kind": "C", "metadata": {"name": "i", "labels": {"a": "b"}}, "data": {"k": "v"}}}"#;
    let three = applied(&of, "m1", Some(&two), embedded).unwrap();
    assert_eq!(
        owned(&three, "m1"),
        r#"{"f:tmpl":{"f:data":{".":{},"f:k":{}},"f:kind":{},"f:metadata":{"f:labels":{"f:a":{}},"f:name":{}}}}"#
    );
    let four = applied(&of, "m3", Some(&three), r#"{"raw": [1, 2]}"#).unwrap();
    let five = applied(&of, "m3", Some(&four), r#"{"raw": {"was": "list"}}"#).unwrap();
    assert_eq!([owned(&four, "m3"), owned(&five, "m3")], [r#"{"f:raw":{}}"#, r#"{"f:raw":{"f:was":{}}}"#]);
}

#[test]
fn errors_name_items_without_an_identity() {
    let of = of_spec(
        r#"{"type": "object", "properties": {"a": {"type": "string"}, "ll": {"type": "array",
        "x-kubernetes-list-type": "set", "items": {"type": "array", "items": {"type": "string"}}}}}"#,
    );
    let live = object(r#"{"metadata": {"name": "c", "namespace": "n"}, "spec": {"ll": [["a"], ["b"]]}}"#);
    let why = applied(&of, "m", Some(&live), r#"{"a": "b"}"#).unwrap_err();
    let what = "failed to convert new object (n/c; x.example/v1, Kind=Free) to smd typed: .spec.ll: element 0: not \
                supported: associative list with lists as elements";
    assert_eq!(why, format!("failed to create manager for existing fields: {what}"));
}

#[test]
fn configurations_that_the_schema_forbids_are_refused() {
    let of = of_spec(
        r#"{"type": "object", "properties": {
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "two": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port", "protocol"],
            "items": {"type": "object", "properties": {"port": {"type": "integer"},
                "protocol": {"type": "string", "default": "TCP"}}}}}}"#,
    );
    for (spec, expected) in [
        (r#"{"unknown": "x"}"#, ".spec.unknown: field not declared in schema"),
        (r#"{"labels": {"n": 1}}"#, ".spec.labels.n: expected string, got &value.valueUnstructured{Value:1}"),
        (r#"{"labels": {"n": 1e20}}"#, ".spec.labels.n: expected string, got &value.valueUnstructured{Value:1e+20}"),
        (r#"{"set": "text"}"#, ".spec.set: expected list, got &{text}"),
        (r#"{"set": ["x", "x"]}"#, r#".spec.set: duplicate entries for key [="x"]"#),
        (
            r#"{"two": [{"port": 80}, {"port": 80, "protocol": "TCP"}]}"#,
            r#".spec.two: duplicate entries for key [port=80,protocol="TCP"]"#,
        ),
    ] {
        let why = applied(&of, "m", None, spec).unwrap_err();
        assert!(why.ends_with(expected), "{why}");
    }
    let one = applied(&of, "m", None, r#"{"two": [{"port": 80}]}"#).unwrap();
    assert_eq!(owned(&one, "m"), r#"{"f:two":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:port":{}}}}"#);
}
