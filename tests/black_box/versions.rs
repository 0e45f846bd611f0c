//! Versions of built-in kinds that are off by default (`--runtime-config`). The answers are those of Kubernetes 1.36.3.

use serde_json::{Value, json};

use crate::support::{Answer, Connection, DataDir};
use crate::webhooks::{MUTATING, answer, asked, but_probes, configure, hook};

const ALL: &str = "--runtime-config=api/all=true";
const DEVICES: &str = "/apis/resource.k8s.io";
const CANDIDATES: &str = "/apis/coordination.k8s.io/v1beta1/namespaces/default/leasecandidates";
const OLD_CANDIDATES: &str = "/apis/coordination.k8s.io/v1alpha2/namespaces/default/leasecandidates";

fn claims(version: &str) -> String {
    format!("{DEVICES}/{version}/namespaces/default/resourceclaims")
}

/// Returns a claim with one request in the form of `v1beta1`, or in that of later versions.
fn claim(name: &str, is_old: bool) -> Value {
    let exactly = json!({"deviceClassName": "c", "count": 2, "adminAccess": false});
    let mut request = if is_old { exactly } else { json!({"exactly": exactly}) };
    request["name"] = "r".into();
    json!({"metadata": {"name": name}, "spec": {"devices": {"requests": [request]}}})
}

fn candidate(name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {
        "leaseName": "l", "binaryVersion": "1.2.3", "emulationVersion": "1.2.0", "strategy": "OldestEmulationVersion"
    }})
}

fn apply(client: &mut Connection, path: &str, manager: &str, object: &Value) -> Answer {
    let path = format!("{path}?fieldManager={manager}");
    client.request("PATCH", &path, "application/apply-patch+yaml", object.to_string().as_bytes())
}

fn versions(client: &mut Connection, group: &str) -> Vec<String> {
    let all = client.get("/apis").expect(200);
    let groups = all["groups"].as_array().expect("groups");
    let of = groups.iter().find(|of| of["name"] == group);
    let versions = of.and_then(|of| of["versions"].as_array()).into_iter().flatten();
    versions.map(|version| version["version"].as_str().expect("a name").to_owned()).collect()
}

#[test]
fn only_stable_versions_are_on_by_default() {
    let directory = DataDir::new();
    let server = directory.start();
    let mut client = server.connect();
    assert_eq!(versions(&mut client, "resource.k8s.io"), ["v1"]);
    assert_eq!(versions(&mut client, "internal.apiserver.k8s.io"), [""; 0]);
    let group = "/apis/internal.apiserver.k8s.io/v1alpha1";
    let objects = format!("{group}/storageversions");
    for path in [&*format!("{DEVICES}/v1beta2/deviceclasses"), CANDIDATES, group, &objects] {
        assert_eq!(client.get(path).status, 404, "{path}");
    }
    assert_eq!(client.post(&objects, &json!({"metadata": {"name": "apps.deployments"}})).status, 404);
    let documents = client.get("/openapi/v3").expect(200);
    let paths = documents["paths"].as_object().expect("paths");
    assert!(paths.keys().all(|path| !path.contains("alpha") && !path.contains("beta")), "{paths:?}");
    assert!(!client.get("/metrics").text().contains("devicetaintrules"));
    // Another version is known nevertheless: the error names it.
    let mut other = claim("a", true);
    (other["apiVersion"], other["kind"]) = (json!("resource.k8s.io/v1beta1"), json!("ResourceClaim"));
    let why = client.post(&claims("v1"), &other).expect(400)["message"].clone();
    assert!(why.as_str().is_some_and(|why| why.contains("does not match the expected API version")), "{why}");
}

#[test]
fn other_versions_are_served_on_demand() {
    let directory = DataDir::new();
    let server = directory.start_with(&["--runtime-config=api/beta=true,coordination.k8s.io/v1beta1=false"]);
    let mut client = server.connect();
    assert_eq!(versions(&mut client, "resource.k8s.io"), ["v1", "v1beta2", "v1beta1"]);
    assert_eq!(versions(&mut client, "coordination.k8s.io"), ["v1"]);
    let resources = client.get(&format!("{DEVICES}/v1beta2")).expect(200);
    let names: Vec<&Value> = resources["resources"].as_array().expect("a list").iter().map(|of| &of["name"]).collect();
    assert_eq!(
        names,
        [
            "deviceclasses",
            "devicetaintrules",
            "devicetaintrules/status",
            "resourceclaims",
            "resourceclaims/status",
            "resourceclaimtemplates",
            "resourceslices"
        ]
    );
    let services = client.get("/apis/apiregistration.k8s.io/v1/apiservices").expect(200).to_string();
    assert!(services.contains("\"v1beta2.resource.k8s.io\"") && !services.contains("\"v1alpha3.resource.k8s.io\""));
    let document = client.get("/openapi/v3/apis/resource.k8s.io/v1beta1").expect(200);
    let schemas = &document["components"]["schemas"];
    assert!(schemas["io.k8s.api.resource.v1beta1.BasicDevice"]["properties"]["allNodes"].is_object());
    assert!(schemas["io.k8s.api.resource.v1.ResourceClaim"].is_null());
}

#[test]
fn objects_of_all_versions_are_the_same_objects() {
    let directory = DataDir::new();
    let server = directory.start_with(&[ALL]);
    let mut client = server.connect();
    let mut watch =
        server.connect().watch(&format!("{}?watch=1", claims("v1beta1"))).expect("an answer").expect("a watch");
    let made = client.post(&claims("v1"), &claim("new", false)).expect(201);
    let answer = client.post(&claims("v1beta1"), &claim("old", true));
    let warning = "299 - \"resource.k8s.io/v1beta1 ResourceClaim is deprecated in v1.35+, unavailable in v1.38+\"";
    assert_eq!(answer.header("warning"), Some(warning));
    let old = answer.expect(201);
    assert_eq!(old["apiVersion"], "resource.k8s.io/v1beta1");

    let exactly = json!({"deviceClassName": "c", "allocationMode": "ExactCount", "count": 2, "adminAccess": false});
    let mut flat = exactly.clone();
    flat["name"] = "r".into();
    let requests = |object: &Value| object["spec"]["devices"]["requests"].clone();
    for name in ["new", "old"] {
        for version in ["v1", "v1beta2"] {
            let shown = client.get(&format!("{}/{name}", claims(version))).expect(200);
            assert_eq!(requests(&shown), json!([{"name": "r", "exactly": exactly}]), "{name} {version}");
            assert_eq!(shown["apiVersion"], format!("resource.k8s.io/{version}"));
        }
        let shown = client.get(&format!("{}/{name}", claims("v1beta1"))).expect(200);
        assert_eq!(requests(&shown), json!([flat]), "{name}");
        let event = watch.next().expect("an event");
        assert_eq!((&event["type"], &event["object"]), (&json!("ADDED"), &shown));
    }
    let shown = client.get(&format!("{}/new", claims("v1beta1"))).expect(200);
    assert_eq!(shown["metadata"]["uid"], made["metadata"]["uid"]);
    let listed = client.get(&claims("v1beta1")).expect(200);
    assert_eq!(listed["kind"], "ResourceClaimList");
    assert_eq!(listed["items"].as_array().map(Vec::len), Some(2));

    // A device has all but its name in `basic`, in one version.
    let pool = json!({"name": "p", "generation": 1, "resourceSliceCount": 1});
    let slice = |device: Value| {
        let spec = json!({"driver": "d.io", "nodeName": "n", "pool": pool, "devices": [device]});
        json!({"metadata": {"name": "s"}, "spec": spec})
    };
    let basic = json!({"attributes": {"a": {"int": 1}}});
    let mut sent = slice(json!({"name": "a", "basic": basic}));
    sent["spec"]["allNodes"] = false.into(); // as absent, in this version alone
    client.post(&format!("{DEVICES}/v1beta1/resourceslices"), &sent).expect(201);
    let shown = client.get(&format!("{DEVICES}/v1/resourceslices/s")).expect(200);
    assert_eq!(shown["spec"]["devices"], json!([{"name": "a", "attributes": {"a": {"int": 1}}}]));

    // What is stored stays when the version is switched off.
    drop((client, watch));
    assert!(server.terminate().success());
    let server = directory.start();
    let mut client = server.connect();
    assert_eq!(client.get(&format!("{}/old", claims("v1beta1"))).status, 404);
    let shown = client.get(&format!("{}/old", claims("v1"))).expect(200);
    assert_eq!(requests(&shown), json!([{"name": "r", "exactly": exactly}]));
    assert_eq!(shown["metadata"]["managedFields"][0]["apiVersion"], "resource.k8s.io/v1beta1");
}

#[test]
fn fields_are_owned_in_each_version() {
    let directory = DataDir::new();
    let server = directory.start_with(&[ALL]);
    let mut client = server.connect();
    client.post(OLD_CANDIDATES, &candidate("c")).expect(201);
    let mut applied = json!({
        "apiVersion": "coordination.k8s.io/v1beta1", "kind": "LeaseCandidate", "metadata": {"name": "c"},
        "spec": {"emulationVersion": "1.1.0"},
    });
    let why = apply(&mut client, &format!("{CANDIDATES}/c"), "m", &applied).expect(409)["message"].clone();
    let conflict = "conflict with \"unknown\" using coordination.k8s.io/v1alpha2: .spec.emulationVersion";
    assert_eq!(why, format!("Apply failed with 1 conflict: {conflict}"));
    let forced = apply(&mut client, &format!("{CANDIDATES}/c"), "m&force=true", &applied).expect(200);
    let owners: Vec<&Value> =
        forced["metadata"]["managedFields"].as_array().expect("owners").iter().map(|of| &of["apiVersion"]).collect();
    assert_eq!(owners, ["coordination.k8s.io/v1beta1", "coordination.k8s.io/v1alpha2"]);
    // An owner in one version that applies less in another one gives fields up.
    (applied["apiVersion"], applied["spec"]) = (json!("coordination.k8s.io/v1alpha2"), candidate("c")["spec"].clone());
    apply(&mut client, &format!("{OLD_CANDIDATES}/d"), "m", &{
        applied["metadata"]["name"] = "d".into();
        applied["spec"]["renewTime"] = "2026-01-01T00:00:00.000000Z".into();
        applied.clone()
    })
    .expect(201);
    applied["apiVersion"] = json!("coordination.k8s.io/v1beta1");
    applied["spec"].as_object_mut().expect("an object").remove("renewTime");
    let less = apply(&mut client, &format!("{CANDIDATES}/d"), "m", &applied).expect(200);
    assert!(less["spec"]["renewTime"].is_null(), "{less}");
}

#[test]
fn webhooks_see_other_versions_of_the_same_objects() {
    let directory = DataDir::new();
    let server = directory.start_with(&[ALL]);
    let mut client = server.connect();
    let webhook = but_probes(|review| answer(review, true, json!({})));
    let rules = json!([{
        "operations": ["CREATE"], "apiGroups": ["resource.k8s.io"], "apiVersions": ["v1"], "resources": ["resourceclaims"]
    }]);
    configure(&mut client, MUTATING, "h", &[hook("h.example.com", &rules, json!({}))], &webhook);
    client.post(&claims("v1beta1"), &claim("a", true)).expect(201);
    let seen = asked(&webhook);
    assert_eq!(seen.len(), 1, "{seen:?}");
    assert_eq!((&seen[0]["kind"]["version"], &seen[0]["requestKind"]["version"]), (&json!("v1"), &json!("v1beta1")));
    assert_eq!(seen[0]["object"]["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"], "c");
}

#[test]
fn kinds_of_these_versions_have_their_rules() {
    let directory = DataDir::new();
    let server = directory.start_with(&[ALL]);
    let mut client = server.connect();
    let mut wrong = candidate("c");
    (wrong["spec"]["binaryVersion"], wrong["spec"]["leaseName"]) = (json!("v1"), json!(""));
    let causes = client.post(CANDIDATES, &wrong).expect(422)["details"]["causes"].clone();
    let fields: Vec<&Value> = causes.as_array().expect("causes").iter().map(|cause| &cause["field"]).collect();
    assert_eq!(fields, ["spec.leaseName", "spec.binaryVersion", "spec.binaryVersion"]);

    let versions = "/apis/internal.apiserver.k8s.io/v1alpha1/storageversions";
    client.post(versions, &json!({"metadata": {"name": "nodot"}})).expect(422);
    let mut version = client.post(versions, &json!({"metadata": {"name": "apps.deployments"}})).expect(201);
    let server_version = json!({"apiServerID": "a", "encodingVersion": "v1", "decodableVersions": ["v1"]});
    version["status"] = json!({"storageVersions": [server_version]});
    let why = client.put(&format!("{versions}/apps.deployments/status"), &version).expect(422)["message"].clone();
    assert!(why.as_str().is_some_and(|why| why.ends_with("the common encoding version is v1")), "{why}");
    version["status"]["commonEncodingVersion"] = "v1".into();
    client.put(&format!("{versions}/apps.deployments/status"), &version).expect(200);

    let rules = format!("{DEVICES}/v1alpha3/devicetaintrules");
    let taint = json!({"key": "example.com/a", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"});
    let mut rule = client.post(&rules, &json!({"metadata": {"name": "r"}, "spec": {"taint": taint}})).expect(201);
    assert_eq!(rule["metadata"]["generation"], 1);
    rule["spec"]["taint"]["effect"] = "NoSchedule".into();
    let changed = client.put(&format!("{DEVICES}/v1beta2/devicetaintrules/r"), &{
        rule["apiVersion"] = "resource.k8s.io/v1beta2".into();
        rule
    });
    let changed = changed.expect(200);
    assert_ne!(changed["spec"]["taint"]["timeAdded"], "2026-01-01T00:00:00Z", "another effect begins anew");
    assert_eq!(changed["metadata"]["generation"], 2);

    let requests = format!("{DEVICES}/v1alpha3/resourcepoolstatusrequests");
    let made = client.post(&requests, &json!({"metadata": {"name": "p"}, "spec": {"driver": "d.io"}})).expect(201);
    assert_eq!(made["spec"]["limit"], 100);
    let mut answered = made;
    answered["status"] = json!({"poolCount": 1});
    let mut answered = client.put(&format!("{requests}/p/status"), &answered).expect(200);
    answered["status"]["poolCount"] = json!(2);
    let why = client.put(&format!("{requests}/p/status"), &answered).expect(422)["message"].clone();
    let shown = "status: Invalid value: {\"PoolCount\":2,\"Pools\":null,\"Conditions\":null}: field is immutable";
    assert!(why.as_str().is_some_and(|why| why.ends_with(shown)), "{why}");
}
