//! CEL rules of custom resources, and CEL selectors of devices.

use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Answer, Connection, DataDir, PATIENCE, Server};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const TEAPOTS: &str = "/apis/example.com/v1/namespaces/default/teapots";
const TEAPOT: &str = "/apis/example.com/v1/namespaces/default/teapots/a";
const CLASSES: &str = "/apis/resource.k8s.io/v1/deviceclasses";

/// Returns a definition of teapots whose `spec` has these properties and rules.
fn definition(properties: &Value, rules: &Value) -> Value {
    let spec = json!({"type": "object", "properties": properties, "x-kubernetes-validations": rules});
    let status = json!({"type": "object", "properties": {"level": {"type": "integer"}},
        "x-kubernetes-validations": [{"rule": "self.level <= 100", "message": "it runs over", "fieldPath": ".level"}]});
    let properties = json!({"spec": spec, "status": status});
    let schema = json!({"openAPIV3Schema": {"type": "object", "properties": properties}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "teapots.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": "teapots", "kind": "Teapot"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema,
                "subresources": {"status": {}}}],
        },
    })
}

fn define(client: &mut Connection, properties: &Value, rules: &Value) {
    client.post(DEFINITIONS, &definition(properties, rules)).expect(201);
    let deadline = Instant::now() + PATIENCE;
    while client.get(TEAPOTS).status != 200 {
        assert!(Instant::now() < deadline, "teapots are not served in time");
        sleep(Duration::from_millis(20));
    }
}

fn teapot(spec: Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Teapot", "metadata": {"name": "a"}, "spec": spec})
}

/// Returns field, reason and message of each cause of a 422.
fn causes(answer: &Answer) -> Vec<(String, String, String)> {
    let refusal = answer.expect(422);
    let causes = refusal["details"]["causes"].as_array().expect("causes").clone();
    let text = |cause: &Value, key: &str| cause[key].as_str().unwrap_or_default().to_owned();
    causes.iter().map(|cause| (text(cause, "field"), text(cause, "reason"), text(cause, "message"))).collect()
}

fn cause(field: &str, reason: &str, message: &str) -> Vec<(String, String, String)> {
    vec![(field.to_owned(), reason.to_owned(), message.to_owned())]
}

fn start(directory: &DataDir) -> (Server, Connection) {
    let server = directory.start();
    let client = server.connect();
    (server, client)
}

#[test]
fn definitions_with_invalid_or_too_expensive_rules_are_refused() {
    let directory = DataDir::new();
    let (_server, mut client) = start(&directory);
    let place = "spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0]";
    let names = json!({"names": {"type": "array", "items": {"type": "string"}}, "size": {"type": "integer"}});
    for (rule, field, message) in [
        (
            json!({"rule": "self.sise > 0"}),
            "rule",
            "ERROR: <input>:1:5: undefined field 'sise'\n | self.sise > 0\n | ....^",
        ),
        (json!({"rule": "self.size"}), "rule", "cel expression must evaluate to a bool"),
        (json!({"rule": "self.size > "}), "rule", "Syntax error: mismatched input '<EOF>'"),
        (
            json!({"rule": "self.names.all(a, self.names.all(b, a == b))"}),
            "rule",
            "exceeds budget by factor of more than 100x",
        ),
        (json!({"rule": "true", "messageExpression": "self.size"}), "messageExpression", "must evaluate to a string"),
        (json!({"rule": "true", "fieldPath": ".sise"}), "fieldPath", "must be a valid path"),
        (
            json!({"rule": "true", "optionalOldSelf": true}),
            "optionalOldSelf",
            "may not be set if oldSelf is not used in rule",
        ),
    ] {
        let found = causes(&client.post(DEFINITIONS, &definition(&names, &json!([rule]))));
        assert!(
            found.iter().any(|cause| cause.0 == format!("{place}.{field}") && cause.2.contains(message)),
            "{found:?}"
        );
        client.get(&format!("{DEFINITIONS}/teapots.example.com")).expect(404);
    }
    // An invalid rule that is stored already may stay, but an update must not make it worse.
    define(&mut client, &names, &json!([{"rule": "self.size < 10"}]));
    let patch = json!([{"op": "replace", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/\
        x-kubernetes-validations/0/rule", "value": "self.size < 'a'"}]);
    let path = format!("{DEFINITIONS}/teapots.example.com");
    let refused = client.request("PATCH", &path, "application/json-patch+json", patch.to_string().as_bytes());
    assert!(causes(&refused)[0].2.contains("found no matching overload for '_<_' applied to '(int, string)'"));
}

#[test]
fn objects_that_break_rules_are_refused_by_every_kind_of_write() {
    let directory = DataDir::new();
    let (_server, mut client) = start(&directory);
    let properties = json!({"size": {"type": "integer"}, "limit": {"type": "integer"},
        "namespace": {"type": "string"}, "kind": {"type": "string", "maxLength": 10}});
    let rules = json!([
        {"rule": "!has(self.limit) || self.size <= self.limit", "fieldPath": ".size",
            "messageExpression": "'%d is over %d'.format([self.size, self.limit])", "message": "too large"},
        {"rule": "!has(self.namespace) || self.namespace != 'sea'", "reason": "FieldValueForbidden", "message": "no tea"},
        {"rule": "!has(oldSelf.kind) || has(self.kind) && self.kind == oldSelf.kind", "message": "kinds stay"},
    ]);
    define(&mut client, &properties, &rules);
    let over = cause("spec.size", "FieldValueInvalid", "Invalid value: 9 is over 5");
    let broken = teapot(json!({"size": 9, "limit": 5, "kind": "clay"}));
    assert_eq!(causes(&client.post(TEAPOTS, &broken)), over);
    assert_eq!(causes(&client.post(&format!("{TEAPOTS}?dryRun=All"), &broken)), over);
    client.get(TEAPOT).expect(404);
    let sea = teapot(json!({"size": 1, "namespace": "sea"}));
    assert_eq!(causes(&client.post(TEAPOTS, &sea)), cause("spec", "FieldValueForbidden", "Forbidden: no tea"));
    // Rules are not evaluated for an object that does not match its schema.
    let long = causes(&client.post(TEAPOTS, &teapot(json!({"size": 9, "limit": 5, "kind": "eleven characters"}))));
    assert_eq!((long.len(), &*long[0].0, &*long[1].0), (2, "spec.kind", "<nil>"));
    assert!(long[1].2.ends_with("correct the existing errors to complete validation"));

    let mut made = client.post(TEAPOTS, &teapot(json!({"size": 1, "limit": 5, "kind": "clay"}))).expect(201);
    made["spec"]["size"] = 9.into();
    assert_eq!(causes(&client.put(TEAPOT, &made)), over);
    let patch = |client: &mut Connection, path: &str, patch: Value| {
        client.request("PATCH", path, "application/merge-patch+json", patch.to_string().as_bytes())
    };
    assert_eq!(causes(&patch(&mut client, TEAPOT, json!({"spec": {"size": 9}}))), over);
    let kept = cause("spec", "FieldValueInvalid", "Invalid value: kinds stay");
    assert_eq!(causes(&patch(&mut client, TEAPOT, json!({"spec": {"kind": "tin"}}))), kept);
    let apply = format!("{TEAPOT}?fieldManager=m&force=true");
    let applied = client.request("PATCH", &apply, "application/apply-patch+yaml", broken.to_string().as_bytes());
    assert_eq!(causes(&applied), over);
    let status = patch(&mut client, &format!("{TEAPOT}/status"), json!({"status": {"level": 101}}));
    assert_eq!(causes(&status), cause("status.level", "FieldValueInvalid", "Invalid value: it runs over"));
    patch(&mut client, &format!("{TEAPOT}/status"), json!({"status": {"level": 100}})).expect(200);
    assert_eq!(client.get(TEAPOT).json()["spec"], json!({"size": 1, "limit": 5, "kind": "clay"}));
}

#[test]
fn objects_that_already_break_new_rules_cause_warnings() {
    let directory = DataDir::new();
    let (_server, mut client) = start(&directory);
    define(&mut client, &json!({"size": {"type": "integer"}}), &json!([{"rule": "true"}]));
    client.post(TEAPOTS, &teapot(json!({"size": 9}))).expect(201);
    let path = format!("{DEFINITIONS}/teapots.example.com");
    let rule = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/x-kubernetes-validations/0/rule";
    let patch = json!([{"op": "replace", "path": rule, "value": "self.size < 5"}]).to_string();
    client.request("PATCH", &path, "application/json-patch+json", patch.as_bytes()).expect(200);
    let dry = format!("{TEAPOTS}?dryRun=All");
    let mut other = teapot(json!({"size": 9}));
    other["metadata"]["name"] = "b".into();
    let deadline = Instant::now() + PATIENCE;
    while client.post(&dry, &other).status != 422 {
        assert!(Instant::now() < deadline, "the new rule is not enforced in time");
        sleep(Duration::from_millis(20));
    }
    let mut label =
        |patch: Value| client.request("PATCH", TEAPOT, "application/merge-patch+json", patch.to_string().as_bytes());
    let labelled = label(json!({"metadata": {"labels": {"a": "b"}}}));
    labelled.expect(200);
    let warning = labelled.header("warning").unwrap_or_default();
    assert!(warning.contains("spec: Invalid value: failed rule: self.size < 5"), "{warning}");
    assert_eq!(causes(&label(json!({"spec": {"size": 8}})))[0].0, "spec");
}

#[test]
fn expressions_that_nest_deep_are_answered() {
    let directory = DataDir::new();
    let (_server, mut client) = start(&directory);
    let sum = |depth: usize| format!("{}1{} > 0", "(1 + ".repeat(depth), ")".repeat(depth));
    let size = json!({"size": {"type": "integer"}});
    let refused = client.post(DEFINITIONS, &definition(&size, &json!([{"rule": sum(5000)}])));
    assert!(causes(&refused)[0].2.contains("compilation failed"));
    let rules = json!([{"rule": sum(110)}, {"rule": format!("size({}self{}) > 0", "[".repeat(100), "]".repeat(100))}]);
    define(&mut client, &size, &rules);
    client.post(TEAPOTS, &teapot(json!({"size": 1}))).expect(201);
    let class = |expression: &str| {
        json!({"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "deep"},
            "spec": {"selectors": [{"cel": {"expression": expression}}]}})
    };
    client.post(CLASSES, &class(&sum(110))).expect(201);
}

#[test]
fn selectors_of_devices_are_compiled_and_their_cost_is_bounded() {
    let directory = DataDir::new();
    let (_server, mut client) = start(&directory);
    let class = |expression: &str| {
        json!({"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu"},
            "spec": {"selectors": [{"cel": {"expression": expression}}]}})
    };
    let field = "spec.selectors[0].cel.expression";
    let list = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]";
    let costly = ["a", "b", "c", "d", "e", "f", "g"]
        .iter()
        .fold("1 < 2".to_owned(), |rule, name| format!("{list}.all({name}, {rule})"));
    for (expression, message) in [
        ("device.driver", "must evaluate to bool or the unknown type, not string"),
        ("device.vendor == 'a'", "compilation failed: ERROR: <input>:1:7: undefined field 'vendor'"),
        (&*costly, "too complex, exceeds cost limit"),
    ] {
        let found = causes(&client.post(CLASSES, &class(expression)));
        assert!(found[0].0 == field && found[0].2.contains(message), "{found:?}");
    }
    let known = "cel.bind(own, device.attributes['gpu.example.com'], own.memory.isGreaterThan(quantity('1Gi')))";
    client.post(CLASSES, &class(known)).expect(201);
    let claim = json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "c"},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu",
            "selectors": [{"cel": {"expression": "device.driver =="}}]}}]}}});
    let found = causes(&client.post("/apis/resource.k8s.io/v1/namespaces/default/resourceclaims", &claim));
    assert_eq!(found[0].0, "spec.devices.requests[0].exactly.selectors[0].cel.expression");
    assert!(found[0].2.contains("Syntax error"), "{found:?}");
}
