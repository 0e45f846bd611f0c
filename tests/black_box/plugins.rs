//! Admission plugins that are off by default, and ones that are switched off.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Connection, DataDir};

const PODS: &str = "/api/v1/namespaces/default/pods";
const SERVICES: &str = "/api/v1/namespaces/default/services";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
const CONFIGURATIONS: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";

fn patch(client: &mut Connection, path: &str, headers: &[(&str, &str)], body: &Value) -> (u16, Value) {
    let all: Vec<_> = headers.iter().copied().chain([("Content-Type", "application/merge-patch+json")]).collect();
    let answer = client.call("PATCH", path, &all, body.to_string().as_bytes()).unwrap();
    (answer.status, answer.json())
}

/// Patches an object as `ann` until the message of the refusal ends with `end`, because roles take effect a moment
/// after they were created.
fn refused_as_ann(client: &mut Connection, path: &str, body: &Value, end: &str) {
    let began = Instant::now();
    loop {
        let (status, refused) = patch(client, path, &[("Impersonate-User", "ann")], body);
        assert_eq!(status, 403, "{refused}");
        if refused["message"].as_str().is_some_and(|message| message.ends_with(end)) {
            return;
        }
        assert!(began.elapsed() < Duration::from_secs(120), "{refused}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Waits until the namespace has the service account that pods need.
pub(crate) fn await_account(client: &mut Connection, namespace: &str) {
    let began = Instant::now();
    while client.get(&format!("/api/v1/namespaces/{namespace}/serviceaccounts/default")).status != 200 {
        assert!(began.elapsed() < Duration::from_secs(120), "there is no service account");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Returns a pod with these fields of its spec.
pub(crate) fn pod(name: &str, spec: &Value) -> Value {
    let mut pod = json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    for (field, value) in spec.as_object().unwrap() {
        pod["spec"][field] = value.clone();
    }
    pod
}

#[test]
fn plugins_about_pods_and_services() {
    let directory = DataDir::new();
    let server = directory.start_with(&[
        "--enable-admission-plugins=AlwaysPullImages,DenyServiceExternalIPs,ExtendedResourceToleration",
        "--enable-admission-plugins=LimitPodHardAntiAffinityTopology,PodNodeSelector",
    ]);
    let mut client = server.connect();
    await_account(&mut client, "default");
    let annotation = json!({"metadata": {"annotations": {"scheduler.alpha.kubernetes.io/node-selector": "env=dev"}}});
    assert_eq!(patch(&mut client, "/api/v1/namespaces/default", &[], &annotation).0, 200);
    let limits = json!({"limits": {"example.com/gpu": "1"}});
    let container = json!({"name": "c", "image": "i:1", "imagePullPolicy": "Never", "resources": limits});
    let created = client.post(PODS, &pod("a", &json!({"containers": [container]}))).expect(201);
    assert_eq!(created["spec"]["containers"][0]["imagePullPolicy"], "Always");
    assert_eq!(created["spec"]["nodeSelector"], json!({"env": "dev"}));
    let tolerations = created["spec"]["tolerations"].as_array().unwrap();
    assert!(tolerations.contains(&json!({"key": "example.com/gpu", "operator": "Exists", "effect": "NoSchedule"})));

    let refused = client.post(PODS, &pod("b", &json!({"nodeSelector": {"env": "prod"}}))).expect(403);
    assert_eq!(
        refused["message"],
        "pods \"b\" is forbidden: pod node label selector conflicts with its namespace node label selector"
    );
    let term = json!({"topologyKey": "zone", "labelSelector": {}});
    let affinity = json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}});
    let refused = client.post(PODS, &pod("b", &json!({"affinity": affinity}))).expect(403);
    assert_eq!(
        refused["message"],
        "pods \"b\" is forbidden: affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey zone but only key \
         kubernetes.io/hostname is allowed"
    );

    let service = json!({"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}});
    client.post(SERVICES, &service).expect(201);
    let addresses = json!({"spec": {"externalIPs": ["192.0.2.1"]}});
    let (status, refused) = patch(&mut client, &format!("{SERVICES}/s"), &[], &addresses);
    assert_eq!(status, 403);
    let message = "services \"s\" is forbidden: Use of external IPs is denied by admission control";
    assert_eq!(refused["message"], message);
}

#[test]
fn owners_are_changed_only_by_users_who_may_delete() {
    let directory = DataDir::new();
    let server = directory.start_with(&["--enable-admission-plugins=OwnerReferencesPermissionEnforcement"]);
    let mut client = server.connect();
    let rules = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "patch", "create"]}]);
    client.post(&format!("{RBAC}/roles"), &json!({"metadata": {"name": "writer"}, "rules": rules})).expect(201);
    let binding = json!({
        "metadata": {"name": "writer"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "writer"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "ann"}],
    });
    client.post(&format!("{RBAC}/rolebindings"), &binding).expect(201);
    let owner = client.post(MAPS, &json!({"metadata": {"name": "owner"}})).expect(201);
    client.post(MAPS, &json!({"metadata": {"name": "owned"}})).expect(201);
    let uid = owner["metadata"]["uid"].clone();
    let owned = |kind: &str, blocks: bool| {
        let owner =
            json!({"apiVersion": "v1", "kind": kind, "name": "owner", "uid": uid, "blockOwnerDeletion": blocks});
        json!({"metadata": {"ownerReferences": [owner]}})
    };
    let ann = [("Impersonate-User", "ann")];
    let path = format!("{MAPS}/owned");
    let why = "configmaps \"owned\" is forbidden: cannot set an ownerRef on a resource you can't delete: , <nil>";
    refused_as_ann(&mut client, &path, &owned("ConfigMap", false), why);
    assert_eq!(patch(&mut client, &path, &ann, &json!({"data": {"a": "b"}})).0, 200, "no owner changes");
    let delete = json!([{"op": "add", "path": "/rules/0/verbs/-", "value": "delete"}]);
    let headers = [("Content-Type", "application/json-patch+json")];
    let role = format!("{RBAC}/roles/writer");
    assert_eq!(client.call("PATCH", &role, &headers, delete.to_string().as_bytes()).unwrap().status, 200);
    let why =
        "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: , <nil>";
    refused_as_ann(&mut client, &path, &owned("ConfigMap", true), why);
    let why = "no matches for kind \"NoSuchKind\" in version \"v1\"";
    refused_as_ann(&mut client, &path, &owned("NoSuchKind", true), why);
    assert_eq!(patch(&mut client, &path, &ann, &owned("ConfigMap", false)).0, 200);
    assert_eq!(patch(&mut client, &path, &[], &owned("ConfigMap", true)).0, 200, "an administrator may");
}

#[test]
fn quotas_and_webhooks_can_be_switched_off() {
    let directory = DataDir::new();
    let flag = "--disable-admission-plugins=ResourceQuota,ValidatingAdmissionWebhook";
    let server = directory.start_with(&[flag]);
    let mut client = server.connect();
    let webhook = json!({
        "name": "nobody.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
        "clientConfig": {"url": "https://127.0.0.1:1/nobody"},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}],
    });
    client.post(CONFIGURATIONS, &json!({"metadata": {"name": "w"}, "webhooks": [webhook]})).expect(201);
    let quota = json!({"metadata": {"name": "q"}, "spec": {"hard": {"configmaps": "0"}}});
    client.post("/api/v1/namespaces/default/resourcequotas", &quota).expect(201);
    client.post(MAPS, &json!({"metadata": {"name": "m"}})).expect(201);
}

const ADMISSION: &str = r#"
apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: PodSecurity
  configuration:
    apiVersion: pod-security.admission.config.k8s.io/v1
    kind: PodSecurityConfiguration
    defaults: {enforce: baseline, warn: restricted}
    exemptions: {usernames: [ann], namespaces: [exempt], runtimeClasses: [vm]}
- name: EventRateLimit
  configuration:
    apiVersion: eventratelimit.admission.k8s.io/v1alpha1
    kind: Configuration
    limits:
    - {type: Namespace, qps: 1, burst: 1000}
    - {type: User, qps: 1, burst: 2}
"#;

/// Returns the warnings of an answer.
fn warnings(answer: &crate::support::Answer) -> Vec<&str> {
    answer.headers.iter().filter(|(name, _)| name == "warning").map(|(_, value)| value.as_str()).collect()
}

#[test]
fn the_file_of_admission_configures_pod_security_and_rates_of_events() {
    let directory = DataDir::new();
    let file = directory.path().with_extension("admission");
    std::fs::write(&file, ADMISSION).unwrap();
    let file = format!("--admission-control-config-file={}", file.display());
    let refused = directory.try_start_with(&["--enable-admission-plugins=EventRateLimit"]).err().expect("a refusal");
    assert!(refused.messages.contains("EventRateLimit has no limits"), "{}", refused.messages);
    let server = directory.start_with(&[&file, "--enable-admission-plugins=EventRateLimit"]);
    let mut client = server.connect();
    await_account(&mut client, "default");
    let runtime = json!({"metadata": {"name": "vm"}, "handler": "vm"});
    client.post("/apis/node.k8s.io/v1/runtimeclasses", &runtime).expect(201);

    let host = json!({"hostNetwork": true});
    let refused = client.post(PODS, &pod("a", &host)).expect(403);
    let message =
        "pods \"a\" is forbidden: violates PodSecurity \"baseline:latest\": host namespaces (hostNetwork=true)";
    assert_eq!(refused["message"], message);
    client.post(PODS, &pod("a", &json!({"hostNetwork": true, "runtimeClassName": "vm"}))).expect(201);
    let warned = client.post(PODS, &pod("b", &json!({})));
    warned.expect(201);
    assert!(warnings(&warned)[0].contains("would violate PodSecurity \\\"restricted:latest\\\""), "{warned:?}");

    let labels = json!({"pod-security.kubernetes.io/enforce": "restricted"});
    let namespace = json!({"metadata": {"name": "exempt", "labels": labels}});
    let made = client.post("/api/v1/namespaces", &namespace);
    made.expect(201);
    let warning = "namespace \\\"exempt\\\" is exempt from Pod Security, and the policy (enforce=restricted:latest) will \
                   be ignored";
    assert!(warnings(&made)[0].contains(warning), "{made:?}");

    let events = "/api/v1/namespaces/default/events";
    let event = |name: &str| {
        let about = json!({"kind": "Pod", "namespace": "default", "name": "a", "apiVersion": "v1"});
        json!({"metadata": {"name": name}, "involvedObject": about, "reason": "R", "message": "m", "type": "Normal"})
    };
    // The limit is one event per second. If the machine is busy, some more pass in the time that the test takes, but
    // not a hundred.
    let mut refused = (0..100).map(|number| client.post(events, &event(&format!("e{number}"))));
    let refused = refused.find(|answer| answer.status != 201).expect("a refusal").expect(429);
    let message = "Too many requests: limit reached on type User for key kubernetes-admin";
    assert_eq!((&refused["message"], &refused["reason"]), (&json!(message), &json!("TooManyRequests")));
}

#[test]
fn everything_is_denied() {
    let directory = DataDir::new();
    let server = directory.start();
    server.connect().post(MAPS, &json!({"metadata": {"name": "m"}})).expect(201);
    drop(server);
    let server = directory.start_with(&["--enable-admission-plugins=AlwaysDeny"]);
    let mut client = server.connect();
    let why = |what: &str| format!("{what} is forbidden: admission control is denying all modifications");
    let created = client.post(MAPS, &json!({"metadata": {"generateName": "g-"}})).expect(403);
    assert_eq!(created["message"], why("configmaps \"g-\""));
    let path = format!("{MAPS}/m");
    let (status, changed) = patch(&mut client, &path, &[], &json!({"data": {"a": "b"}}));
    assert_eq!((status, &changed["message"]), (403, &json!(why("configmaps \"m\""))));
    assert_eq!(client.delete(&path).expect(403)["message"], why("configmaps \"m\""));
    assert_eq!(client.delete(MAPS).expect(403)["message"], why("configmaps \"Unknown\""));
    let connected = client.get(&format!("{PODS}/none/exec?command=ls&stdout=true")).expect(403);
    assert_eq!(connected["message"], why("pods \"none\""));
    let review = json!({"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}});
    let reviewed = client.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", &review).expect(403);
    assert_eq!(reviewed["message"], why("selfsubjectaccessreviews.authorization.k8s.io \"Unknown\""));
    client.get(&path).expect(200);
}

#[test]
fn namespaces_are_created_for_new_objects() {
    let directory = DataDir::new();
    let server = directory.start_with(&["--enable-admission-plugins=NamespaceAutoProvision"]);
    let mut client = server.connect();
    let map = json!({"metadata": {"name": "m"}});
    client.post("/api/v1/namespaces/new/configmaps", &map).expect(201);
    let made = client.get("/api/v1/namespaces/new").expect(200);
    assert_eq!(made["metadata"]["labels"], json!({"kubernetes.io/metadata.name": "new"}));
    assert_eq!(made["metadata"]["managedFields"][0]["manager"], "kube-apiserver");
    client.post("/api/v1/namespaces/dry/configmaps?dryRun=All", &map).expect(404);
    assert_eq!(client.get("/api/v1/namespaces/dry").status, 404);
    let refused = client.post("/api/v1/namespaces/Bad_/configmaps", &map).expect(403);
    let message = refused["message"].as_str().unwrap();
    assert!(message.starts_with("configmaps \"m\" is forbidden: Namespace \"Bad_\" is invalid:"), "{message}");
}

#[test]
fn namespaces_must_exist() {
    let directory = DataDir::new();
    let none = "/api/v1/namespaces/none/configmaps";
    let map = json!({"metadata": {"name": "m"}});
    let off = "--disable-admission-plugins=NamespaceLifecycle";
    let server = directory.start_with(&[off]);
    server.connect().post(none, &map).expect(201);
    drop(server);
    let server = directory.start_with(&[off, "--enable-admission-plugins=NamespaceExists"]);
    let mut client = server.connect();
    let refused = client.post(none, &json!({"metadata": {"name": "n"}})).expect(404);
    assert_eq!(refused["message"], "namespaces \"none\" not found");
    assert_eq!(patch(&mut client, &format!("{none}/m"), &[], &json!({"data": {"a": "b"}})).0, 404);
    let review = json!({"metadata": {"namespace": "none"}, "spec": {"user": "ann", "resourceAttributes":
        {"namespace": "none", "verb": "get", "resource": "pods"}}});
    let path = "/apis/authorization.k8s.io/v1/namespaces/none/localsubjectaccessreviews";
    assert_eq!(client.post(path, &review).expect(404)["message"], "namespaces \"none\" not found");
}
