//! Webhooks that find the users of tokens and authorize their requests.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use serde_json::{Value, json};

use crate::cluster::until;
use crate::support::called::send;
use crate::support::{Connection, DataDir, Reply, Server, Webhook};

const SELF: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
const TOKENS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";
const ACCESS: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// Writes a kubeconfig for a server, and returns its path.
pub fn kubeconfig(data: &DataDir, name: &str, server: &str, bundle: &str) -> PathBuf {
    let folder = data.path().with_file_name("files");
    fs::create_dir_all(&folder).expect("a directory");
    let path = folder.join(name);
    let cluster = json!({"server": server, "certificate-authority-data": bundle});
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": cluster}], "users": [{"name": "u", "user": {"token": "secret"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    });
    fs::write(&path, config.to_string()).expect("a file");
    path
}

fn of(data: &DataDir, name: &str, webhook: &Webhook) -> PathBuf {
    kubeconfig(data, name, &format!("https://127.0.0.1:{}/ask", webhook.port()), webhook.bundle())
}

fn flag(name: &str, path: &Path) -> String {
    format!("--{name}={}", path.display())
}

/// Returns the status and the user of a token.
fn who(client: &mut Connection, token: &str) -> (u16, Value) {
    let bearer = format!("Bearer {token}");
    let answer = send(client, "POST", SELF, &[("Authorization", &bearer)], "{}");
    let user = if answer.status == 201 { answer.json()["status"]["userInfo"].clone() } else { Value::Null };
    (answer.status, user)
}

/// Starts a webhook that accepts the tokens `good-...`, and states why it refuses `bad-...`.
fn finder() -> Webhook {
    Webhook::start(|review| {
        let token = review["spec"]["token"].as_str().unwrap_or("");
        let status = match token.split('-').next() {
            Some("good") => json!({"authenticated": true, "user": {"username": token, "uid": "7", "groups": ["dev"],
                "extra": {"example.org/k": ["v"]}}}),
            Some("other") => json!({"authenticated": true, "user": {"username": token}, "audiences": ["elsewhere"]}),
            Some("bad") => json!({"authenticated": false, "error": "it is bad"}),
            Some("broken") => return Reply::of("404 Not Found", "", "no"),
            Some("slow") => {
                thread::sleep(std::time::Duration::from_millis(300));
                json!({"authenticated": true, "user": {"username": token}})
            }
            _ => json!({"authenticated": false}),
        };
        Reply::Document(json!({"apiVersion": review["apiVersion"], "kind": "TokenReview", "status": status}))
    })
}

#[test]
fn a_webhook_finds_the_users_of_tokens() {
    let (data, webhook) = (DataDir::new(), finder());
    let file = flag("authentication-token-webhook-config-file", &of(&data, "tokens", &webhook));
    let version = "--authentication-token-webhook-version=v1";
    let server = data.start_with(&[&file, version, "--api-audiences=api", "--api-audiences=more"]);
    let mut client = server.connect_anonymously();
    let (status, user) = who(&mut client, "good-ann");
    assert_eq!(status, 201);
    let found = json!({"username": "good-ann", "uid": "7", "groups": ["dev", "system:authenticated"],
        "extra": {"example.org/k": ["v"]}});
    assert_eq!(user, found);
    assert_eq!(who(&mut client, "good-ann").0, 201);
    let asked = webhook.asked();
    assert_eq!(asked.len(), 1, "the answer is kept: {asked:?}");
    let review = json!({
        "kind": "TokenReview", "apiVersion": "authentication.k8s.io/v1", "metadata": {},
        "spec": {"token": "good-ann", "audiences": ["api", "more"]}, "status": {"user": {}},
    });
    assert_eq!(asked[0], ("/ask?timeout=30s".to_owned(), review));
    assert_eq!(webhook.callers()[0].header("authorization"), ["Bearer secret"]);

    assert_eq!(who(&mut client, "unknown").0, 401);
    assert_eq!(who(&mut client, "unknown").0, 401);
    assert_eq!(webhook.asked().len(), 2, "that it is unknown is kept, too");
    assert_eq!(who(&mut client, "other-ann").0, 401, "it is meant for others");
    assert_eq!(who(&mut client, "broken").0, 401);
    until("the log has it", || server.messages().contains("the webhook for tokens could not be asked"));

    let mut admin = server.connect();
    let mut said = |token: &str, audiences: Value| {
        let review = json!({"spec": {"token": token, "audiences": audiences}});
        admin.post(TOKENS, &review).expect(201)["status"].clone()
    };
    let bad = said("bad-one", json!([]));
    assert_eq!(bad, json!({"user": {}, "error": "[invalid bearer token, it is bad]"}));
    let broken = said("broken", json!([]));
    assert_eq!(broken["error"], "[invalid bearer token, the server could not find the requested resource]");
    let meant = said("other-ann", json!(["elsewhere", "nowhere"]));
    assert_eq!((&meant["authenticated"], &meant["audiences"]), (&json!(true), &json!(["elsewhere"])));
    let metrics = admin.get("/metrics").text();
    assert!(metrics.contains("authentication_token_cache_request_total{status=\"hit\"} 2\n"), "{metrics}");
}

#[test]
fn equal_tokens_are_asked_about_once() {
    let (data, webhook) = (DataDir::new(), finder());
    let file = flag("authentication-token-webhook-config-file", &of(&data, "tokens", &webhook));
    let server = data.start_with(&[&file]);
    let clients: Vec<Connection> = (0..8).map(|_| server.connect_anonymously()).collect();
    let asking = clients.into_iter().map(|mut client| thread::spawn(move || who(&mut client, "slow-ann").0));
    let asking: Vec<_> = asking.collect();
    assert!(asking.into_iter().all(|one| one.join().expect("an answer") == 201));
    let asked = webhook.asked();
    assert_eq!(asked.len(), 1, "{asked:?}");
    assert_eq!(asked[0].1["apiVersion"], "authentication.k8s.io/v1beta1");
}

#[test]
fn unusable_webhooks_end_the_start() {
    let data = DataDir::new();
    let file = flag("authentication-token-webhook-config-file", &kubeconfig(&data, "w", "https://127.0.0.1:1", ""));
    for (flags, text) in [
        (vec!["--authentication-token-webhook-config-file=/nowhere"], "/nowhere"),
        (
            vec![&*file, "--authentication-token-webhook-version=v2"],
            "unsupported authentication webhook version \"v2\"",
        ),
        (vec!["--authorization-mode=Webhook"], "need each other"),
        (vec!["--authorization-webhook-config-file=/nowhere"], "need each other"),
        (vec!["--authorization-mode=Webhook", "--authorization-webhook-config-file=/nowhere"], "/nowhere"),
    ] {
        let refusal = data.try_start_with(&flags).err().expect("a refusal");
        assert!(refusal.messages.contains(text), "{flags:?}: {}", refusal.messages);
    }
}

/// Makes a request as a user whom the administrator impersonates.
fn acting(server: &Server, user: &str, method: &str, path: &str, body: &Value) -> (u16, String) {
    let headers = [("Impersonate-User", user), ("Content-Type", "application/json")];
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let answer = server.connect().call(method, path, &headers, body.as_bytes()).expect("an answer");
    (answer.status, answer.text())
}

/// Starts a webhook that decides by the name of the user, and has no opinion about unknown users.
fn decider() -> Webhook {
    Webhook::start(|review| {
        let status = match review["spec"]["user"].as_str().unwrap_or("") {
            "allowed" => json!({"allowed": true, "reason": "it is so"}),
            "denied" => json!({"allowed": false, "denied": true, "reason": "never"}),
            "both" => json!({"allowed": true, "denied": true}),
            "broken" => return Reply::of("404 Not Found", "", "no"),
            // Allows all requests of the test and all checks of plugins, except reading secrets, about which the policy
            // asks.
            "writer" => {
                let of = &review["spec"]["resourceAttributes"];
                json!({"allowed": of["resource"] == "configmaps" || of["verb"] == "escalate"
                    || of["group"] == "rbac.authorization.k8s.io" && of["verb"] == "create"})
            }
            _ => json!({"allowed": false, "reason": "who is that?"}),
        };
        Reply::Document(json!({"apiVersion": review["apiVersion"], "kind": "SubjectAccessReview", "status": status}))
    })
}

#[test]
fn a_webhook_decides_what_users_may_do() {
    let (data, webhook) = (DataDir::new(), decider());
    let file = flag("authorization-webhook-config-file", &of(&data, "access", &webhook));
    let server =
        data.start_with(&["--authorization-mode=Node,RBAC,Webhook", &file, "--authorization-webhook-version=v1"]);
    let list = format!("{MAPS}?fieldSelector=metadata.name%3Da&labelSelector=k+in+(v)");
    assert_eq!(acting(&server, "allowed", "GET", &list, &Value::Null).0, 200);
    let asked = webhook.asked();
    let review = json!({
        "kind": "SubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "metadata": {},
        "spec": {
            "resourceAttributes": {
                "namespace": "default", "verb": "list", "version": "v1", "resource": "configmaps", "name": "a",
                "fieldSelector": {"requirements": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]},
                "labelSelector": {"requirements": [{"key": "k", "operator": "In", "values": ["v"]}]},
            },
            "user": "allowed", "groups": ["system:authenticated"],
        },
        "status": {"allowed": false},
    });
    assert_eq!(asked.last(), Some(&("/ask?timeout=30s".to_owned(), review)));
    assert_eq!(acting(&server, "allowed", "GET", &list, &Value::Null).0, 200);
    assert_eq!(webhook.asked().len(), asked.len(), "the answer is kept");

    let (status, text) = acting(&server, "nobody", "GET", MAPS, &Value::Null);
    assert_eq!(status, 403);
    assert!(text.contains("in the namespace \\\"default\\\": who is that?"), "{text}");
    let (status, text) = acting(&server, "broken", "GET", MAPS, &Value::Null);
    assert_eq!(status, 500);
    let why = format!("Internal Server Error: \"{MAPS}\": the server could not find the requested resource\n");
    assert_eq!(text, why);

    let mut admin = server.connect();
    let mut review = |user: &str| {
        let attributes = json!({"verb": "get", "resource": "pods", "version": "v1", "namespace": "n"});
        let review = json!({"spec": {"user": user, "resourceAttributes": attributes}});
        admin.post(ACCESS, &review).expect(201)["status"].clone()
    };
    assert_eq!(review("allowed"), json!({"allowed": true, "reason": "it is so"}));
    assert_eq!(review("denied"), json!({"allowed": false, "denied": true, "reason": "never"}));
    assert_eq!(review("nobody"), json!({"allowed": false, "reason": "who is that?"}));
    let both = "webhook subject access review returned both allow and deny response";
    assert_eq!(review("both"), json!({"allowed": false, "denied": true, "evaluationError": both}));
    let broken = "the server could not find the requested resource";
    assert_eq!(review("broken"), json!({"allowed": false, "evaluationError": broken}));
    let rules = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
    let (status, text) = acting(&server, "allowed", "POST", rules, &json!({"spec": {"namespace": "n"}}));
    assert_eq!(status, 201, "{text}");
    assert!(text.contains("webhook authorizer does not support user rule resolution"), "{text}");
    let metrics = admin.get("/metrics").text();
    let evaluations = "apiserver_authorization_webhook_evaluations_total{name=\"default\",result=\"success\"}";
    assert!(metrics.contains(evaluations), "{metrics}");
    assert!(metrics.contains(
        "apiserver_authorization_decisions_total{type=\"Webhook\",name=\"default\",decision=\"denied\"} 2\n"
    ));
}

#[test]
fn a_webhook_is_asked_wherever_permissions_are() {
    let (data, webhook) = (DataDir::new(), decider());
    let file = flag("authorization-webhook-config-file", &of(&data, "access", &webhook));
    let plugins = "--enable-admission-plugins=OwnerReferencesPermissionEnforcement";
    let server = data.start_with(&["--authorization-mode=Webhook,RBAC", &file, plugins]);
    let mut admin = server.connect();

    // A role with permissions that the user lacks needs the verb escalate.
    let role = |name: &str| json!({"metadata": {"name": name}, "rules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]});
    let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    let (status, text) = acting(&server, "writer", "POST", roles, &role("by-webhook"));
    assert_eq!(status, 201, "{text}");

    // An expression of a policy asks the webhook, too.
    let expression = "authorizer.group('').resource('secrets').namespace('default').check('get').allowed()";
    let policy = json!({"metadata": {"name": "asks"}, "spec": {
        "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
            "resources": ["configmaps"]}]},
        "validations": [{"expression": expression, "message": "no secrets"}],
    }});
    let group = "/apis/admissionregistration.k8s.io/v1";
    admin.post(&format!("{group}/validatingadmissionpolicies"), &policy).expect(201);
    let binding = json!({"metadata": {"name": "asks"}, "spec": {"policyName": "asks", "validationActions": ["Deny"]}});
    admin.post(&format!("{group}/validatingadmissionpolicybindings"), &binding).expect(201);
    let map = |name: &str| json!({"metadata": {"name": name}});
    until("the policy holds", || acting(&server, "writer", "POST", MAPS, &map("probe")).0 == 422);
    let (status, text) = acting(&server, "allowed", "POST", MAPS, &map("a"));
    assert_eq!(status, 201, "{text}");
    let about = |resource: &str| {
        let asked = webhook.asked();
        let fits = |(_, review): &&(String, Value)| review["spec"]["resourceAttributes"]["resource"] == resource;
        asked.iter().filter(fits).count()
    };
    assert!(about("secrets") >= 2, "{:?}", webhook.asked());

    // So does a plugin: a user who sets an owner must be allowed to delete the object.
    let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "u"});
    let patch = json!({"metadata": {"ownerReferences": [owner]}});
    let headers = [("Impersonate-User", "writer"), ("Content-Type", "application/merge-patch+json")];
    let path = format!("{MAPS}/a");
    let patched = server.connect().call("PATCH", &path, &headers, patch.to_string().as_bytes()).expect("an answer");
    assert_eq!(patched.status, 200, "{}", patched.text());
    let verbs: Vec<Value> =
        webhook.asked().iter().map(|(_, review)| review["spec"]["resourceAttributes"]["verb"].clone()).collect();
    assert!(verbs.contains(&json!("delete")) && verbs.contains(&json!("escalate")), "{verbs:?}");
}

#[test]
fn a_file_names_the_authorizers() {
    let (data, webhook) = (DataDir::new(), decider());
    let access = of(&data, "access", &webhook);
    let file = data.path().with_file_name("files").join("authorizers");
    let write = |condition: &str, policy: &str| {
        let webhook = format!(
            "{{timeout: 3s, subjectAccessReviewVersion: v1, matchConditionSubjectAccessReviewVersion: v1, failurePolicy: \
             {policy}, matchConditions: [{{expression: \"{condition}\"}}], connectionInfo: {{type: KubeConfigFile, \
             kubeConfigFile: {}}}}}",
            access.display()
        );
        let head = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\nauthorizers:\n";
        let text = format!("{head}- {{type: Webhook, name: w, webhook: {webhook}}}\n- {{type: RBAC, name: rbac}}\n");
        fs::write(&file, text).expect("a file");
    };
    let config = flag("authorization-config", &file);
    write("request.user", "Deny");
    let refusal = data.try_start_with(&[&config]).err().expect("a refusal");
    let why = "authorizers[0].matchConditions[0].expression: Invalid value: \"request.user\": must evaluate to bool";
    assert!(refusal.messages.contains(why), "{}", refusal.messages);

    write("request.user != 'excluded'", "Deny");
    let server = data.start_with(&[&config]);
    assert_eq!(acting(&server, "allowed", "GET", MAPS, &Value::Null).0, 200);
    assert_eq!(webhook.asked()[0].0, "/ask?timeout=3s");
    assert_eq!(acting(&server, "denied", "GET", MAPS, &Value::Null).0, 403);
    assert_eq!(acting(&server, "broken", "GET", MAPS, &Value::Null).0, 500, "it cannot be decided");
    let asked = webhook.asked().len();
    assert_eq!(acting(&server, "excluded", "GET", MAPS, &Value::Null).0, 403);
    assert_eq!(webhook.asked().len(), asked, "a condition excludes that user");
    write("request.resourceAttributes.verb == 'list' && request.user != 'allowed'", "NoOpinion");
    until("the changed file is read", || acting(&server, "allowed", "GET", MAPS, &Value::Null).0 == 403);
}

#[test]
fn concurrent_requests_are_decided_by_a_slow_webhook() {
    let is_open = Arc::new(AtomicBool::new(false));
    let gate = Arc::clone(&is_open);
    let webhook = Webhook::start(move |review| {
        while !gate.load(Ordering::Relaxed) {
            thread::sleep(std::time::Duration::from_millis(5));
        }
        Reply::Document(json!({"apiVersion": review["apiVersion"], "kind": "SubjectAccessReview",
            "status": {"allowed": true}}))
    });
    let data = DataDir::new();
    let file = flag("authorization-webhook-config-file", &of(&data, "access", &webhook));
    let server = data.start_with(&["--authorization-mode=RBAC,Webhook", &file]);
    thread::scope(|scope| {
        let asking: Vec<_> = (0..4)
            .map(|number| {
                let (server, user) = (&server, format!("user-{number}"));
                scope.spawn(move || acting(server, &user, "GET", MAPS, &Value::Null).0)
            })
            .collect();
        until("all are asked", || webhook.asked().len() >= 4);
        // A request that needs no webhook does not wait.
        server.connect().get(MAPS).expect(200);
        is_open.store(true, Ordering::Relaxed);
        assert!(asking.into_iter().all(|one| one.join().expect("an answer") == 200));
    });
}

#[test]
fn a_short_timeout_does_not_switch_a_webhook_off() {
    let webhook = Webhook::start(move |review| {
        thread::sleep(std::time::Duration::from_millis(700));
        Reply::Document(json!({"apiVersion": review["apiVersion"], "kind": "SubjectAccessReview",
            "status": {"allowed": false, "denied": true}}))
    });
    let data = DataDir::new();
    let file = flag("authorization-webhook-config-file", &of(&data, "access", &webhook));
    let server = data.start_with(&["--authorization-mode=Webhook,RBAC", &file]);
    let roles = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
    let binding = json!({
        "metadata": {"name": "reader"}, "subjects": [{"kind": "User", "name": "ann"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
    });
    let mut admin = server.connect();
    admin.post(roles, &binding).expect(201);
    admin.post(MAPS, &json!({"metadata": {"name": "a"}})).expect(201);
    // If the webhook counted as failed, it would have no opinion, and the role would decide.
    for _ in 0..5 {
        let path = format!("{MAPS}/a?resourceVersion=0&timeout=100ms");
        let (status, text) = acting(&server, "ann", "GET", &path, &Value::Null);
        assert_eq!(status, 504, "{text}");
        let (status, text) = acting(&server, "ann", "DELETE", &format!("{MAPS}/a?timeout=100ms"), &Value::Null);
        assert_eq!(status, 504, "{text}");
    }
    admin.get(&format!("{MAPS}/a")).expect(200);
}

#[test]
fn questions_beyond_a_bound_are_refused_and_not_left_to_others() {
    // The webhook denies questions about the owner `last`, which comes after the owners that the server may ask about.
    let webhook = Webhook::start(move |review| {
        let of = &review["spec"]["resourceAttributes"];
        let denied = of["name"] == "last" || of["resource"] == "*";
        Reply::Document(json!({"apiVersion": review["apiVersion"], "kind": "SubjectAccessReview",
            "status": {"allowed": !denied, "denied": denied}}))
    });
    let data = DataDir::new();
    let file = flag("authorization-webhook-config-file", &of(&data, "access", &webhook));
    let plugin = "--enable-admission-plugins=OwnerReferencesPermissionEnforcement";
    let server = data.start_with(&["--authorization-mode=Webhook,RBAC", &file, plugin]);
    let owner = |name: String| json!({"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": name, "blockOwnerDeletion": true});
    let owned = |count: usize, last: &str| {
        let owners = (0..count).map(|number| owner(format!("o{number}"))).chain([owner(last.to_owned())]);
        json!({"metadata": {"name": format!("owned-{count}-{last}"), "ownerReferences": owners.collect::<Vec<_>>()}})
    };
    assert_eq!(acting(&server, "ann", "POST", MAPS, &owned(3, "fine")).0, 201);
    assert_eq!(acting(&server, "ann", "POST", MAPS, &owned(3, "last")).0, 403);
    let (status, text) = acting(&server, "ann", "POST", MAPS, &owned(400, "last"));
    assert_eq!(status, 403, "{text}");
    assert!(webhook.asked().len() < 400, "the questions are bounded");
}
