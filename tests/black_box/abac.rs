//! Policies in a file that let users make requests (the mode ABAC).

use std::fs;

use serde_json::{Value, json};

use crate::support::{DataDir, Server};

const REVIEWS: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
const RULES: &str = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
const POLICIES: &str = r#"
# version, kind, and what the policy allows
{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{"user":"reader","namespace":"default","resource":"pods","readonly":true}}
{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{"group":"team","namespace":"*","resource":"*","apiGroup":"apps"}}
{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{"user":"metrics","nonResourcePath":"/metrics*"}}
{"user":"old"}
"#;

/// Writes a file of policies. Returns the flag that names it.
fn policies(data: &DataDir, text: &str) -> String {
    let file = data.path().with_extension("policies");
    fs::write(&file, text).expect("a file");
    format!("--authorization-policy-file={}", file.display())
}

/// Returns the status of a review of whether a user in a group may do something.
fn review(server: &Server, user: &str, group: &str, asked: &Value) -> Value {
    let mut spec = json!({"user": user, "groups": [group]});
    let kind = if asked.get("path").is_some() { "nonResourceAttributes" } else { "resourceAttributes" };
    spec[kind] = asked.clone();
    server.connect().post(REVIEWS, &json!({"spec": spec})).expect(201)["status"].clone()
}

#[test]
fn policies_of_a_file_let_users_make_requests() {
    let data = DataDir::new();
    let server = data.start_with(&["--authorization-mode=Node,RBAC,ABAC", &policies(&data, POLICIES)]);
    let pods = |verb: &str, namespace: &str| json!({"verb": verb, "namespace": namespace, "resource": "pods"});
    let deployments = json!({"verb": "delete", "namespace": "x", "group": "apps", "resource": "deployments"});
    let path = |path: &str| json!({"verb": "get", "path": path});
    let (allowed, refused) = (json!({"allowed": true}), json!({"allowed": false, "reason": "No policy matched."}));
    for (user, group, asked, expected) in [
        ("reader", "", pods("get", "default"), &allowed),
        ("reader", "", pods("delete", "default"), &refused),
        ("reader", "", pods("get", "other"), &refused),
        ("x", "team", deployments.clone(), &allowed),
        ("x", "teams", deployments, &refused),
        ("metrics", "", path("/metrics/slis"), &allowed),
        ("metrics", "", path("/logs"), &refused),
        ("old", "", pods("deletecollection", ""), &allowed),
        ("old", "", path("/logs"), &allowed),
    ] {
        assert_eq!(&review(&server, user, group, &asked), expected, "{user} {group} {asked}");
    }

    let answer = |method: &str, path: &str, body: &Value| {
        let headers = [("Impersonate-User", "reader"), ("Content-Type", "application/json")];
        let body = if body.is_null() { String::new() } else { body.to_string() };
        server.connect().call(method, path, &headers, body.as_bytes()).expect("an answer")
    };
    answer("GET", "/api/v1/namespaces/default/pods", &Value::Null).expect(200);
    let refusal = answer("GET", "/api/v1/namespaces/default/secrets/a", &Value::Null).expect(403);
    let why = "secrets \"a\" is forbidden: User \"reader\" cannot get resource \"secrets\" in API group \"\" in the \
               namespace \"default\": No policy matched.";
    assert_eq!(refusal["message"], why);
    let rules = answer("POST", RULES, &json!({"spec": {"namespace": "default"}})).expect(201);
    let of_policy = json!({"verbs": ["get", "list", "watch"], "apiGroups": [""], "resources": ["pods"]});
    assert_eq!(rules["status"]["resourceRules"].as_array().and_then(|all| all.last()), Some(&of_policy), "{rules}");
}

#[test]
fn policies_that_cannot_be_used_end_the_start() {
    let data = DataDir::new();
    let (good, mode) = (policies(&data, POLICIES), "--authorization-mode=RBAC,ABAC");
    for (flags, why) in [(vec![mode], "need each other"), (vec![&*good], "need each other")] {
        let refusal = data.try_start_with(&flags).err().expect("a refusal");
        assert!(refusal.messages.contains(why), "{flags:?}: {}", refusal.messages);
    }
    let wrong = policies(&data, "{}\n{\"user\": 5}\n");
    let refusal = data.try_start_with(&[mode, &wrong]).err().expect("a refusal");
    let why = "line 2: {\"user\": 5}: json: cannot unmarshal number into Go struct field Policy.user of type string";
    assert!(refusal.messages.contains(why), "{}", refusal.messages);
}

#[test]
fn a_file_of_authorizers_can_name_policies() {
    let data = DataDir::new();
    let file = data.path().with_extension("authorizers");
    let head = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\nauthorizers:\n";
    fs::write(&file, format!("{head}- {{type: RBAC, name: rbac}}\n- {{type: ABAC, name: abac}}\n")).expect("a file");
    let config = format!("--authorization-config={}", file.display());
    let refusal = data.try_start_with(&[&config]).err().expect("a refusal");
    assert!(refusal.messages.contains("policy file not passed"), "{}", refusal.messages);
    let file = policies(&data, POLICIES);
    let refusal = data.try_start_with(&[&config, "--authorization-mode=ABAC", &file]).err().expect("a refusal");
    assert!(refusal.messages.contains("excludes authorization-mode"), "{}", refusal.messages);
    let server = data.start_with(&[&config, &file]);
    let asked = json!({"verb": "get", "namespace": "default", "resource": "pods"});
    assert_eq!(review(&server, "reader", "", &asked), json!({"allowed": true}));
}
