//! Objects of all kinds, and the differences between those of two servers.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::json::Json;
use super::{MAPS, yaml};
use crate::support::{Connection, PATIENCE};

/// Resources whose objects affect other requests. With them, the other objects could not be created.
const DECIDING: [&str; 6] = [
    "apiservices",
    "flowschemas",
    "mutatingadmissionpolicybindings",
    "mutatingwebhookconfigurations",
    "validatingadmissionpolicybindings",
    "validatingwebhookconfigurations",
];

/// Resources that are computed, or that show the objects of another resource.
const NOT_KEPT: [&str; 2] = ["/api/v1/componentstatuses", "/apis/events.k8s.io/v1/events"];

/// Finds the scenarios of agreement with Kubernetes, which contain objects of all kinds.
fn scenarios(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("a file").path();
        match path.is_dir() {
            true => scenarios(&path, found),
            false => found.push(path),
        }
    }
    found.sort();
}

/// Returns the paths and bodies of a scenario's creations, in a namespace.
fn creations(path: &Path, namespace: &str) -> Vec<(String, String)> {
    let scenario = yaml::parse(&fs::read_to_string(path).expect("a text")).expect("a scenario");
    let steps = scenario.get("steps").and_then(Json::as_list).unwrap_or_default().iter();
    let requests = steps.flat_map(|step| step.as_map().unwrap_or_default());
    let made = requests.filter_map(|(line, options)| {
        let path = line.strip_prefix("POST ")?;
        let body = options.get("body").filter(|body| body.as_map().is_some())?.dump();
        let is_plain = options.get("headers").is_none() && options.get("repeat").is_none();
        let decides = DECIDING.iter().any(|resource| path.contains(resource)) || body.contains("\"Webhook\"");
        let (path, body) = (path.replace("$NS", namespace), body.replace("$NS", namespace));
        (is_plain && !decides && !path.contains(['?', '$']) && !body.contains("${")).then_some((path, body))
    });
    made.collect()
}

/// Creates the objects of the scenarios, as far as the server accepts them. Then adds ConfigMaps, pods and Secrets
/// until at least `least` objects exist. Returns how many were created.
pub(super) fn fill(connect: impl Fn() -> Connection, least: usize) -> usize {
    let mut files = Vec::new();
    scenarios(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/agreement/scenarios"), &mut files);
    let mut count = 0;
    let mut client = connect();
    // Custom resources are served only some time after their definition was created.
    for round in 0..2 {
        for (number, file) in files.iter().enumerate() {
            let namespace = format!("scenario-{number}");
            if round == 0 {
                client.post("/api/v1/namespaces", &json!({"metadata": {"name": namespace}})).expect(201);
            }
            for (path, body) in creations(file, &namespace) {
                match client.call("POST", &path, &[("Content-Type", "application/json")], body.as_bytes()) {
                    Ok(answer) => count += usize::from(answer.status == 201),
                    Err(_) => client = connect(), // the server closed the connection
                }
            }
        }
    }
    count + fill_up(&mut client, least.saturating_sub(count).max(100))
}

fn fill_up(client: &mut Connection, number: usize) -> usize {
    for number in 0..number {
        let name = format!("round-{number}");
        client.post(MAPS, &json!({"metadata": {"name": name}, "data": {"a": "x".repeat(number)}})).expect(201);
    }
    let hook = json!({
        "name": "hook.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
        "clientConfig": {"url": "https://127.0.0.1:1/"},
        "rules": [{"operations": ["*"], "apiGroups": ["none.example.com"], "apiVersions": ["*"], "resources": ["*"]}],
    });
    let hooks = json!({"metadata": {"name": "hooks"}, "webhooks": [hook]});
    for resource in ["validatingwebhookconfigurations", "mutatingwebhookconfigurations"] {
        client.post(&format!("/apis/admissionregistration.k8s.io/v1/{resource}"), &hooks).expect(201);
    }
    number + 2
}

/// All objects of a server, by the path of their resource, their namespace and their name.
#[derive(Default)]
pub(super) struct Objects(BTreeMap<(String, String, String), Value>);

impl Objects {
    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    /// Returns how many resources have objects.
    pub(super) fn kinds(&self) -> usize {
        self.0.keys().map(|(path, ..)| path).collect::<BTreeSet<_>>().len()
    }

    /// Returns an object. The path may include the namespace.
    pub(super) fn get(&self, path: &str, namespace: &str, name: &str) -> Option<&Value> {
        let path = path.replace(&format!("/namespaces/{namespace}/"), "/");
        self.0.get(&(path, namespace.to_owned(), name.to_owned()))
    }
}

/// Returns the root paths of the versions that a server prefers.
fn roots(client: &mut Connection) -> Vec<String> {
    let groups = client.get("/apis").expect(200);
    let groups = groups["groups"].as_array().expect("groups").iter();
    let preferred =
        groups.map(|group| format!("/apis/{}", group["preferredVersion"]["groupVersion"].as_str().unwrap()));
    std::iter::once("/api/v1".to_owned()).chain(preferred).collect()
}

/// Lists a collection. Retries while the server cannot list a new custom resource yet.
fn listed(client: &mut Connection, path: &str) -> Value {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let answer = client.get(path);
        if answer.status != 429 || Instant::now() > deadline {
            return answer.expect(200);
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Reads all objects of a server.
pub(super) fn everything(client: &mut Connection) -> Objects {
    let mut all = Objects::default();
    for root in roots(client) {
        let answer = client.get(&root);
        if answer.status != 200 {
            continue; // a group of another server that does not run
        }
        for resource in answer.json()["resources"].as_array().expect("resources") {
            let (name, verbs) = (resource["name"].as_str().expect("a name"), &resource["verbs"]);
            let path = format!("{root}/{name}");
            let can_list = verbs.as_array().is_some_and(|verbs| verbs.iter().any(|verb| verb == "list"));
            if !can_list || NOT_KEPT.contains(&&*path) {
                continue;
            }
            let mut list = listed(client, &path);
            for object in list["items"].as_array_mut().expect("items").iter_mut().map(Value::take) {
                let of = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
                let key = (path.clone(), of("namespace"), of("name"));
                all.0.insert(key, object);
            }
        }
    }
    all
}

/// Returns whether API servers write this object at every start, so that it is not part of the imported data.
fn is_of_servers((path, namespace, name): &(String, String, String), object: &Value) -> bool {
    match path.rsplit('/').next().unwrap_or_default() {
        // The server's address, its trusted certificates, and its lease.
        "leases" => namespace == "kube-system" && name.starts_with("apiserver-"),
        "endpoints" | "endpointslices" => namespace == "default" && name == "kubernetes",
        "configmaps" => namespace == "kube-system" && name == "extension-apiserver-authentication",
        // These name the server of each group, and whether it is available.
        "apiservices" => true,
        // docs/moving.md: findings about addresses and ports at the start.
        "events" => {
            let by = object["source"]["component"].as_str().or(object["reportingComponent"].as_str());
            matches!(by, Some("ipallocator-repair-controller" | "portallocator-repair-controller"))
        }
        _ => false,
    }
}

/// Returns an object without its revision, for comparison.
fn compared(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("resourceVersion");
    }
    object
}

/// Returns the differences between two sets of objects, one per line.
pub(super) fn differences(before: &Objects, after: &Objects) -> Vec<String> {
    let all = before.0.iter().chain(&after.0);
    let keys: BTreeSet<_> = all.filter(|(key, object)| !is_of_servers(key, object)).map(|(key, _)| key).collect();
    let mut found = Vec::new();
    for key in keys {
        let shown = format!("{} {}/{}", key.0, key.1, key.2);
        match (before.0.get(key), after.0.get(key)) {
            (Some(old), Some(new)) => {
                let (old, new) = (compared(old), compared(new));
                place(&shown, &old, &new, &mut found);
            }
            (Some(_), None) => found.push(format!("{shown} is missing")),
            (None, new) => found.push(format!("{shown} did not exist: {}", new.unwrap_or(&Value::Null))),
        }
    }
    found
}

/// Adds every place where two values differ.
fn place(at: &str, old: &Value, new: &Value, found: &mut Vec<String>) {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            for key in old.keys().chain(new.keys().filter(|key| !old.contains_key(*key))) {
                // docs/moving.md: times that were written as zero are absent.
                if key.ends_with("Time") && old.get(key) == Some(&Value::Null) && !new.contains_key(key) {
                    continue;
                }
                let absent = Value::String("<absent>".into());
                place(&format!("{at}.{key}"), old.get(key).unwrap_or(&absent), new.get(key).unwrap_or(&absent), found);
            }
        }
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
            for (number, (old, new)) in old.iter().zip(new).enumerate() {
                place(&format!("{at}[{number}]"), old, new, found);
            }
        }
        _ if old == new => {}
        _ => found.push(format!("{at}: {old} became {new}")),
    }
}
