//! The objects that clients write, and the knowledge about them that all clients share.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde_json::{Value, json};

use super::{Client, custom};
use crate::history::{Key, Revision, Scope, Seen, Table};
use crate::support::PATIENCE;

pub const NAMESPACES: [&str; 3] = ["faults-0", "faults-1", "faults-2"];
/// The number of objects in each table and namespace.
pub const NAMES: usize = 5;
/// The prefix of names of the clients' own objects. Other objects belong to controllers.
const PREFIX: &str = "f-";
/// The name of the object that is written last.
const LAST: &str = "f-last";
const VALUE: &str = "value";

/// The latest version of an object that any client saw.
#[derive(Clone)]
pub struct Known {
    pub seen: Seen,
    pub object: Value,
}

/// The knowledge that clients share. Without it, most of their writes would conflict.
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

    /// Returns the highest revision of a table that any client saw.
    pub fn revision(&self, table: Table) -> Option<Revision> {
        let known = self.0.lock();
        known.iter().filter(|(key, _)| key.table == table).map(|(_, known)| known.seen.revision).max()
    }
}

pub fn key(table: Table, namespace: &str, name: &str) -> Key {
    Key { table, namespace: namespace.to_owned(), name: name.to_owned() }
}

/// Returns the keys of the objects that are written last, in every table and namespace.
pub fn last_keys() -> Vec<Key> {
    let of_table = |table| NAMESPACES.into_iter().map(move |namespace| key(table, namespace, LAST));
    Table::ALL.into_iter().flat_map(of_table).collect()
}

/// Returns the key of an object. Returns `None` if the object is not one of the clients' own.
pub fn key_of(table: Table, object: &Value) -> Option<Key> {
    let text = |field: &str| object["metadata"][field].as_str();
    let own = text("name").filter(|name| name.starts_with(PREFIX))?;
    Some(key(table, text("namespace")?, own))
}

pub fn seen(object: &Value) -> Option<Seen> {
    let metadata = &object["metadata"];
    let mut value = metadata["annotations"][VALUE].as_str()?.to_owned();
    if custom::is_unlike_its_schema(object) {
        // The checker reports this value, because no client wrote it.
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

/// Returns the object with another value.
pub fn changed(known: &Known, value: &str) -> Value {
    let mut object = known.object.clone();
    object["metadata"]["annotations"][VALUE] = json!(value);
    custom::write(&mut object);
    object
}

/// Returns the path for lists and watches of this scope.
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

/// Creates the namespaces, and waits for their default ServiceAccounts, without which no pods can be created.
pub fn make_namespaces(client: &mut Client) {
    let deadline = Instant::now() + PATIENCE;
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
