//! The exact text of answers: parts of a request's text that are kept, the order of fields, and the wording.

use serde_json::{Value, json};

use crate::cluster::until;
use crate::support::{Connection, DataDir, Server};
use crate::unreadable::{WIDGETS, define_widgets};

const NAMESPACE: &str = "/api/v1/namespaces/default";
const JSON: &str = "application/json";

fn start(directory: &DataDir) -> (Server, Connection) {
    let server = directory.start();
    let client = server.connect();
    (server, client)
}

fn pod(name: &str, requests: &Value, limits: &Value) -> Value {
    let resources = json!({"requests": requests, "limits": limits});
    let containers = json!([{"name": "c", "image": "i", "resources": resources}]);
    json!({"metadata": {"name": name}, "spec": {"containers": containers}})
}

#[test]
fn quantities_keep_their_text_and_compare_at_any_size() {
    let directory = DataDir::new();
    let (_server, mut client) = start(&directory);
    let sent = json!({"a.b/a": "1.500", "a.b/b": "1E3", "a.b/c": "500e-3", "a.b/d": "+5Gi", "a.b/e": "007",
        "a.b/f": "9223372036854775808", "a.b/g": "1e30", "a.b/h": "-1.5m", "a.b/i": "1.5Gi", "a.b/j": "64Ei"});
    let range = json!({"metadata": {"name": "r"}, "spec": {"limits": [{"type": "Container", "default": sent}]}});
    let ranges = format!("{NAMESPACE}/limitranges");
    client.post(&ranges, &range).expect(201);
    let kept = client.get(&format!("{ranges}/r")).expect(200)["spec"]["limits"][0]["default"].clone();
    let mut want = sent;
    (want["a.b/h"], want["a.b/i"], want["a.b/j"]) = (json!("-2m"), json!("1536Mi"), json!("9223372036854775807"));
    assert_eq!(kept, want);
    client.delete(&format!("{ranges}/r")).expect(200);

    let account = format!("{NAMESPACE}/serviceaccounts/default");
    until("pods have a ServiceAccount", || client.get(&account).status == 200);
    let pods = format!("{NAMESPACE}/pods");
    let refused = client.post(&pods, &pod("p", &json!({"cpu": "1e31"}), &json!({"cpu": "2e30"}))).expect(422);
    let why = refused["message"].as_str().unwrap_or_default();
    assert!(why.ends_with("must be less than or equal to cpu limit of 2e30"), "{why}");

    let quota = json!({"metadata": {"name": "q"}, "spec": {"hard": {"requests.cpu": "2e30"}}});
    client.post(&format!("{NAMESPACE}/resourcequotas"), &quota).expect(201);
    let path = format!("{NAMESPACE}/resourcequotas/q");
    until("the quota is counted", || client.get(&path).expect(200)["status"]["used"]["requests.cpu"] == "0");
    client.post(&pods, &pod("a", &json!({"cpu": "1e30"}), &json!({}))).expect(201);
    client.post(&pods, &pod("b", &json!({"cpu": "999e27"}), &json!({}))).expect(201);
    // A count that the controller has just begun may miss the last pod, and the next one does not.
    until("both are charged", || client.get(&path).expect(200)["status"]["used"]["requests.cpu"] == "1999e27");
    let refused = client.post(&pods, &pod("c", &json!({"cpu": "2e27"}), &json!({}))).expect(403);
    let why = refused["message"].as_str().unwrap_or_default();
    assert!(why.ends_with("requests.cpu=2e27, used: requests.cpu=1999e27, limited: requests.cpu=2e30"), "{why}");
}

#[test]
fn descriptions_have_the_phrases_that_clients_search_for() {
    let directory = DataDir::new();
    let (_server, mut client) = start(&directory);
    define_widgets(&mut client);
    let described = client.get("/openapi/v2").text();
    for words in ["list of returned", "List of services", "Watch for changes to the described resources"] {
        assert!(described.contains(words), "{words}");
    }
    let document = "/openapi/v3/apis/example.com/v1";
    until("the resource is described", || client.get(document).status == 200);
    let schemas = client.get(document).expect(200)["components"]["schemas"].clone();
    let properties = &schemas["com.example.v1.Widget"]["properties"];
    let begins = |of: &Value, words: &str| of["description"].as_str().is_some_and(|text| text.starts_with(words));
    assert!(begins(&properties["apiVersion"], "APIVersion defines"), "{properties}");
    assert!(begins(&properties["metadata"], "Standard object's metadata"), "{properties}");
    let metadata = &schemas["io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"]["properties"];
    assert!(begins(&metadata["creationTimestamp"], "CreationTimestamp is a timestamp"), "{metadata}");
}

#[test]
fn components_that_do_not_run_refuse_connections() {
    let directory = DataDir::new();
    let (_server, mut client) = start(&directory);
    let all = client.get("/api/v1/componentstatuses").expect(200);
    let condition = |name: &str| {
        let items = all["items"].as_array().into_iter().flatten();
        let found = items.clone().find(|item| item["metadata"]["name"] == name).cloned().unwrap_or_default();
        (found["conditions"][0]["status"].clone(), found["conditions"][0]["message"].clone())
    };
    let refused = "Get \"https://127.0.0.1:10259/healthz\": dial tcp 127.0.0.1:10259: connect: connection refused";
    assert_eq!(condition("scheduler"), (json!("False"), json!(refused)));
    assert_eq!(condition("etcd-0"), (json!("True"), json!("ok")));
}

#[test]
fn flow_schemas_report_whether_their_priority_level_exists() {
    let directory = DataDir::new();
    let (_server, mut client) = start(&directory);
    let schemas = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas";
    for (name, level, status) in [("a", "workload-low", "False"), ("b", "nobody", "True")] {
        let spec = json!({"matchingPrecedence": 500, "priorityLevelConfiguration": {"name": level}});
        client.post(schemas, &json!({"metadata": {"name": name}, "spec": spec})).expect(201);
        let path = format!("{schemas}/{name}");
        until("the condition is reported", || {
            let condition = client.get(&path).expect(200)["status"]["conditions"][0].clone();
            condition["type"] == "Dangling" && condition["status"] == status
        });
    }
}

#[test]
fn members_of_custom_resources_are_sorted() {
    let directory = DataDir::new();
    let (_server, mut client) = start(&directory);
    define_widgets(&mut client);
    let body = r#"{"zeta":{"b":[{"z":1,"a":2}],"a":1},"kind":"Widget","lots":1,"beta":2,"apiVersion":"example.com/v1",
        "metadata":{"name":"w","labels":{"z":"1","a":"2"}},"alpha":{"kind":"x"}}"#;
    let is_sorted = |text: &str, members: &[&str]| {
        let places: Vec<usize> =
            members.iter().map(|member| text.find(&format!("\"{member}\":")).unwrap_or(usize::MAX)).collect();
        assert!(places.is_sorted() && places.last() != Some(&usize::MAX), "{members:?} in {text}");
    };
    let members = ["alpha", "apiVersion", "beta", "lots", "metadata", "creationTimestamp", "uid", "zeta"];
    client.request("POST", WIDGETS, JSON, body.as_bytes()).expect(201);
    let text = client.get(&format!("{WIDGETS}/w")).text();
    is_sorted(&text, &members);
    assert!(text.contains(r#""beta":2,"kind":"Widget","lots":1,"metadata":{"#), "{text}");
    assert!(text.contains(r#""zeta":{"a":1,"b":[{"a":2,"z":1}]}}"#), "{text}");
    let list = client.get(WIDGETS).text();
    assert!(list.starts_with(r#"{"apiVersion":"example.com/v1","items":[{"alpha":"#), "{list}");
    assert!(list.contains(r#"}],"kind":"WidgetList","metadata":{"continue":"","resourceVersion":""#), "{list}");
}

#[test]
fn metadata_alone_stands_in_the_order_of_its_type() {
    let directory = DataDir::new();
    let (_server, mut client) = start(&directory);
    define_widgets(&mut client);
    let body = r#"{"kind":"Widget","apiVersion":"example.com/v1","metadata":{"name":"w","labels":{"z":"1","a":"2"},
        "ownerReferences":[{"uid":"u","name":"n","kind":"K","controller":true,"apiVersion":"a/v1"}]}}"#;
    client.request("POST", WIDGETS, JSON, body.as_bytes()).expect(201);
    let name = r#""metadata":{"name":"w","namespace":"default","uid":""#;
    let owner = r#""ownerReferences":[{"apiVersion":"a/v1","kind":"K","name":"n","uid":"u","controller":true}]"#;
    let manager = r#""managedFields":[{"manager":""#;
    let one = format!("{WIDGETS}/w");
    for (path, form) in [(&one[..], "PartialObjectMetadata"), (WIDGETS, "PartialObjectMetadataList")] {
        for form in [form, "Table"] {
            let accept = format!("application/json;as={form};v=v1;g=meta.k8s.io");
            let text = client.call("GET", path, &[("Accept", &accept)], b"").expect("an answer").text();
            for part in [name, r#""labels":{"a":"2","z":"1"}"#, owner, manager] {
                assert!(text.contains(part), "{part} in {text}");
            }
        }
    }
    let whole = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let path = format!("{WIDGETS}?includeObject=Object");
    let text = client.call("GET", &path, &[("Accept", whole)], b"").expect("an answer").text();
    assert!(text.contains(r#""metadata":{"creationTimestamp":""#), "the object is as it is: {text}");
}

#[test]
fn schemas_of_definitions_have_the_field_order_of_their_type() {
    let directory = DataDir::new();
    let (_server, mut client) = start(&directory);
    let list = r#"{"items":{"required":["k"],"properties":{"z":{"type":"string"},"k":{"enum":["b"],"type":"string"}},
        "default":{"z":"1","k":"b"},"type":"object"},"type":"array"}"#;
    let map = r#"{"additionalProperties":{"properties":{"z":{"type":"string"},"a":{"type":"string"}},"type":"object"},
        "type":"object"}"#;
    let body = format!(
        r#"{{"metadata":{{"name":"free.example.com"}},"spec":{{"group":"example.com","scope":"Namespaced",
        "names":{{"plural":"free","kind":"Free"}},"versions":[{{"name":"v1","served":true,"storage":true,"schema":
        {{"openAPIV3Schema":{{"properties":{{"l":{list},"m":{map}}},"type":"object"}}}}}}]}}}}"#
    );
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let text = client.request("POST", definitions, JSON, body.as_bytes()).text();
    let items = r#"{"type":"object","default":{"k":"b","z":"1"},"required":["k"],"properties":{"k":"#.to_owned()
        + r#"{"type":"string","enum":["b"]},"z":{"type":"string"}}}"#;
    let additional = r#"{"type":"object","properties":{"a":{"type":"string"},"z":{"type":"string"}}}"#;
    let properties =
        format!(r#"{{"l":{{"type":"array","items":{items}}},"m":{{"type":"object","additionalProperties":"#);
    let schema = format!(r#"{{"type":"object","properties":{properties}{additional}}}}}}}"#);
    assert!(text.contains(&schema), "{schema} in {text}");
}

#[test]
fn unchanged_finalizers_keep_their_order() {
    let directory = DataDir::new();
    let (_server, mut client) = start(&directory);
    let finalizers = json!(["kubernetes", "foregroundDeletion", "a/b", "a/c"]);
    let map = json!({"metadata": {"name": "held", "finalizers": finalizers}});
    client.post(&format!("{NAMESPACE}/configmaps"), &map).expect(201);
    let marked = client.delete(&format!("{NAMESPACE}/configmaps/held")).expect(200);
    assert_eq!(marked["metadata"]["finalizers"], finalizers);
}

#[test]
fn strict_decoding_reports_in_the_order_of_the_body() {
    let directory = DataDir::new();
    let (_server, mut client) = start(&directory);
    let maps = format!("{NAMESPACE}/configmaps?fieldValidation=Strict");
    let body = r#"{"foo":1,"metadata":{"name":"w","x":1,"name":"w"},"data":{"a":"1","a":"2"},"bar":{"z":1,"z":2}}"#;
    let refused = client.request("POST", &maps, JSON, body.as_bytes()).expect(400);
    let why = refused["message"].as_str().unwrap_or_default();
    let complaints = r#"unknown field "foo", unknown field "metadata.x", duplicate field "metadata.name", "#.to_owned()
        + r#"duplicate field "data.a", unknown field "bar""#;
    assert!(why.ends_with(&format!("strict decoding error: {complaints}")), "{why}");
}

/// A list in YAML or in indented JSON has the content of compact JSON, and the layout of a single object.
#[test]
fn lists_have_the_same_content_in_every_layout() {
    let directory = DataDir::new();
    let (_server, mut client) = start(&directory);
    define_widgets(&mut client);
    for number in 0..150 {
        let text = format!("a: {number}\n- yes: 17:00:00\n").repeat(number);
        let map = json!({"metadata": {"name": format!("m-{number}")}, "data": {"text": text, "number": "0x1f"}});
        client.post(&format!("{NAMESPACE}/configmaps"), &map).expect(201);
    }
    client
        .post(WIDGETS, &json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}))
        .expect(201);
    let (table, partial) = ("as=Table;v=v1;g=meta.k8s.io", "as=PartialObjectMetadataList;v=v1;g=meta.k8s.io");
    let maps = format!("{NAMESPACE}/configmaps");
    for (path, form) in [
        (maps.as_str(), ""),
        (&format!("{maps}?limit=7"), ""),
        (&format!("{maps}?labelSelector=none"), ""),
        (&maps, partial),
        (&format!("{maps}?labelSelector=none"), partial),
        (&maps, table),
        (&format!("{maps}?labelSelector=none"), table),
        (WIDGETS, ""),
        (&format!("{WIDGETS}?labelSelector=none"), ""),
    ] {
        // The ages in a table change between the requests, so the comparison may have to be repeated.
        let is_same = || {
            let mut list = |media: &str, query: &str| {
                let path = if path.contains('?') { format!("{path}&{query}") } else { format!("{path}?{query}") };
                let accept = if form.is_empty() { media.to_owned() } else { format!("{media};{form}") };
                client.call("GET", &path, &[("Accept", &accept)], b"").expect("an answer").text()
            };
            let (compact, yaml, indented) = (list(JSON, ""), list("application/yaml", ""), list(JSON, "pretty=true"));
            let tree = flotilla_proto::json::parse(compact.as_bytes()).expect("JSON");
            let (mut as_yaml, mut as_indented) = (Vec::new(), Vec::new());
            flotilla_proto::yaml::write(&tree, &mut as_yaml);
            flotilla_proto::json::write_pretty(&tree, &mut as_indented);
            yaml.as_bytes() == as_yaml && indented.as_bytes() == as_indented
        };
        until(&format!("{path} {form} is the same in every layout"), is_same);
    }
}

#[test]
fn yaml_is_parsed_and_written_as_in_go() {
    let directory = DataDir::new();
    let (_server, mut client) = start(&directory);
    let maps = format!("{NAMESPACE}/configmaps");
    let body = "\u{feff}%YAML 1.1\n---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: yam\n  labels: {a: b,\n\
                c: d\n}\ndata:\n  quoted: \"one\n  two\"\n  0x10: '17:00:00'\n  bytes: !!binary aGk=\n  end: |\n    text";
    let made = client.request("POST", &maps, "application/yaml", body.as_bytes()).expect(201);
    let data = json!({"16": "17:00:00", "bytes": "hi", "end": "text", "quoted": "one two"});
    assert_eq!((&made["data"], &made["metadata"]["labels"]), (&data, &json!({"a": "b", "c": "d"})));
    let headers = [("Accept", "application/yaml")];
    let shown = client.call("GET", &format!("{maps}/yam"), &headers, b"").expect("an answer").text();
    assert!(shown.contains("  \"16\": \"17:00:00\"\n  bytes: hi\n  end: text\n  quoted: one two\n"), "{shown}");
    let refused = client.request("POST", &maps, "application/yaml", b"a: \xff\n").expect(400);
    let why = refused["message"].as_str().unwrap_or_default();
    assert!(why.contains("yaml: invalid leading UTF-8 octet"), "{why}");
}
