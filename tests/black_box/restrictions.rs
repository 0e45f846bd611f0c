//! The demands of namespaces and of the file of admission on pods: tolerations, quotas, and features of nodes.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::plugins::{await_account, pod};
use crate::support::{Answer, Connection, DataDir};

const NAMESPACES: &str = "/api/v1/namespaces";
const PODS: &str = "/api/v1/namespaces/default/pods";

/// Creates a namespace with annotations, and waits until it has the service account that pods need.
fn namespace(client: &mut Connection, name: &str, annotations: &Value) {
    client.post(NAMESPACES, &json!({"metadata": {"name": name, "annotations": annotations}})).expect(201);
    await_account(client, name);
}

fn patch(client: &mut Connection, path: &str, body: &Value) -> Answer {
    let headers = [("Content-Type", "application/strategic-merge-patch+json")];
    client.call("PATCH", path, &headers, body.to_string().as_bytes()).unwrap()
}

/// Writes a file of admission with the configuration of one plugin. Returns the flag.
fn configured(data: &DataDir, plugin: &str, configuration: &str) -> String {
    let file = data.path().with_extension("admission");
    let head = "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n";
    std::fs::write(&file, format!("{head}- name: {plugin}\n  configuration: {{{configuration}}}\n")).unwrap();
    format!("--admission-control-config-file={}", file.display())
}

#[test]
fn namespaces_give_and_restrict_tolerations() {
    let data = DataDir::new();
    let enabled = "--enable-admission-plugins=PodTolerationRestriction";
    let head = "apiVersion: podtolerationrestriction.admission.k8s.io/v1alpha1, kind: Configuration";
    let wrong = configured(&data, "PodTolerationRestriction", &format!("{head}, default: [{{key: 'a b'}}]"));
    let refusal = data.try_start_with(&[enabled, &wrong]).err().expect("a refusal");
    assert!(refusal.messages.contains("podtolerationrestriction.default[0].key"), "{}", refusal.messages);
    let lost = "{key: node.kubernetes.io/not-ready, operator: Exists}, \
                {key: node.kubernetes.io/unreachable, operator: Exists}";
    let whitelist = format!("whitelist: [{{key: a, operator: Exists}}, {lost}]");
    let file = configured(&data, "PodTolerationRestriction", &format!("{head}, {whitelist}"));
    let server = data.start_with(&[enabled, &file]);
    let mut client = server.connect();
    await_account(&mut client, "default");
    let annotations = json!({
        "scheduler.alpha.kubernetes.io/defaultTolerations": r#"[{"key": "own", "operator": "Exists"}]"#,
        "scheduler.alpha.kubernetes.io/tolerationsWhitelist": "[]",
    });
    namespace(&mut client, "own", &annotations);
    let own = client.post("/api/v1/namespaces/own/pods", &pod("a", &json!({}))).expect(201);
    let tolerations = own["spec"]["tolerations"].as_array().unwrap();
    assert!(tolerations.contains(&json!({"key": "own", "operator": "Exists"})), "{tolerations:?}");
    let tolerating = |key: &str| json!({"tolerations": [{"key": key, "operator": "Exists"}]});
    client.post(PODS, &pod("a", &tolerating("a"))).expect(201);
    let refused = client.post(PODS, &pod("b", &tolerating("b"))).expect(500);
    let why =
        "pod tolerations (possibly merged with namespace default tolerations) conflict with its cluster whitelist";
    assert_eq!((&refused["message"], &refused["reason"]), (&json!(why), &Value::Null));
    let broken = json!({"scheduler.alpha.kubernetes.io/defaultTolerations": "{}"});
    namespace(&mut client, "broken", &broken);
    let refused = client.post("/api/v1/namespaces/broken/pods", &pod("a", &json!({}))).expect(500);
    assert_eq!(refused["message"], "json: cannot unmarshal object into Go value of type []v1.Toleration");
}

#[test]
fn a_configuration_demands_quotas() {
    let data = DataDir::new();
    let head = "apiVersion: apiserver.config.k8s.io/v1, kind: ResourceQuotaConfiguration, limitedResources:";
    let wrong = configured(&data, "ResourceQuota", &format!("{head} [{{matchContains: [gpu]}}]"));
    let refusal = data.try_start_with(&[&wrong]).err().expect("a refusal");
    assert!(refusal.messages.contains("limitedResources[0].resource: Required value"), "{}", refusal.messages);
    let scope = "{scopeName: PriorityClass, operator: In, values: [high]}";
    let limited = format!("[{{resource: pods, matchContains: [gpu]}}, {{resource: pods, matchScopes: [{scope}]}}]");
    let server = data.start_with(&[&configured(&data, "ResourceQuota", &format!("{head} {limited}"))]);
    let mut client = server.connect();
    await_account(&mut client, "default");
    let class = json!({"metadata": {"name": "high"}, "value": 1});
    client.post("/apis/scheduling.k8s.io/v1/priorityclasses", &class).expect(201);
    let limits = json!({"limits": {"example.com/gpu": "1"}});
    let gpu = json!({"containers": [{"name": "c", "image": "i", "resources": limits}]});
    let high = json!({"priorityClassName": "high"});
    client.post(PODS, &pod("plain", &json!({}))).expect(201);
    let refused = client.post(PODS, &pod("gpu", &gpu)).expect(403);
    let why = "pods \"gpu\" is forbidden: insufficient quota to consume: requests.example.com/gpu";
    assert_eq!(refused["message"], why);
    let refused = client.post(PODS, &pod("high", &high)).expect(500);
    assert_eq!(refused["message"], "insufficient quota to match these scopes: [{PriorityClass In [high]}]");
    let selector = json!({"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}]});
    let of_class = json!({"hard": {"pods": "1"}, "scopeSelector": selector});
    let of_gpus = json!({"hard": {"requests.example.com/gpu": "1"}});
    for (name, spec) in [("class", of_class), ("gpus", of_gpus)] {
        let quotas = "/api/v1/namespaces/default/resourcequotas";
        client.post(quotas, &json!({"metadata": {"name": name}, "spec": spec})).expect(201);
        let began = Instant::now();
        while client.get(&format!("{quotas}/{name}")).expect(200)["status"]["used"].is_null() {
            assert!(began.elapsed() < Duration::from_secs(120), "the quota is not counted");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    client.post(PODS, &pod("gpu", &gpu)).expect(201);
    client.post(PODS, &pod("high", &high)).expect(201);
    let refused = client.post(PODS, &pod("higher", &high)).expect(403);
    let why = "pods \"higher\" is forbidden: exceeded quota: class, requested: pods=1, used: pods=1, limited: pods=1";
    assert_eq!(refused["message"], why);
}

#[test]
fn a_resize_needs_a_capable_node() {
    let data = DataDir::new();
    let server = data.start();
    let mut client = server.connect();
    await_account(&mut client, "default");
    let features = ["InPlacePodVerticalScalingInitContainers"];
    for (name, system, features) in
        [("plain", "linux", &[][..]), ("able", "linux", &features), ("other", "windows", &[])]
    {
        let labels = json!({"kubernetes.io/os": system});
        client.post("/api/v1/nodes", &json!({"metadata": {"name": name, "labels": labels}})).expect(201);
        let status = json!({"allocatable": {"cpu": "4", "memory": "4Gi"}, "declaredFeatures": features});
        let patched = patch(&mut client, &format!("/api/v1/nodes/{name}/status"), &json!({"status": status}));
        assert_eq!(patched.status, 200, "{patched:?}");
    }
    let cpu = |cpu: &str| json!({"requests": {"cpu": cpu}});
    let mut resize = |node: &str, list: &str, to: &str| {
        let name = format!("on-{node}-{}", list.to_lowercase());
        let spec = json!({
            "nodeName": node, "initContainers": [{"name": "i", "image": "i", "resources": cpu("1")}],
            "containers": [{"name": "c", "image": "i", "resources": cpu("1")}],
        });
        if client.get(&format!("{PODS}/{name}")).status == 404 {
            client.post(PODS, &pod(&name, &spec)).expect(201);
            let running = json!({"containerStatuses": [{"name": "c", "image": "i", "imageID": "i", "ready": true,
                "restartCount": 0, "resources": cpu("9")}]});
            let patched = patch(&mut client, &format!("{PODS}/{name}/status"), &json!({"status": running}));
            assert_eq!(patched.status, 200, "{patched:?}");
        }
        let container = if list == "containers" { "c" } else { "i" };
        let change = json!({"spec": {list: [{"name": container, "resources": cpu(to)}]}});
        let answer = patch(&mut client, &format!("{PODS}/{name}/resize"), &change);
        (answer.status, answer.json())
    };
    assert_eq!(resize("plain", "containers", "2").0, 200, "what it has by its status does not count");
    let (code, refused) = resize("plain", "containers", "5");
    let why = "pods \"on-plain-containers\" is forbidden: node didn't have enough allocatable resources: cpu, requested: \
               5000, allocatable: 4000";
    assert_eq!((code, &refused["message"]), (403, &json!(why)));
    assert_eq!(refused["details"]["causes"], json!([{"reason": "NodeCapacity"}]));
    let (code, refused) = resize("other", "containers", "2");
    assert_eq!((code, &refused["details"]["causes"]), (403, &json!([{"reason": "UnsupportedPlatform"}])));
    let (code, refused) = resize("plain", "initContainers", "2");
    let why = "pods \"on-plain-initcontainers\" is forbidden: pod update requires features \
               InPlacePodVerticalScalingInitContainers which are not available on node \"plain\"";
    assert_eq!((code, &refused["message"]), (403, &json!(why)));
    assert_eq!(resize("able", "initContainers", "2").0, 200);
}
