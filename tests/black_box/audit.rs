//! The audit log: events as kube-apiserver 1.36 writes them with the same policy.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::plugins::await_account;
use crate::support::DataDir;

pub const MAPS: &str = "/api/v1/namespaces/default/configmaps";
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
pub fn files(directory: &DataDir) -> (PathBuf, PathBuf) {
    let folder = directory.path().with_file_name("audit");
    fs::create_dir_all(&folder).expect("a directory");
    let policy = folder.join("policy.yaml");
    fs::write(&policy, POLICY).expect("a file");
    (policy, folder.join("logs").join("audit.log"))
}

/// Returns the events of a request, once there are `count`.
pub fn events(log: &Path, id: &str, count: usize) -> Vec<Value> {
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
    assert_eq!(without_latencies(&complete["annotations"]), allowed);

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

    assert_eq!(ask("GET", &format!("{MAPS}?timeout=x"), &[id("timeout")], &Value::Null), 400);
    let early = &events(&log, "timeout", 1)[0];
    assert_eq!((&early["stage"], &early["user"]), (&json!("ResponseStarted"), &json!({})), "it precedes the user");
    assert_eq!(early["responseStatus"]["code"], 400);
    assert_eq!(ask("GET", MAPS, &[id("media"), ("Accept", "text/nothing")], &Value::Null), 406);
    assert_eq!(events(&log, "media", 2)[1]["responseStatus"], json!({"metadata": {}, "code": 406}));
    assert_eq!(ask("DELETE", "/version", &[id("method")], &Value::Null), 405);
    assert_eq!(events(&log, "method", 2)[1]["responseStatus"]["reason"], "MethodNotAllowed");
    assert_eq!(ask("GET", "/api/v1/watch", &[id("nothing")], &Value::Null), 500);
    assert_eq!(events(&log, "nothing", 0).len(), 0);
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

/// Returns the annotations of the last event of a request.
fn annotations(log: &Path, id: &str) -> Value {
    without_latencies(&events(log, id, 2)[1]["annotations"])
}

/// Leaves out how long the parts of a request took, which events say of requests of half a second and more.
fn without_latencies(annotations: &Value) -> Value {
    let mut annotations = annotations.clone();
    annotations.as_object_mut().expect("an object").retain(|key, _| !key.starts_with("apiserver.latency."));
    annotations
}

#[test]
fn events_have_annotations_of_the_server() {
    let directory = DataDir::new();
    let (policy, log) = files(&directory);
    let admission = policy.with_file_name("admission.yaml");
    let text = "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n\
                - name: PodSecurity\n  configuration:\n    apiVersion: pod-security.admission.config.k8s.io/v1\n    \
                kind: PodSecurityConfiguration\n    exemptions: {namespaces: [kube-system], runtimeClasses: [vm]}\n";
    fs::write(&admission, text).expect("a file");
    let flags = [
        format!("--audit-policy-file={}", policy.display()),
        format!("--audit-log-path={}", log.display()),
        format!("--admission-control-config-file={}", admission.display()),
    ];
    let unstable = "--runtime-config=networking.k8s.io/v1beta1=true";
    let server = directory.start_with(&[&flags[0], &flags[1], &flags[2], unstable]);
    let mut client = server.connect_for_pods();
    await_account(&mut client, "kube-system");
    let mut ask = |method: &str, path: &str, id: &str, body: &Value| {
        let headers = [("Audit-ID", id), ("Content-Type", "application/json")];
        client.call(method, path, &headers, body.to_string().as_bytes()).expect("an answer").status
    };
    let allowed = |more: Value| {
        let mut all = json!({"authorization.k8s.io/decision": "allow", "authorization.k8s.io/reason": ""});
        more.as_object().expect("an object").iter().for_each(|(key, value)| all[key] = value.clone());
        all
    };

    assert_eq!(ask("GET", "/api/v1/namespaces/default/endpoints", "old", &Value::Null), 200);
    assert_eq!(annotations(&log, "old"), allowed(json!({"k8s.io/deprecated": "true"})));
    assert_eq!(ask("GET", "/apis/networking.k8s.io/v1beta1/ipaddresses", "older", &Value::Null), 200);
    let removed = json!({"k8s.io/deprecated": "true", "k8s.io/removed-release": "1.37"});
    assert_eq!(annotations(&log, "older"), allowed(removed));
    let watch = "/api/v1/namespaces/default/endpoints?watch=1&timeoutSeconds=1";
    assert_eq!(ask("GET", watch, "old-watch", &Value::Null), 200);
    let watch = events(&log, "old-watch", 3);
    assert!(watch[1]["annotations"]["k8s.io/deprecated"].is_null(), "{watch:?}");
    assert_eq!(watch[2]["annotations"]["k8s.io/deprecated"], "true");
    assert!(watch[2]["annotations"]["apiserver.latency.k8s.io/total"].is_null(), "{watch:?}");

    let token = "/api/v1/namespaces/default/serviceaccounts/default/token";
    assert_eq!(ask("POST", token, "token", &json!({})), 201);
    let id = annotations(&log, "token")["authentication.kubernetes.io/issued-credential-id"].clone();
    assert!(id.as_str().expect("an id").starts_with("JTI="), "{id}");

    let pod = |name: &str, host: bool, class: Option<&str>| {
        json!({"metadata": {"name": name}, "spec": {
            "containers": [{"name": "c", "image": "i"}], "hostNetwork": host, "runtimeClassName": class,
        }})
    };
    let pods = "/api/v1/namespaces/default/pods";
    assert_eq!(ask("POST", pods, "privileged", &pod("a", true, None)), 201);
    let enforced = |standard: &str| json!({"pod-security.kubernetes.io/enforce-policy": standard});
    assert_eq!(annotations(&log, "privileged"), allowed(enforced("privileged:latest")));
    let labels = json!({"metadata": {"labels": {
        "pod-security.kubernetes.io/enforce": "baseline", "pod-security.kubernetes.io/audit": "restricted",
    }}});
    let path = "/api/v1/namespaces/default";
    let labelled =
        server.connect().request("PATCH", path, "application/merge-patch+json", labels.to_string().as_bytes());
    assert_eq!(labelled.status, 200);
    assert_eq!(ask("POST", pods, "audited", &pod("b", false, None)), 201);
    let audited = annotations(&log, "audited");
    assert_eq!(audited["pod-security.kubernetes.io/enforce-policy"], "baseline:latest");
    let violations = audited["pod-security.kubernetes.io/audit-violations"].as_str().expect("violations");
    assert!(violations.starts_with("would violate PodSecurity \"restricted:latest\": "), "{violations}");
    assert_eq!(ask("POST", pods, "refused", &pod("c", true, None)), 403);
    assert_eq!(annotations(&log, "refused")["pod-security.kubernetes.io/enforce-policy"], "baseline:latest");
    let exempt = |why: &str| allowed(json!({"pod-security.kubernetes.io/exempt": why}));
    let path = "/api/v1/namespaces/kube-system/pods";
    assert_eq!(ask("POST", path, "system", &pod("d", true, None)), 201);
    assert_eq!(annotations(&log, "system"), exempt("namespace"));
    let class = json!({"metadata": {"name": "vm"}, "handler": "h"});
    assert_eq!(ask("POST", "/apis/node.k8s.io/v1/runtimeclasses", "class", &class), 201);
    assert_eq!(ask("POST", pods, "vm", &pod("e", true, Some("vm"))), 201);
    assert_eq!(annotations(&log, "vm"), exempt("runtimeClass"));
}
