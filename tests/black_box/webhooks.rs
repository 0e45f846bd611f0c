//! Admission webhooks: they are called for every verb, may change or refuse objects, and may fail.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::support::{Connection, DataDir, PATIENCE, Reply, Webhook};

pub const MUTATING: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
pub const VALIDATING: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
pub const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const PODS: &str = "/api/v1/namespaces/default/pods";
/// The prefix of the names of objects by which tests find out whether a configuration is in effect.
const PROBE: &str = "probe-";

/// Returns an answer to a review, with additional fields.
pub fn answer(review: &Value, allowed: bool, more: Value) -> Reply {
    let mut response = json!({"uid": review["request"]["uid"], "allowed": allowed});
    let members = response.as_object_mut().expect("an object");
    members.extend(more.as_object().expect("an object").clone());
    Reply::Document(json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}))
}

pub fn patch(operations: &Value) -> Value {
    json!({"patchType": "JSONPatch", "patch": STANDARD.encode(operations.to_string())})
}

/// The object that a controller creates in each namespace, at any time after the start.
const OF_CONTROLLER: &str = "kube-root-ca.crt";

/// Returns whether a review is about a probe, or about an object of a controller, which every webhook matches, too.
fn is_ignored(review: &Value) -> bool {
    is_ignored_request(&review["request"])
}

/// Returns a webhook of a configuration. It matches `rules`, and ConfigMaps for probes.
pub fn hook(name: &str, rules: &Value, more: Value) -> Value {
    let mut all = vec![json!({
        "operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]
    })];
    all.extend(rules.as_array().expect("rules").iter().cloned());
    let mut hook = json!({
        "name": name, "admissionReviewVersions": ["v1"], "sideEffects": "None", "rules": all
    });
    let members = hook.as_object_mut().expect("an object");
    members.extend(more.as_object().expect("an object").clone());
    hook
}

pub fn rule(operations: &[&str], groups: &[&str], resources: &[&str]) -> Value {
    json!([{"operations": operations, "apiGroups": groups, "apiVersions": ["*"], "resources": resources}])
}

pub fn map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})
}

/// Creates a configuration, and waits until its webhook is called.
pub fn configure(client: &mut Connection, path: &str, name: &str, hooks: &[Value], webhook: &Webhook) {
    let own = format!("/{name}");
    let mut hooks = hooks.to_vec();
    hooks.iter_mut().for_each(|hook| hook["clientConfig"] = webhook.config(&own));
    client.post(path, &json!({"metadata": {"name": name}, "webhooks": hooks})).expect(201);
    let deadline = Instant::now() + PATIENCE;
    for attempt in 0.. {
        client.post(&format!("{MAPS}?dryRun=All"), &map(&format!("{PROBE}{attempt}")));
        if webhook.asked().iter().any(|(path, _)| path.split('?').next() == Some(&*own)) {
            return;
        }
        assert!(Instant::now() < deadline, "the webhook is not called in time");
        sleep(Duration::from_millis(20));
    }
}

/// Returns the requests that a webhook received, without probes.
pub fn asked(webhook: &Webhook) -> Vec<Value> {
    let reviews = webhook.asked().into_iter().map(|(_, review)| review);
    reviews.filter(|review| !is_ignored(review)).map(|review| review["request"].clone()).collect()
}

/// Starts a webhook that allows probes, and answers other reviews by `answers`.
pub fn but_probes(answers: impl Fn(&Value) -> Reply + Send + Sync + 'static) -> Webhook {
    Webhook::start(move |review| if is_ignored(review) { answer(review, true, json!({})) } else { answers(review) })
}

fn add_label(label: &str) -> Value {
    patch(&json!([{"op": "add", "path": "/metadata/labels", "value": {label: "outside"}}]))
}

#[test]
fn a_mutated_object_is_stored() {
    let (data, webhook) = (DataDir::new(), but_probes(|review| answer(review, true, add_label("made"))));
    let server = data.start();
    let mut client = server.connect();
    let hooks = [hook("m.example.com", &rule(&["UPDATE"], &[""], &["configmaps"]), json!({}))];
    configure(&mut client, MUTATING, "m", &hooks, &webhook);
    let mut own = map("a");
    own["data"] = json!({"k": "v"});
    let made = client.post(&format!("{MAPS}?fieldManager=tester"), &own).expect(201);
    assert_eq!(made["metadata"]["labels"], json!({"made": "outside"}));
    assert_eq!(client.get(&format!("{MAPS}/a")).expect(200), made);
    let merge = "application/merge-patch+json";
    client.request("PATCH", &format!("{MAPS}/a"), merge, br#"{"data": {"a": "b"}}"#).expect(200);
    let apply = br#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}}"#;
    client.request("PATCH", &format!("{MAPS}/b?fieldManager=x"), "application/apply-patch+yaml", apply).expect(201);
    let seen = asked(&webhook);
    assert_eq!(seen.len(), 3, "one review for each write: {seen:?}");
    let (create, update, applied) = (&seen[0], &seen[1], &seen[2]);
    assert_eq!((&create["operation"], &create["oldObject"]), (&json!("CREATE"), &Value::Null));
    let options = json!({"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1", "fieldManager": "tester"});
    assert_eq!(create["options"], options);
    let metadata = &create["object"]["metadata"];
    assert!(metadata["managedFields"].is_array() && metadata["uid"].is_null(), "{metadata}");
    assert_eq!((&update["options"]["kind"], &update["oldObject"]), (&json!("UpdateOptions"), &made));
    assert_eq!(update["object"]["data"], json!({"a": "b", "k": "v"}));
    assert_eq!((&applied["operation"], &applied["name"]), (&json!("CREATE"), &json!("b")));
}

#[test]
fn a_write_that_a_webhook_refuses_does_not_happen() {
    let webhook = but_probes(|review| match review["request"]["name"].as_str() {
        Some("teapot") => {
            let status = json!({"code": 418, "message": "short and stout"});
            answer(review, false, json!({"status": status, "warnings": ["tip me"]}))
        }
        Some("plain") => answer(review, false, json!({})),
        _ => answer(review, true, json!({"warnings": ["mind this"]})),
    });
    let data = DataDir::new();
    let server = data.start();
    let mut client = server.connect();
    client.post(MAPS, &map("plain")).expect(201);
    let rules = rule(&["UPDATE", "DELETE"], &[""], &["configmaps"]);
    configure(&mut client, VALIDATING, "v", &[hook("v.example.com", &rules, json!({}))], &webhook);
    let refused = client.post(MAPS, &map("teapot"));
    let text = "admission webhook \"v.example.com\" denied the request: short and stout";
    assert_eq!(refused.expect(418)["message"], text);
    assert_eq!(refused.header("warning"), Some("299 - \"tip me\""));
    let without = "admission webhook \"v.example.com\" denied the request without explanation";
    for done in [client.delete(&format!("{MAPS}/plain")), client.put(&format!("{MAPS}/plain"), &map("plain"))] {
        assert_eq!(done.expect(400)["message"], without);
    }
    assert_eq!(client.get(&format!("{MAPS}/teapot")).status, 404);
    client.get(&format!("{MAPS}/plain")).expect(200);
    let allowed = client.post(&format!("{MAPS}?dryRun=All"), &map("a"));
    allowed.expect(201);
    assert_eq!(allowed.header("warning"), Some("299 - \"mind this\""));
    let seen = asked(&webhook);
    assert_eq!(seen.last().map(|request| &request["dryRun"]), Some(&json!(true)));
}

#[test]
fn webhooks_receive_every_kind_of_write() {
    let (data, webhook) = (DataDir::new(), but_probes(|review| answer(review, true, json!({}))));
    let server = data.start();
    let mut client = server.connect_for_pods();
    let every = rule(&["*"], &["*"], &["*/*"]);
    let hooks = [hook("v.example.com", &every, json!({"namespaceSelector": {}}))];
    configure(&mut client, VALIDATING, "v", &hooks, &webhook);
    let mut begun = webhook.asked().len();
    let mut seen = |webhook: &Webhook| -> Vec<String> {
        let all = webhook.asked();
        let new = all[begun..].iter().map(|(_, review)| &review["request"]).filter(|request| {
            // Excludes writes of controllers, which run at the same time, and probes.
            request["userInfo"]["username"] == "kubernetes-admin" && !is_ignored_request(request)
        });
        let text = |value: &Value| value.as_str().unwrap_or("").to_owned();
        let lines: Vec<String> = new
            .map(|request| {
                let (operation, resource) = (text(&request["operation"]), text(&request["resource"]["resource"]));
                let (part, kind, name) =
                    (text(&request["subResource"]), text(&request["kind"]["kind"]), text(&request["name"]));
                format!("{operation} {resource}/{part} {kind} {name}")
            })
            .collect();
        begun = all.len();
        lines
    };
    client.post("/api/v1/namespaces/default/serviceaccounts", &json!({"metadata": {"name": "s"}})).expect(201);
    let token = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    client.post("/api/v1/namespaces/default/serviceaccounts/s/token", &token).expect(201);
    assert_eq!(
        seen(&webhook),
        ["CREATE serviceaccounts/ ServiceAccount s", "CREATE serviceaccounts/token TokenRequest s"]
    );
    let pod = json!({"metadata": {"name": "p"}, "spec": {
        "containers": [{"name": "c", "image": "i"}], "serviceAccountName": "s", "nodeName": "n"
    }});
    client.post(PODS, &pod).expect(201);
    assert_eq!(seen(&webhook), ["CREATE pods/ Pod p"]);
    client.post(&format!("{PODS}/p/exec?command=sh&container=c"), &json!({}));
    assert_eq!(seen(&webhook), ["CONNECT pods/exec PodExecOptions p"]);
    let connect = webhook.asked().last().map(|(_, review)| review["request"].clone()).unwrap_or_default();
    let options = json!({"kind": "PodExecOptions", "apiVersion": "v1", "container": "c", "command": ["sh"]});
    assert_eq!((&connect["object"], &connect["options"]), (&options, &Value::Null));
    let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}});
    client.post(&format!("{PODS}/p/eviction"), &eviction).expect(201);
    assert_eq!(seen(&webhook), ["CREATE pods/eviction Eviction p"]);
    let status = br#"{"status": {"message": "m"}}"#;
    client.request("PATCH", &format!("{PODS}/p/status"), "application/merge-patch+json", status).expect(200);
    assert_eq!(seen(&webhook), ["UPDATE pods/status Pod p"]);
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    let labels = json!({"a": "b"});
    let selector = json!({"matchLabels": labels});
    let deployment = json!({"metadata": {"name": "d"}, "spec": {"replicas": 0, "selector": selector, "template": {
        "metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}
    }}});
    client.post(deployments, &deployment).expect(201);
    let scale = br#"{"spec": {"replicas": 3}}"#;
    client.request("PATCH", &format!("{deployments}/d/scale"), "application/merge-patch+json", scale).expect(200);
    assert_eq!(seen(&webhook), ["CREATE deployments/ Deployment d", "UPDATE deployments/scale Scale d"]);
    let scaled = webhook.asked().last().map(|(_, review)| review["request"].clone()).unwrap_or_default();
    assert_eq!((&scaled["object"]["spec"]["replicas"], &scaled["oldObject"]["kind"]), (&json!(3), &json!("Scale")));
    for name in ["x", "y"] {
        client.post(MAPS, &map(name)).expect(201);
    }
    client.delete(&format!("{MAPS}/x")).expect(200);
    client.delete(MAPS).expect(200);
    let collected = "DELETE configmaps/ ConfigMap ";
    let lines = seen(&webhook);
    assert_eq!(
        lines[..3],
        ["CREATE configmaps/ ConfigMap x", "CREATE configmaps/ ConfigMap y", "DELETE configmaps/ ConfigMap x"]
    );
    assert!(!lines[3..].is_empty() && lines[3..].iter().all(|line| line == collected), "{lines:?}");
    client.delete(&format!("{VALIDATING}/v")).expect(200);
    assert_eq!(seen(&webhook), [""; 0], "no webhook sees configurations");
}

#[test]
fn webhooks_are_called_in_order_and_again_after_changes() {
    let webhook = but_probes(|review| {
        let labels = &review["request"]["object"]["metadata"]["labels"];
        match labels.as_object().map_or(0, |labels| labels.len()) {
            0 => answer(review, true, add_label("first")),
            1 => answer(review, true, patch(&json!([{"op": "add", "path": "/metadata/labels/second", "value": "x"}]))),
            _ => answer(review, true, json!({})),
        }
    });
    let data = DataDir::new();
    let server = data.start();
    let mut client = server.connect();
    let conditions = json!([{"name": "c", "expression": "request.name != 'skipped'"}]);
    let hooks = [
        hook("a.example.com", &json!([]), json!({"reinvocationPolicy": "IfNeeded", "matchConditions": conditions})),
        hook("b.example.com", &json!([]), json!({"matchConditions": conditions})),
    ];
    configure(&mut client, MUTATING, "m", &hooks, &webhook);
    let made = client.post(MAPS, &map("a")).expect(201);
    assert_eq!(made["metadata"]["labels"], json!({"first": "outside", "second": "x"}));
    assert_eq!(asked(&webhook).len(), 3, "the first webhook is called again");
    client.post(MAPS, &map("skipped")).expect(201);
    assert_eq!(asked(&webhook).len(), 3, "its match conditions do not hold");
}

#[test]
fn a_webhook_receives_objects_in_its_own_version() {
    let (data, webhook) = (DataDir::new(), but_probes(|review| answer(review, true, add_label("made"))));
    let server = data.start();
    let mut client = server.connect();
    let rules = json!([{
        "operations": ["CREATE"], "apiGroups": ["autoscaling"], "apiVersions": ["v1"],
        "resources": ["horizontalpodautoscalers"]
    }]);
    configure(&mut client, MUTATING, "m", &[hook("m.example.com", &rules, json!({}))], &webhook);
    let scaler = json!({"metadata": {"name": "a"}, "spec": {
        "maxReplicas": 2, "scaleTargetRef": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}
    }});
    let made = client.post("/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers", &scaler).expect(201);
    assert_eq!(
        (&made["apiVersion"], &made["metadata"]["labels"]["made"]),
        (&json!("autoscaling/v2"), &json!("outside"))
    );
    let seen = asked(&webhook).remove(0);
    assert_eq!((&seen["kind"]["version"], &seen["requestKind"]["version"]), (&json!("v1"), &json!("v2")));
    assert_eq!(seen["object"]["apiVersion"], "autoscaling/v1");
}

#[test]
fn the_old_object_is_what_is_stored() {
    let (data, webhook) = (DataDir::new(), but_probes(|review| answer(review, true, json!({}))));
    let server = data.start();
    let mut client = server.connect();
    let rules = rule(&["UPDATE", "DELETE"], &[""], &["configmaps"]);
    configure(&mut client, MUTATING, "m", &[hook("m.example.com", &rules, json!({}))], &webhook);
    configure(&mut client, VALIDATING, "v", &[hook("v.example.com", &rules, json!({}))], &webhook);
    let path = format!("{MAPS}/a");
    let (merge, apply) = ("application/merge-patch+json", "application/apply-patch+yaml");
    let put = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"forged": "yes"},
        "metadata": {"name": "a", "labels": {"forged": "yes"}, "generation": 7, "managedFields": []}});
    let applied = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"c": "d"}});
    for (method, at, media, body) in [
        ("PUT", &*path, "application/json", put.to_string()),
        ("PATCH", &path, merge, json!({"data": {"a": "b"}}).to_string()),
        ("PATCH", &format!("{path}?fieldManager=x"), apply, applied.to_string()),
        ("DELETE", &path, "application/json", String::new()),
        ("DELETE", MAPS, "application/json", String::new()),
    ] {
        let mut fresh = map("a");
        fresh["data"] = json!({"k": "v"});
        client.post(MAPS, &fresh);
        let (stored, before) = (client.get(&path).expect(200), asked(&webhook).len());
        client.request(method, at, media, body.as_bytes()).expect(200);
        let all = asked(&webhook);
        let own = all[before..].iter().filter(|request| request["oldObject"]["metadata"]["name"] == "a");
        let old: Vec<&Value> = own.map(|request| &request["oldObject"]).collect();
        assert_eq!(old, [&stored, &stored], "{method} {at}");
    }
}

#[test]
fn a_webhook_may_drop_but_not_change_kind_and_version() {
    let webhook = but_probes(|review| match review["request"]["name"].as_str() {
        Some("nameless") => answer(review, true, patch(&json!([{"op": "remove", "path": "/kind"}]))),
        Some("other") => answer(review, true, patch(&json!([{"op": "replace", "path": "/kind", "value": "Secret"}]))),
        Some("odd") => answer(review, true, patch(&json!([{"op": "frob", "path": "/data", "value": 1}]))),
        _ => answer(review, true, patch(&json!([{"op": "replace", "path": "/apiVersion", "value": "apps/v1"}]))),
    });
    let data = DataDir::new();
    let server = data.start();
    let mut client = server.connect();
    configure(&mut client, MUTATING, "m", &[hook("m.example.com", &json!([]), json!({}))], &webhook);
    assert_eq!(client.post(MAPS, &map("nameless")).expect(201)["kind"], "ConfigMap");
    let other = client.post(MAPS, &map("other")).expect(500);
    let converting = "converting (v1.Secret) to (core.ConfigMap): unknown conversion";
    assert_eq!((&other["message"], &other["reason"]), (&json!(converting), &Value::Null));
    let version = client.post(MAPS, &map("version")).expect(500);
    let unknown = "no kind \"ConfigMap\" is registered for version \"apps/v1\" in scheme \"pkg/runtime/scheme.go:111\"";
    assert_eq!(version["message"], format!("Internal error occurred: {unknown}"));
    assert_eq!(client.post(MAPS, &map("odd")).expect(500)["message"], "Internal error occurred: Unexpected kind: frob");
}

/// The error about a webhook that does not answer in time.
const LATE: &str = "context deadline exceeded";

/// Makes a webhook's answer to a review.
type Answers = fn(&Value) -> Reply;

#[test]
fn a_failing_webhook_refuses_or_is_ignored() {
    let faults: [(Answers, &str, bool); 12] = [
        (|_| Reply::Hang, LATE, true),
        (|_| Reply::Close, "EOF", true),
        (|_| Reply::of("500 Internal Server Error", "", "oh no"), "an error on the server (\"oh no\")", true),
        (|_| Reply::of("302 Found", "Location: https://127.0.0.1:1/\r\n", ""), "status code 302", true),
        (
            |_| Reply::of("200 OK", "Content-Type: text/html\r\n", "<html>"),
            "cannot unmarshal string into Go value",
            true,
        ),
        (|_| Reply::Endless(50 << 20), "response body too large", true),
        (
            |review| answer(review, true, json!({"auditAnnotations": {"a": 1}})),
            "cannot unmarshal number into Go struct field AdmissionResponse.response.auditAnnotations of type string",
            true,
        ),
        (|review| answer(review, true, json!({"uid": "x"})), "got \"x\"", true),
        (
            |review| answer(review, true, json!({"allowed": "yes"})),
            "cannot unmarshal string into Go struct field",
            true,
        ),
        (|_| Reply::Document(json!({"kind": "X"})), "no kind \"X\" is registered for version", true),
        (|review| answer(review, true, json!({"patch": "W10="})), "but not response.patchType", true),
        (
            |review| answer(review, true, patch(&json!([{"op": "remove", "path": "/metadata/none"}]))),
            "Unable to remove nonexistent key",
            false,
        ),
    ];
    let data = DataDir::new();
    let server = data.start();
    let mut client = server.connect();
    for (at, (fault, expected, may_be_ignored)) in faults.into_iter().enumerate() {
        let webhook = but_probes(fault);
        let seconds = if expected == LATE { 1 } else { 30 };
        let limited = |policy: &str| json!({"timeoutSeconds": seconds, "failurePolicy": policy});
        let name = format!("fail-{at}");
        configure(&mut client, MUTATING, &name, &[hook("m.example.com", &json!([]), limited("Fail"))], &webhook);
        let error = client.post(MAPS, &map(&format!("refused-{at}"))).expect(500);
        let message = error["message"].as_str().unwrap_or_default();
        assert!(message.starts_with("Internal error occurred: ") && message.contains(expected), "{message}");
        client.delete(&format!("{MUTATING}/{name}")).expect(200);
        let (name, hooks) = (format!("ignore-{at}"), [hook("m.example.com", &json!([]), limited("Ignore"))]);
        configure(&mut client, MUTATING, &name, &hooks, &webhook);
        let expected = if may_be_ignored { 201 } else { 500 };
        client.post(MAPS, &map(&format!("ignored-{at}"))).expect(expected);
        client.delete(&format!("{MUTATING}/{name}")).expect(200);
    }
}

#[test]
fn a_webhook_cannot_change_the_identity_of_an_object() {
    let webhook = but_probes(|review| {
        let text = |name: &str| review["request"]["object"]["data"][name].as_str().map(str::to_owned);
        let operations: Vec<Value> = ["name", "namespace", "uid"]
            .iter()
            .filter_map(|field| {
                Some(json!({"op": "replace", "path": format!("/metadata/{field}"), "value": text(field)?}))
            })
            .collect();
        let is_none = operations.is_empty();
        answer(review, true, if is_none { json!({}) } else { patch(&json!(operations)) })
    });
    let data = DataDir::new();
    let server = data.start();
    let mut client = server.connect();
    let rules = rule(&["UPDATE"], &[""], &["configmaps"]);
    configure(&mut client, MUTATING, "m", &[hook("m.example.com", &rules, json!({}))], &webhook);
    let made = client.post(MAPS, &map("a")).expect(201);
    for (field, code) in [("name", 422), ("namespace", 400), ("uid", 422)] {
        let change = json!({"data": {field: "other"}}).to_string();
        let path = format!("{MAPS}/a");
        let refused = client.request("PATCH", &path, "application/merge-patch+json", change.as_bytes());
        refused.expect(code);
    }
    assert_eq!(client.get(&format!("{MAPS}/a")).expect(200), made);
}

#[test]
fn a_webhook_cannot_forge_who_requests_a_certificate() {
    let forged = json!([
        {"op": "add", "path": "/spec/username", "value": "somebody"},
        {"op": "add", "path": "/spec/groups", "value": ["system:nodes"]},
    ]);
    let webhook = but_probes(move |review| answer(review, true, patch(&forged)));
    let data = DataDir::new();
    let server = data.start();
    let mut client = server.connect();
    let group = "certificates.k8s.io";
    let rules = rule(&["CREATE"], &[group], &["certificatesigningrequests"]);
    configure(&mut client, MUTATING, "m", &[hook("m.example.com", &rules, json!({}))], &webhook);
    let request = json!({
        "metadata": {"name": "r"},
        "spec": {
            "request": STANDARD.encode(include_str!("request.pem")), "signerName": "example.com/signer",
            "usages": ["client auth"],
        },
    });
    let made = client.post(&format!("/apis/{group}/v1/certificatesigningrequests"), &request).expect(201);
    assert_eq!(asked(&webhook).len(), 1);
    assert_eq!(made["spec"]["username"], "kubernetes-admin");
    let groups = made["spec"]["groups"].as_array().expect("groups");
    assert!(!groups.contains(&json!("system:nodes")), "{made}");
}

#[test]
fn a_webhook_cannot_slip_permissions_into_a_role() {
    let rules = json!([{"op": "add", "path": "/rules", "value": [
        {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
    ]}]);
    let webhook = but_probes(move |review| answer(review, true, patch(&rules)));
    let data = DataDir::new();
    let server = data.start();
    let mut client = server.connect();
    let group = "rbac.authorization.k8s.io";
    let roles = format!("/apis/{group}/v1/namespaces/default/roles");
    let role = |name: &str, rules: Value| json!({"metadata": {"name": name}, "rules": rules});
    let creates = json!([{"apiGroups": [group], "resources": ["roles"], "verbs": ["create"]}]);
    client.post(&roles, &role("creates", creates)).expect(201);
    let binding = json!({
        "metadata": {"name": "ann"}, "roleRef": {"apiGroup": group, "kind": "Role", "name": "creates"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": "ann"}],
    });
    client.post(&format!("/apis/{group}/v1/namespaces/default/rolebindings"), &binding).expect(201);
    let by_ann = |client: &mut Connection, name: &str| {
        let headers = [("Content-Type", "application/json"), ("Impersonate-User", "ann")];
        let body = role(name, json!([])).to_string();
        client.call("POST", &roles, &headers, body.as_bytes()).expect("an answer")
    };
    let deadline = Instant::now() + PATIENCE;
    while by_ann(&mut client, "allowed").status != 201 {
        assert!(Instant::now() < deadline, "ann may create roles");
        sleep(Duration::from_millis(20));
    }
    let matched = rule(&["CREATE"], &[group], &["roles"]);
    configure(&mut client, MUTATING, "m", &[hook("m.example.com", &matched, json!({}))], &webhook);
    let refused = by_ann(&mut client, "slipped").expect(403);
    let message = refused["message"].as_str().expect("a message");
    assert!(message.contains("is attempting to grant RBAC permissions not currently held"), "{message}");
}

#[test]
fn a_webhook_that_answers_with_retry_after_is_called_again() {
    let times = AtomicUsize::new(0);
    let webhook = but_probes(move |review| match times.fetch_add(1, Ordering::SeqCst) {
        0 => Reply::of("503 Service Unavailable", "Retry-After: 0\r\n", ""),
        1 => Reply::of("429 Too Many Requests", "Retry-After: 0\r\n", ""),
        _ => answer(review, true, json!({"warnings": ["said", "a\nb"]})),
    });
    let data = DataDir::new();
    let server = data.start();
    let mut client = server.connect();
    configure(&mut client, MUTATING, "m", &[hook("m.example.com", &json!([]), json!({}))], &webhook);
    let made = client.post(MAPS, &map("a"));
    assert_eq!((made.status, asked(&webhook).len()), (201, 3), "{}", made.text());
    assert_eq!(made.header("warning"), Some("299 - \"said\""));
}

#[test]
fn reviews_show_a_write_as_of_their_phase() {
    let (data, webhook) = (DataDir::new(), but_probes(|review| answer(review, true, json!({}))));
    let server = data.start();
    let mut client = server.connect();
    let rules = json!([{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"],
        "resources": ["namespaces", "serviceaccounts/token", "deployments/scale"]}]);
    configure(&mut client, MUTATING, "m", &[hook("m.example.com", &rules, json!({}))], &webhook);
    configure(&mut client, VALIDATING, "v", &[hook("v.example.com", &rules, json!({}))], &webhook);
    let seen = |operation: &str, subresource: &str, phase: &str| {
        let all = webhook.asked().into_iter().filter(|(path, _)| path.starts_with(phase));
        let mut requests = all.map(|(_, review)| review["request"].clone());
        let part = if subresource.is_empty() { Value::Null } else { json!(subresource) };
        let found =
            requests.find(|of| of["operation"] == operation && of["subResource"] == part && !is_ignored_request(of));
        found.expect("a review")
    };
    let space = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}});
    let space = client.post("/api/v1/namespaces", &space).expect(201);
    client.delete("/api/v1/namespaces/x").expect(200);
    assert_eq!(seen("DELETE", "", "/v")["options"]["preconditions"]["uid"], space["metadata"]["uid"]);
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "s"}});
    let account = client.post("/api/v1/namespaces/default/serviceaccounts", &account).expect(201);
    client.post("/api/v1/namespaces/default/serviceaccounts/s/token", &json!({})).expect(201);
    assert!(seen("CREATE", "token", "/m")["object"]["metadata"]["uid"].is_null());
    let finished = &seen("CREATE", "token", "/v")["object"]["metadata"];
    assert_eq!((&finished["name"], &finished["uid"]), (&json!("s"), &account["metadata"]["uid"]));
    let other = json!({"metadata": {"uid": "u"}});
    client.post("/api/v1/namespaces/default/serviceaccounts/s/token", &other).expect(409);
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let spec = json!({"selector": {"matchLabels": {"a": "b"}}, "template": template});
    client.post(deployments, &json!({"metadata": {"name": "d"}, "spec": spec})).expect(201);
    let (path, merge) = (format!("{deployments}/d/scale"), "application/merge-patch+json");
    client.request("PATCH", &path, merge, br#"{"spec": {"replicas": 2}}"#).expect(200);
    let owners = &seen("UPDATE", "scale", "/m")["object"]["metadata"]["managedFields"];
    assert_eq!((&owners[0]["operation"], &owners[0]["subresource"]), (&json!("Update"), &json!("scale")));
    assert!(seen("UPDATE", "scale", "/v")["object"]["metadata"]["managedFields"].is_null());
}

fn is_ignored_request(request: &Value) -> bool {
    request["name"].as_str().is_some_and(|name| name.starts_with(PROBE) || name == OF_CONTROLLER)
}
