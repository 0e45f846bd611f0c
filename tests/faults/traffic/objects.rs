//! The objects that clients write, and what all of them know together.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde_json::{Value, json};

use super::{Client, custom};
use crate::history::{Key, Revision, Scope, Seen, Table};

pub const NAMESPACES: [&str; 3] = ["faults-0", "faults-1", "faults-2"];
/// Of objects in a table and namespace.
pub const NAMES: usize = 5;
/// Names of objects that are no controller's begin with this.
const PREFIX: &str = "f-";
/// Of what is written last of all.
const LAST: &str = "f-last";
const VALUE: &str = "value";
const PREPARE_TIMEOUT: Duration = Duration::from_secs(30);

/// An object as it was seen last by any client.
#[derive(Clone)]
pub struct Known {
    pub seen: Seen,
    pub object: Value,
}

/// What clients know together, so that they do not mostly meet conflicts.
#[derive(Default)]
pub struct Directory(Mutex<HashMap<Key, Known>>);

impl Directory {
    pub fn get(&self, key: &Key) -> Option<Known> {
        self.0.lock().get(key).cloned()
    }

    pub fn put(&self, key: &Key, object: Value) {
        if let Some(seen) = seen(&object) {
            self.0.lock().insert(key.clone(), Known { seen, object });
        }
    }

    pub fn forget(&self, key: &Key) {
        self.0.lock().remove(key);
    }

    /// The highest revision of a table that any client saw.
    pub fn revision(&self, table: Table) -> Option<Revision> {
        let known = self.0.lock();
        known.iter().filter(|(key, _)| key.table == table).map(|(_, known)| known.seen.revision).max()
    }
}

pub fn key(table: Table, namespace: &str, name: &str) -> Key {
    Key { table, namespace: namespace.to_owned(), name: name.to_owned() }
}

/// What is written last of all, in every table and namespace.
pub fn last_keys() -> Vec<Key> {
    let of_table = |table| NAMESPACES.into_iter().map(move |namespace| key(table, namespace, LAST));
    Table::ALL.into_iter().flat_map(of_table).collect()
}

/// The key of an object of a table, unless it is not one of the clients' own.
pub fn key_of(table: Table, object: &Value) -> Option<Key> {
    let text = |field: &str| object["metadata"][field].as_str();
    let own = text("name").filter(|name| name.starts_with(PREFIX))?;
    Some(key(table, text("namespace")?, own))
}

pub fn seen(object: &Value) -> Option<Seen> {
    let metadata = &object["metadata"];
    let mut value = metadata["annotations"][VALUE].as_str()?.to_owned();
    if custom::is_unlike_its_schema(object) {
        // Nobody wrote that.
        value = format!("{value}, with {}", object["spec"]);
    }
    Some(Seen {
        revision: metadata["resourceVersion"].as_str()?.parse().ok()?,
        uid: metadata["uid"].as_str()?.to_owned(),
        value,
    })
}

pub fn new_object(key: &Key, value: &str) -> Value {
    let metadata = json!({"name": key.name, "namespace": key.namespace, "annotations": {VALUE: value}});
    match key.table {
        Table::CONFIG_MAPS => json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"text": "x".repeat(500)},
        }),
        Table::LEASES => json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata,
            "spec": {"holderIdentity": "x", "leaseDurationSeconds": 10},
        }),
        Table::PODS => json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": metadata,
            "spec": {"automountServiceAccountToken": false, "containers": [{"name": "x", "image": "x"}]},
        }),
        Table::EVENTS => json!({
            "apiVersion": "v1", "kind": "Event", "metadata": metadata, "reason": "x", "type": "Normal",
            "involvedObject": {"kind": "Pod", "namespace": key.namespace, "name": "x"},
        }),
        Table::WIDGETS => custom::new_object(metadata),
        other => panic!("no objects of {other:?} are made"),
    }
}

/// The object with another value.
pub fn changed(known: &Known, value: &str) -> Value {
    let mut object = known.object.clone();
    object["metadata"]["annotations"][VALUE] = json!(value);
    custom::write(&mut object);
    object
}

/// Where a scope is listed and watched.
pub fn collection(scope: &Scope) -> String {
    let (prefix, resource) = match scope.table {
        Table::CONFIG_MAPS => ("/api/v1", "configmaps"),
        Table::LEASES => ("/apis/coordination.k8s.io/v1", "leases"),
        Table::PODS => ("/api/v1", "pods"),
        Table::EVENTS => ("/api/v1", "events"),
        Table::WIDGETS => (custom::PREFIX, "widgets"),
        other => panic!("{other:?} are not served"),
    };
    match &scope.namespace {
        None => format!("{prefix}/{resource}"),
        Some(namespace) => format!("{prefix}/namespaces/{namespace}/{resource}"),
    }
}

pub fn collection_of(key: &Key) -> String {
    collection(&Scope { table: key.table, namespace: Some(key.namespace.clone()) })
}

pub fn path(key: &Key) -> String {
    format!("{}/{}", collection_of(key), key.name)
}

/// Makes the namespaces, and waits for the accounts without which there are no pods.
pub fn make_namespaces(client: &mut Client) {
    let deadline = Instant::now() + PREPARE_TIMEOUT;
    for namespace in NAMESPACES {
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}).to_string();
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/default");
        loop {
            let (_, account) = client.call("GET", &path, b"");
            if account.is_some_and(|answer| answer.status == 200) {
                break;
            }
            assert!(Instant::now() < deadline, "no account in {namespace}: {:?}", client.call("GET", &path, b"").1);
            client.call("POST", "/api/v1/namespaces", object.as_bytes());
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}
