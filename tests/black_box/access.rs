//! Authorization: roles and bindings decide, and their changes take effect while the server runs.

use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::support::{CONFIG_MAPS, Connection, DataDir, PATIENCE, config_map, config_map_path};

const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles";
const BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings";

/// Sends a request as `ann`, a user without roles of her own.
fn as_ann(client: &mut Connection, method: &str, path: &str, object: Option<&Value>) -> (u16, Value) {
    let headers = [("Impersonate-User", "ann"), ("Content-Type", "application/json")];
    let body = object.map(Value::to_string).unwrap_or_default();
    let answer = client.call(method, path, &headers, body.as_bytes()).unwrap();
    (answer.status, answer.json())
}

/// Gets a path as `ann` until the answer has this status. Returns its body.
fn until(client: &mut Connection, path: &str, status: u16) -> Value {
    let began = Instant::now();
    loop {
        let (found, body) = as_ann(client, "GET", path, None);
        if found == status {
            return body;
        }
        assert!(began.elapsed() < PATIENCE, "{path} is still answered with {found}: {body}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn roles_decide() {
    let directory = DataDir::new();
    let server = directory.start();
    let mut client = server.connect();
    client.post(CONFIG_MAPS, &config_map("one", "1")).expect(201);
    let path = config_map_path("one");
    let (status, refused) = as_ann(&mut client, "GET", &path, None);
    assert_eq!(status, 403);
    assert_eq!(
        refused["message"],
        "configmaps \"one\" is forbidden: User \"ann\" cannot get resource \"configmaps\" in API group \"\" in the \
         namespace \"default\""
    );

    let reader = json!({
        "metadata": {"name": "reader"},
        "rules": [
            {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]},
            {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"], "verbs": ["create"]},
        ],
    });
    let binding = json!({
        "metadata": {"name": "reader"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "ann"}],
    });
    client.post(ROLES, &reader).expect(201);
    client.post(BINDINGS, &binding).expect(201);
    until(&mut client, &path, 200);
    assert_eq!(as_ann(&mut client, "DELETE", &path, None).0, 403);
    assert_eq!(as_ann(&mut client, "GET", CONFIG_MAPS, None).0, 403);

    let more = |verb: &str| json!({"metadata": {"name": verb}, "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": [verb]}]});
    assert_eq!(as_ann(&mut client, "POST", ROLES, Some(&more("get"))).0, 201);
    let (status, refused) = as_ann(&mut client, "POST", ROLES, Some(&more("delete")));
    assert_eq!(status, 403, "nobody can grant permissions that they lack: {refused}");

    client.delete(&format!("{ROLES}/reader")).expect(200);
    let refused = until(&mut client, &path, 403);
    let message = refused["message"].as_str().unwrap();
    assert!(message.ends_with(": RBAC: role.rbac.authorization.k8s.io \"reader\" not found"), "{message}");
    client.post(ROLES, &reader).expect(201);
    until(&mut client, &path, 200);
    client.delete(&format!("{BINDINGS}/reader")).expect(200);
    until(&mut client, &path, 403);
}

#[test]
fn roles_decide_from_the_first_request_after_a_restart() {
    let directory = DataDir::new();
    let server = directory.start();
    let mut client = server.connect();
    let binding = json!({
        "metadata": {"name": "everybody"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:authenticated"}],
    });
    client.post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", &binding).expect(201);
    until(&mut client, CONFIG_MAPS, 200);
    server.kill();
    let server = directory.start();
    assert_eq!(as_ann(&mut server.connect(), "GET", CONFIG_MAPS, None).0, 200);
    assert_eq!(server.connect_anonymously().get(CONFIG_MAPS).status, 403);
}

#[test]
fn always_allow_does_not_allow_anonymous_requests() {
    let directory = DataDir::new();
    let server = directory.start_with(&["--authorization-mode=AlwaysAllow"]);
    for path in [CONFIG_MAPS, "/healthz"] {
        assert_eq!(server.connect_anonymously().get(path).status, 401, "{path}");
    }
    assert_eq!(server.connect().get(CONFIG_MAPS).status, 200);
    assert!(server.messages().contains("requests without credentials are refused"), "{}", server.messages());
}

#[test]
fn uses_of_tokens_in_secrets_are_recorded_and_marked_tokens_are_refused() {
    const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
    const SECRETS: &str = "/api/v1/namespaces/default/secrets";
    const LAST_USED: &str = "kubernetes.io/legacy-token-last-used";
    const INVALID_SINCE: &str = "kubernetes.io/legacy-token-invalid-since";
    let directory = DataDir::new();
    let server = directory.start();
    let mut client = server.connect();
    let account = json!({"metadata": {"name": "bot"}, "secrets": [{"name": "generated"}]});
    client.post(ACCOUNTS, &account).expect(201);
    for name in ["generated", "asked-for"] {
        let metadata = json!({"name": name, "annotations": {"kubernetes.io/service-account.name": "bot"}});
        let secret = json!({"metadata": metadata, "type": "kubernetes.io/service-account-token"});
        client.post(SECRETS, &secret).expect(201);
    }
    let mut secret_until = |name: &str, holds: &dyn Fn(&Value) -> bool| {
        let began = Instant::now();
        loop {
            let secret = client.get(&format!("{SECRETS}/{name}")).expect(200);
            if holds(&secret) {
                return secret;
            }
            assert!(began.elapsed() < PATIENCE, "in vain: {secret}");
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    let mut token = |name: &str| {
        let secret = secret_until(name, &|secret| secret["data"]["token"].is_string());
        assert!(secret["metadata"]["labels"].is_null());
        let token = STANDARD.decode(secret["data"]["token"].as_str().unwrap()).unwrap();
        format!("Bearer {}", String::from_utf8(token).unwrap())
    };
    let tokens = [token("generated"), token("asked-for")];
    let mut anonymous = server.connect_anonymously();
    let mut get = |token: &str| anonymous.call("GET", "/apis", &[("Authorization", token)], b"").unwrap();
    let warned = get(&tokens[0]);
    assert_eq!(warned.status, 200);
    assert!(warned.header("warning").unwrap().contains("instead of auto-generated secret-based tokens"));
    let plain = get(&tokens[1]);
    assert_eq!((plain.status, plain.header("warning")), (200, None));
    for name in ["generated", "asked-for"] {
        let used = secret_until(name, &|secret| secret["metadata"]["labels"][LAST_USED].is_string());
        assert_eq!(used["metadata"]["labels"][LAST_USED].as_str().unwrap().len(), "2026-01-31".len());
    }
    let path = format!("{SECRETS}/asked-for");
    let mark = |day: Value| json!({"metadata": {"labels": {INVALID_SINCE: day}}});
    let mut patch = |body: &Value| {
        let headers = [("Content-Type", "application/merge-patch+json")];
        assert_eq!(client.call("PATCH", &path, &headers, body.to_string().as_bytes()).unwrap().status, 200);
    };
    patch(&mark("2026-01-31".into()));
    assert_eq!(get(&tokens[1]).status, 401);
    patch(&mark(Value::Null));
    assert_eq!(get(&tokens[1]).status, 200);
}
