//! Numbers that do not fit into 64 bits: every decoder refuses them with the reference's message, and none is stored.

use serde_json::{Value, json};

use crate::support::{Connection, DataDir, Server};
use crate::unreadable::{WIDGETS, define_widgets};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const REVISIONS: &str = "/apis/apps/v1/namespaces/default/controllerrevisions";
const JSON: &str = "application/json";
const YAML: &str = "application/yaml";
const MERGE: &str = "application/merge-patch+json";
const OPERATIONS: &str = "application/json-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

struct Asked<'a> {
    method: &'a str,
    path: String,
    media: &'a str,
    body: String,
    status: u16,
    /// The end of the message.
    why: String,
}

impl Asked<'_> {
    fn ask(&self, client: &mut Connection) {
        let answer = client.request(self.method, &self.path, self.media, self.body.as_bytes());
        let refusal = answer.expect(self.status);
        let message = refusal["message"].as_str().unwrap_or_default();
        assert!(message.ends_with(&self.why), "{} {} {}: {message}", self.method, self.path, self.body);
    }
}

fn widget(name: &str, members: &str) -> String {
    format!(r#"{{"apiVersion":"example.com/v1","kind":"Widget","metadata":{{"name":"{name}"}}{members}}}"#)
}

fn refused(method: &'static str, path: &str, media: &'static str, body: String, why: &str) -> Asked<'static> {
    let (path, why) = (path.to_owned(), why.to_owned());
    Asked { method, path, media, body, status: 400, why }
}

fn start() -> (DataDir, Server, Connection) {
    let directory = DataDir::new();
    let server = directory.start();
    let mut client = server.connect();
    define_widgets(&mut client);
    (directory, server, client)
}

/// Returns the decoding error for a number in a free-form value.
fn into_float(number: &str) -> String {
    format!("json: cannot unmarshal number {number} into Go value of type float64")
}

#[test]
fn bodies_of_custom_resources_contain_only_64_bit_numbers() {
    let (_directory, _server, mut client) = start();
    let nines = "9".repeat(400);
    for number in ["1e400", "-1.8e308", nines.as_str()] {
        let why = format!("Widget in version \"v1\" cannot be handled as a Widget: {}", into_float(number));
        for members in [format!(r#","v":{number}"#), format!(r#","spec":{{"a":[{{"n":{number}}}]}},"x":1e500"#)] {
            refused("POST", WIDGETS, JSON, widget("a", &members), &why).ask(&mut client);
        }
    }
    client.request("POST", WIDGETS, JSON, widget("b", r#","n":1e308,"m":5e-324"#).as_bytes()).expect(201);
    let path = format!("{WIDGETS}/b");
    let (plain, operation) = (into_float("1e400"), "jsonPatchOp.value of type float64");
    for query in ["", "?fieldValidation=Strict"] {
        let path = format!("{path}{query}");
        refused("PATCH", &path, MERGE, r#"{"v":1e400}"#.into(), &format!("error decoding patch: {plain}"))
            .ask(&mut client);
        let body = r#"[{"op":"add","path":"/v","value":{"a":[1e400]}}]"#;
        refused("PATCH", &path, OPERATIONS, body.into(), operation).ask(&mut client);
    }
    for (media, body) in [
        (MERGE, r#"{"v":1e400}"#),
        (MERGE, r#"{"metadata":{"generation":1e400}}"#),
        (OPERATIONS, r#"[{"op":"add","path":"/v","value":1e400}]"#),
    ] {
        let mut asked = refused("PATCH", &format!("{path}?fieldValidation=Ignore"), media, body.into(), &plain);
        asked.status = 422;
        asked.ask(&mut client);
    }
    let status = refused("PUT", &format!("{path}/status"), JSON, widget("b", r#","status":{"v":1e400}"#), &plain);
    status.ask(&mut client);
    refused("PUT", &path, JSON, widget("b", r#","v":1e400"#), &plain).ask(&mut client);
    let there = client.get(&path).expect(200);
    assert_eq!((&there["n"], &there["m"], &there["v"]), (&json!(1e308), &json!(5e-324), &Value::Null));
    assert_eq!(client.get(WIDGETS).expect(200)["items"].as_array().map(Vec::len), Some(1));
}

#[test]
fn yaml_accepts_numbers_too_large_for_json_but_no_infinities() {
    let (_directory, _server, mut client) = start();
    let document = |name: &str, value: &str| {
        format!("apiVersion: example.com/v1\nkind: Widget\nmetadata: {{name: {name}}}\nv: {value}\n")
    };
    let nines = "9".repeat(400);
    for (n, number) in ["1e400", "-1.8e308", &nines].into_iter().enumerate() {
        let name = format!("y{n}");
        let made = client.request("POST", WIDGETS, YAML, document(&name, number).as_bytes()).expect(201);
        assert_eq!(made["v"], number);
        let path = format!("{WIDGETS}/{name}?fieldManager=m&force=true");
        let applied = client.request("PATCH", &path, APPLY, document(&name, number).as_bytes()).expect(200);
        assert_eq!(applied["v"], number);
    }
    let keys =
        client.request("POST", WIDGETS, YAML, document("keys", "{.inf: 1, -.INF: 2, .NaN: 3, 1.50: 4}").as_bytes());
    assert_eq!(keys.expect(201)["v"], json!({".inf": 1, "-.inf": 2, ".nan": 3, "1.5": 4}));
    for (text, name) in [(".inf", "+Inf"), ("-.Inf", "-Inf"), ("[1, .nan]", "NaN")] {
        let answer = client.request("POST", WIDGETS, YAML, document("z", text).as_bytes()).expect(400);
        let why = format!("(must be of type Widget): json: unsupported value: {name} (");
        assert!(answer["message"].as_str().is_some_and(|message| message.contains(&why)), "{answer}");
        let why = format!("error decoding YAML: error converting YAML to JSON: json: unsupported value: {name}");
        let path = format!("{WIDGETS}/z?fieldManager=m");
        refused("PATCH", &path, APPLY, document("z", text), &why).ask(&mut client);
    }
}

#[test]
fn free_form_parts_of_built_in_kinds_contain_only_64_bit_numbers() {
    let (_directory, _server, mut client) = start();
    let revision = |data: &str| format!(r#"{{"metadata":{{"name":"r"}},"revision":1,"data":{data}}}"#);
    for number in ["1e400", "-1.8e308"] {
        let mut asked = refused("POST", REVISIONS, JSON, revision(&format!(r#"{{"v":[{number}]}}"#)), "");
        (asked.status, asked.why) =
            (422, format!("data: Invalid value: \"<value omitted>\": error parsing data: {}", into_float(number)));
        asked.ask(&mut client);
    }
    client.request("POST", REVISIONS, JSON, revision(r#"{"v":1}"#).as_bytes()).expect(201);
    let path = format!("{REVISIONS}/r");
    let body = r#"{"data":{"v":1e400}}"#;
    let why = format!("error decoding patch: {}", into_float("1e400"));
    refused("PATCH", &path, MERGE, body.into(), &why).ask(&mut client);
    refused("PATCH", &path, STRATEGIC, body.into(), &into_float("1e400")).ask(&mut client);
    let class = r#"{"metadata":{"name":"x"},"spec":{"config":[{"opaque":{"driver":"d.example.com","parameters":{"v":1e400}}}]}}"#;
    let mut asked = refused("POST", "/apis/resource.k8s.io/v1/deviceclasses", JSON, class.into(), "");
    (asked.status, asked.why) = (422, format!("error parsing data as JSON: {}", into_float("1e400")));
    asked.ask(&mut client);
    for (rule, why) in [
        (r#""maximum":1e400"#, "properties.maximum of type float64"),
        (r#""maxLength":1e400"#, "properties.maxLength of type int64"),
        (r#""enum":[1e400]"#, "number 1e400 into Go value of type float64"),
        (r#""default":{"a":1e400}"#, "number 1e400 into Go value of type float64"),
    ] {
        let schema = format!(r#"{{"type":"object","properties":{{"n":{{"type":"number",{rule}}}}}}}"#);
        let version =
            format!(r#"{{"name":"v1","served":true,"storage":true,"schema":{{"openAPIV3Schema":{schema}}}}}"#);
        let spec = format!(
            r#"{{"group":"example.com","scope":"Namespaced","names":{{"plural":"odds","kind":"Odd"}},"versions":[{version}]}}"#
        );
        let body = format!(r#"{{"metadata":{{"name":"odds.example.com"}},"spec":{spec}}}"#);
        refused("POST", DEFINITIONS, JSON, body, why).ask(&mut client);
    }
    // A number in an unknown field is dropped without an error.
    let path = "/api/v1/namespaces/default/configmaps";
    client.request("POST", path, JSON, br#"{"metadata":{"name":"c"},"unknown":1e400}"#).expect(201);
    client.get(&format!("{path}/c")).expect(200);
}
