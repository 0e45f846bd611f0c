//! The audit log: events as kube-apiserver 1.36 writes them with the same policy.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::DataDir;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const POLICY: &str = r#"
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: []
rules:
- {level: None, users: ["system:apiserver"]}
- {level: Metadata, resources: [{group: "", resources: ["secrets"]}]}
- {level: Request, omitStages: [RequestReceived], resources: [{group: "", resources: ["services"]}]}
- {level: RequestResponse, omitManagedFields: true, namespaces: ["default"]}
- {level: None, nonResourceURLs: ["/healthz*", "/readyz*"]}
- {level: Metadata}
"#;

/// Writes the policy beside a data directory. Returns its path and that of the log.
fn files(directory: &DataDir) -> (PathBuf, PathBuf) {
    let folder = directory.path().with_file_name("audit");
    fs::create_dir_all(&folder).expect("a directory");
    let policy = folder.join("policy.yaml");
    fs::write(&policy, POLICY).expect("a file");
    (policy, folder.join("logs").join("audit.log"))
}

/// Returns the events of a request, once there are `count`.
fn events(log: &Path, id: &str, count: usize) -> Vec<Value> {
    let began = Instant::now();
    loop {
        let text = fs::read_to_string(log).expect("a log");
        let whole = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let events: Vec<Value> = whole.filter(|event| event["auditID"] == id).collect();
        if events.len() >= count {
            assert_eq!(events.len(), count, "{events:?}");
            return events;
        }
        assert!(began.elapsed() < Duration::from_secs(120), "{id}: {events:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn events_have_the_content_that_the_policy_demands() {
    let directory = DataDir::new();
    let (policy, log) = files(&directory);
    let (policy_flag, log_flag) =
        (format!("--audit-policy-file={}", policy.display()), format!("--audit-log-path={}", log.display()));
    let server = directory.start_with(&[&policy_flag, &log_flag]);
    let mut client = server.connect();
    let mut ask = |method: &str, path: &str, headers: &[(&str, &str)], body: &Value| {
        let all: Vec<_> = headers.iter().copied().chain([("Content-Type", "application/json")]).collect();
        client.call(method, path, &all, body.to_string().as_bytes()).expect("an answer").status
    };
    let id = |id| ("Audit-ID", id);

    let map = json!({"metadata": {"name": "a"}, "data": {"x": "<y>"}});
    assert_eq!(ask("POST", MAPS, &[id("made"), ("X-Forwarded-For", "1.2.3.4")], &map), 201);
    let [received, complete] = &events(&log, "made", 2)[..] else { panic!() };
    assert_eq!(received["stage"], "RequestReceived");
    assert_eq!(received["objectRef"], json!({"resource": "configmaps", "namespace": "default", "apiVersion": "v1"}));
    assert_eq!(received["requestReceivedTimestamp"], received["stageTimestamp"]);
    assert!(received.get("annotations").is_none() && received.get("responseStatus").is_none());
    assert_eq!(complete["kind"], "Event");
    assert_eq!(complete["apiVersion"], "audit.k8s.io/v1");
    assert_eq!((&complete["level"], &complete["stage"]), (&json!("RequestResponse"), &json!("ResponseComplete")));
    assert_eq!((&complete["verb"], &complete["requestURI"]), (&json!("create"), &json!(MAPS)));
    assert_eq!(complete["sourceIPs"], json!(["1.2.3.4", "127.0.0.1"]));
    assert_eq!(complete["objectRef"]["name"], "a");
    assert_eq!(complete["responseStatus"], json!({"metadata": {}, "code": 201}));
    let asked = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"}, "data": {"x": "<y>"}});
    assert_eq!(complete["requestObject"], asked);
    assert_eq!(complete["responseObject"]["data"], map["data"]);
    assert!(complete["responseObject"]["metadata"].get("managedFields").is_none());
    let allowed = json!({"authorization.k8s.io/decision": "allow", "authorization.k8s.io/reason": ""});
    assert_eq!(complete["annotations"], allowed);

    assert_eq!(ask("POST", MAPS, &[id("again")], &map), 409);
    let status = json!({
        "metadata": {}, "status": "Failure", "message": "configmaps \"a\" already exists", "reason": "AlreadyExists",
        "details": {"name": "a", "kind": "configmaps"}, "code": 409
    });
    assert_eq!(events(&log, "again", 2)[1]["responseStatus"], status);

    let bob = [id("bob"), ("Impersonate-User", "bob")];
    assert_eq!(ask("GET", &format!("{MAPS}/a"), &bob, &Value::Null), 403);
    let forbidden = &events(&log, "bob", 2)[1];
    assert_eq!(forbidden["impersonatedUser"], json!({"username": "bob", "groups": ["system:authenticated"]}));
    assert_eq!(forbidden["authenticationMetadata"], json!({"impersonationConstraint": "impersonate:user-info"}));
    assert_eq!(forbidden["annotations"]["authorization.k8s.io/decision"], "forbid");

    let unknown = [id("unknown"), ("Authorization", "Bearer nonsense")];
    let refused = server.connect_anonymously().call("GET", &format!("{MAPS}/a"), &unknown, b"");
    assert_eq!(refused.expect("an answer").status, 401);
    let unknown = &events(&log, "unknown", 1)[0];
    assert_eq!((&unknown["stage"], &unknown["user"]), (&json!("ResponseStarted"), &json!({})));
    assert_eq!(unknown["responseStatus"]["code"], 401);

    let secret = json!({"metadata": {"name": "s"}, "stringData": {"x": "y"}});
    assert_eq!(ask("POST", "/api/v1/namespaces/default/secrets", &[id("secret")], &secret), 201);
    let secret = &events(&log, "secret", 2)[1];
    assert_eq!((&secret["level"], &secret["objectRef"]["name"]), (&json!("Metadata"), &json!("s")));
    assert!(secret.get("requestObject").is_none() && secret.get("responseObject").is_none());

    let service = json!({"metadata": {"name": "v"}, "spec": {"ports": [{"port": 80}]}});
    assert_eq!(ask("POST", "/api/v1/namespaces/default/services", &[id("service")], &service), 201);
    let service = &events(&log, "service", 1)[0];
    assert_eq!(service["requestObject"]["spec"]["ports"], json!([{"protocol": "TCP", "port": 80, "targetPort": 80}]));
    assert!(service.get("responseObject").is_none());

    let options = json!({"gracePeriodSeconds": 0});
    assert_eq!(ask("DELETE", &format!("{MAPS}/a"), &[id("gone")], &options), 200);
    let gone = &events(&log, "gone", 2)[1];
    let options = json!({"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/__internal", "gracePeriodSeconds": 0});
    assert_eq!(gone["requestObject"], options);
    assert_eq!((&gone["responseStatus"]["status"], &gone["responseStatus"]["code"]), (&json!("Success"), &json!(200)));

    let watch = format!("{MAPS}?watch=1&timeoutSeconds=1");
    assert_eq!(ask("GET", &watch, &[id("watch")], &Value::Null), 200);
    let watch = events(&log, "watch", 3);
    let stages: Vec<&str> = watch.iter().map(|event| event["stage"].as_str().expect("a stage")).collect();
    assert_eq!(stages, ["RequestReceived", "ResponseStarted", "ResponseComplete"]);
    assert!(watch[2].get("responseObject").is_none());

    let yaml = [id("yaml"), ("Accept", "application/yaml")];
    assert_eq!(ask("GET", "/api/v1/namespaces/default", &yaml, &Value::Null), 200);
    assert_eq!(events(&log, "yaml", 2)[1]["responseObject"]["kind"], "Namespace");
    let protobuf = [id("protobuf"), ("Accept", "application/vnd.kubernetes.protobuf")];
    assert_eq!(ask("GET", MAPS, &protobuf, &Value::Null), 200);
    assert_eq!(events(&log, "protobuf", 2)[1]["responseObject"]["kind"], "ConfigMapList");

    assert_eq!(ask("GET", "/healthz", &[id("health")], &Value::Null), 200);
    assert_eq!(ask("GET", "/version", &[id("version")], &Value::Null), 200);
    assert!(events(&log, "version", 2)[1].get("responseObject").is_none());
    assert_eq!(events(&log, "health", 0).len(), 0);
}

#[test]
fn events_are_written_by_a_thread() {
    let directory = DataDir::new();
    let (policy, log) = files(&directory);
    let policy = format!("--audit-policy-file={}", policy.display());
    let path = format!("--audit-log-path={}", log.display());
    let server = directory.start_with(&[&policy, &path, "--audit-log-mode=batch"]);
    let answer = server.connect().call("GET", "/version", &[("Audit-ID", "batch")], b"").expect("an answer");
    assert_eq!(answer.status, 200);
    events(&log, "batch", 2);
}

#[test]
fn requests_that_cannot_be_recorded_are_refused_in_strict_mode() {
    let directory = DataDir::new();
    let (policy, _) = files(&directory);
    let policy = format!("--audit-policy-file={}", policy.display());
    let start = |mode| directory.start_with(&[&policy, "--audit-log-path=/dev/full", mode]);
    {
        let server = start("--audit-log-mode=blocking");
        assert_eq!(server.connect().get("/version").status, 200);
    }
    let server = start("--audit-log-mode=blocking-strict");
    let refused = server.connect().get("/version");
    assert_eq!(refused.status, 500);
    let text = String::from_utf8_lossy(&refused.body).into_owned();
    assert_eq!(text, "Internal Server Error: \"/version\": failed to store audit event\n");
    assert_eq!(server.connect().get("/healthz").status, 200, "it is not recorded");
}
