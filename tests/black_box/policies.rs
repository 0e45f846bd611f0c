//! Admission policies: they refuse, warn and change objects, with parameters of any kind, on every member.

use serde_json::{Value, json};

use crate::cluster::{Places, until};
use crate::support::{CONFIG_MAPS, Connection, DataDir, config_map_path};

const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
const BINDINGS: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings";
const MUTATING_POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies";
const MUTATING_BINDINGS: &str = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings";
const MERGE: &str = "application/merge-patch+json";

/// Match constraints for ConfigMaps.
fn config_maps() -> Value {
    json!({
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}},
        "resourceRules": [
            {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["configmaps"]},
        ],
    })
}

fn policy(name: &str, spec: Value) -> Value {
    let mut policy = json!({"metadata": {"name": name}, "spec": {"matchConstraints": config_maps()}});
    policy["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    policy
}

fn bind(client: &mut Connection, name: &str, spec: Value) {
    let mut binding = json!({"metadata": {"name": name}, "spec": {"policyName": name, "validationActions": ["Deny"]}});
    binding["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    client.create(BINDINGS, &binding);
}

fn config_map(name: &str, data: Value) -> Value {
    json!({"metadata": {"name": name}, "data": data})
}

/// Repeats a write until the answer has this status. Returns its body.
fn try_until(client: &mut Connection, object: &Value, status: u16) -> Value {
    let mut last = Value::Null;
    until(&format!("status {status} for {object}"), || {
        let answer = client.post(&format!("{CONFIG_MAPS}?dryRun=All"), object);
        last = answer.json();
        answer.status == status
    });
    last
}

#[test]
fn a_policy_applies_until_its_binding_is_deleted_and_after_a_restart() {
    let data = DataDir::new();
    let server = data.start();
    let mut client = server.connect();
    let size = json!({"name": "size", "expression": "has(object.data) ? size(object.data) : 0"});
    let validation =
        json!({"expression": "variables.size < 2", "messageExpression": "'has ' + string(variables.size)"});
    let spec = json!({"variables": [size], "validations": [validation]});
    client.post(POLICIES, &policy("small", spec)).expect(201);
    let (small, big) = (config_map("a", json!({"a": "b"})), config_map("a", json!({"a": "b", "c": "d"})));
    client.post(&format!("{CONFIG_MAPS}?dryRun=All"), &big).expect(201);
    bind(&mut client, "small", json!({}));
    let refused = try_until(&mut client, &big, 422);
    let message = "ValidatingAdmissionPolicy 'small' with binding 'small' denied request: has 2";
    assert_eq!(refused["message"], format!("configmaps \"a\" is forbidden: {message}"));
    assert_eq!(refused["details"]["causes"][0]["message"], message);
    client.post(CONFIG_MAPS, &small).expect(201);
    let patch = br#"{"data": {"c": "d"}}"#;
    client.request("PATCH", &config_map_path("a"), MERGE, patch).expect(422);

    drop(client);
    server.terminate();
    let server = data.start();
    let mut client = server.connect();
    client.request("PATCH", &config_map_path("a"), MERGE, patch).expect(422);

    let warns = br#"{"spec": {"validationActions": ["Warn", "Audit"]}}"#;
    client.request("PATCH", &format!("{BINDINGS}/small"), MERGE, warns).expect(200);
    try_until(&mut client, &config_map("b", json!({"a": "b", "c": "d"})), 201);
    let warned = client.request("PATCH", &config_map_path("a"), MERGE, patch);
    assert_eq!(warned.status, 200);
    let warning = "299 - \"Validation failed for ValidatingAdmissionPolicy 'small' with binding 'small': has 2\"";
    assert_eq!(warned.header("warning"), Some(warning));
    let page = client.get("/metrics").text();
    assert!(page.contains("apiserver_validating_admission_policy_check_total{"), "no checks in {page}");
}

#[test]
fn evaluation_errors_follow_the_failure_policy() {
    let data = DataDir::new();
    let server = data.start();
    let mut client = server.connect();
    client.post(POLICIES, &policy("gold", json!({"validations": [{"expression": "object.data.tier == 'gold'"}]})));
    bind(&mut client, "gold", json!({}));
    let refused = try_until(&mut client, &config_map("a", json!({})), 422);
    let why = "expression 'object.data.tier == 'gold'' resulted in error: no such key: ";
    assert!(refused["message"].as_str().unwrap().contains(why), "{refused}");
    let patch = br#"{"spec": {"failurePolicy": "Ignore"}}"#;
    client.request("PATCH", &format!("{POLICIES}/gold"), MERGE, patch).expect(200);
    try_until(&mut client, &config_map("a", json!({})), 201);
    client.post(&format!("{CONFIG_MAPS}?dryRun=All"), &config_map("a", json!({"tier": "tin"}))).expect(422);
    // Policies and bindings are not themselves subject to policies.
    client.delete(&format!("{BINDINGS}/gold")).expect(200);
    try_until(&mut client, &config_map("a", json!({"tier": "tin"})), 201);
}

#[test]
fn parameters_are_objects_of_any_kind() {
    let data = DataDir::new();
    let server = data.start();
    let mut client = server.connect();
    let spec = json!({
        "paramKind": {"apiVersion": "example.com/v1", "kind": "Limit"},
        "validations": [{"expression": "size(object.data) <= params.spec.most"}],
    });
    client.post(POLICIES, &policy("limited", spec)).expect(201);
    bind(&mut client, "limited", json!({"paramRef": {"name": "l", "parameterNotFoundAction": "Deny"}}));
    let (one, two) = (config_map("a", json!({"a": "b"})), config_map("a", json!({"a": "b", "c": "d"})));
    let refused = try_until(&mut client, &one, 422);
    let unknown = "failed to configure policy: failed to find resource referenced by paramKind: \
        'example.com/v1, Kind=Limit'";
    assert!(refused["message"].as_str().unwrap().contains(unknown), "{refused}");

    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let definition = json!({
        "metadata": {"name": "limits.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": "limits", "kind": "Limit"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}],
        },
    });
    client.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition).expect(201);
    until("no parameters", || {
        let refused = client.post(&format!("{CONFIG_MAPS}?dryRun=All"), &one).json();
        let why = "no params found for policy binding with `Deny` parameterNotFoundAction";
        refused["message"].as_str().unwrap_or_default().contains(why)
    });
    let limits = "/apis/example.com/v1/namespaces/default/limits";
    let limit = json!({
        "apiVersion": "example.com/v1", "kind": "Limit", "metadata": {"name": "l"}, "spec": {"most": 1},
    });
    until("a limit", || client.post(limits, &limit).status == 201);
    try_until(&mut client, &one, 201);
    let refused = client.post(&format!("{CONFIG_MAPS}?dryRun=All"), &two).expect(422);
    assert!(refused["message"].as_str().unwrap().ends_with("failed expression: size(object.data) <= params.spec.most"));
}

#[test]
fn policies_change_objects_in_order() {
    let data = DataDir::new();
    let server = data.start();
    let mut client = server.connect();
    let mutation = |name: &str, policy: &str, change: Value| {
        let mut spec = json!({"failurePolicy": "Fail", "reinvocationPolicy": policy, "mutations": [change]});
        spec["matchConstraints"] = config_maps();
        json!({"metadata": {"name": name}, "spec": spec})
    };
    let counts = "Object{data: {'keys': string(size(object.data))}}";
    let apply = json!({"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": counts}});
    let adds = "[JSONPatch{op: 'add', path: '/data/added', value: 'x'}]";
    let patch = json!({"patchType": "JSONPatch", "jsonPatch": {"expression": adds}});
    for object in [mutation("a-counts", "IfNeeded", apply), mutation("b-adds", "Never", patch)] {
        let name = object["metadata"]["name"].as_str().unwrap();
        client.post(MUTATING_POLICIES, &object).expect(201);
        let binding = json!({"metadata": {"name": name}, "spec": {"policyName": name}});
        client.post(MUTATING_BINDINGS, &binding).expect(201);
    }
    let path = format!("{CONFIG_MAPS}?dryRun=All");
    let object = config_map("a", json!({"a": "b"}));
    until("both policies", || {
        let data = client.post(&path, &object).expect(201)["data"].clone();
        data["added"] == "x" && !data["keys"].is_null()
    });
    // The first policy is evaluated again because the second one changed the object.
    let created = client.post(CONFIG_MAPS, &object).expect(201);
    assert_eq!(created["data"], json!({"a": "b", "added": "x", "keys": "3"}));
    let stored = client.get(&config_map_path("a")).expect(200);
    assert_eq!(stored["data"], created["data"]);
    let page = client.get("/metrics").text();
    assert!(page.contains("apiserver_mutating_admission_policy_check_total{"), "no checks in {page}");
}

#[test]
fn policies_are_checked_against_the_kinds_that_they_name() {
    let data = DataDir::new();
    let server = data.start();
    let mut client = server.connect();
    let validations = json!([{"expression": "object.data.a == 'b'"}, {"expression": "object.datum == 1"}]);
    client.post(POLICIES, &policy("typed", json!({"validations": validations}))).expect(201);
    let path = format!("{POLICIES}/typed");
    until("the policy is checked", || client.get(&path).json()["status"]["observedGeneration"] == 1);
    let warnings = client.get(&path).json()["status"]["typeChecking"]["expressionWarnings"].clone();
    let wanted = "/v1, Kind=ConfigMap: ERROR: <input>:1:7: undefined field 'datum'\n | object.datum == 1\n | ......^\n";
    assert_eq!(warnings, json!([{"fieldRef": "spec.validations[1].expression", "warning": wanted}]));
}

#[test]
fn a_policy_applies_on_every_member() {
    let places = Places::new();
    let servers = places.start_all();
    let mut client = servers[0].connect();
    let spec = json!({"validations": [{"expression": "!('no' in object.data)"}]});
    client.create(POLICIES, &policy("everywhere", spec));
    bind(&mut client, "everywhere", json!({}));
    for server in &servers {
        try_until(&mut server.connect(), &config_map("a", json!({"no": "x"})), 422);
    }
}

/// Lets ann create roles and read ConfigMaps.
fn allow_ann(client: &mut Connection) {
    let roles = json!({"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"], "verbs": ["create"]});
    let maps = json!({"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]});
    let role = json!({"metadata": {"name": "writes-roles"}, "rules": [roles, maps]});
    let binding = json!({
        "metadata": {"name": "writes-roles"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "writes-roles"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "ann"}],
    });
    client.post("/apis/rbac.authorization.k8s.io/v1/clusterroles", &role).expect(201);
    client.post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", &binding).expect(201);
}

#[test]
fn a_policy_adds_no_permission_that_the_writer_of_a_role_lacks() {
    let data = DataDir::new();
    let server = data.start();
    let mut client = server.connect();
    allow_ann(&mut client);
    let path = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles?dryRun=All";
    let rule = json!({"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]});
    let role = json!({"metadata": {"name": "a"}, "rules": [rule]}).to_string();
    let headers = [("Impersonate-User", "ann"), ("Content-Type", "application/json")];
    let mut create = || client.call("POST", path, &headers, role.as_bytes()).expect("an answer");
    until("ann may write the role", || create().status == 201);

    let rule = "{'apiGroups': [''], 'resources': ['secrets'], 'verbs': ['get']}";
    let expression = format!("[JSONPatch{{op: 'add', path: '/rules/-', value: {rule}}}]");
    let (groups, resources) = (["rbac.authorization.k8s.io"], ["roles"]);
    let rules = json!([{"apiGroups": groups, "apiVersions": ["v1"], "operations": ["CREATE"], "resources": resources}]);
    let policy = json!({
        "metadata": {"name": "adds"},
        "spec": {
            "failurePolicy": "Fail", "reinvocationPolicy": "Never", "matchConstraints": {"resourceRules": rules},
            "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}],
        },
    });
    let mut admin = server.connect();
    admin.post(MUTATING_POLICIES, &policy).expect(201);
    let binding = json!({"metadata": {"name": "adds"}, "spec": {"policyName": "adds"}});
    admin.post(MUTATING_BINDINGS, &binding).expect(201);
    let mut refused = Value::Null;
    until("the policy adds a permission that ann lacks", || {
        let answer = create();
        refused = answer.json();
        answer.status == 403
    });
    let message = refused["message"].as_str().unwrap();
    assert!(message.contains("attempting to grant RBAC permissions not currently held"), "{message}");
    assert!(message.contains("secrets"), "{message}");
}
