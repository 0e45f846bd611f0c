//! Tests with snapshots that contain everything an import may find.

use std::collections::BTreeMap;
use std::fs::OpenOptions;

use flotilla_etcd_snapshot::{Ending, KeyValue, SnapshotWriter};
use flotilla_objects::api_version;
use flotilla_proto::value::Value;
use flotilla_proto::{catalogue, json, protobuf, value};

use super::*;
use crate::scratch::Scratch;

/// Writes a snapshot of these keys and values.
fn snapshot(directory: &Path, values: &[(&str, Vec<u8>)]) -> PathBuf {
    let path = directory.join("snapshot.db");
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path).unwrap();
    let mut writer = SnapshotWriter::new(file).unwrap();
    for (at, (key, value)) in values.iter().enumerate() {
        let (key, value, mod_revision) = (key.as_bytes().to_vec(), value.clone(), 2 + at as i64);
        writer.put(&KeyValue { key, value, mod_revision, ..KeyValue::default() }).unwrap();
    }
    writer.finish(&Ending { leases: Vec::new(), revision: 1_000 }).unwrap();
    path
}

/// Encodes an object as kube-apiserver stores it: a protobuf message, of its version or of `v1`.
fn message(api_version: &str, kind: &str, mut object: Value) -> Vec<u8> {
    let (group, version) = api_version::split(api_version);
    let of = catalogue::kind(group, version, kind).or_else(|| catalogue::kind(group, "v1", kind)).unwrap();
    flotilla_proto::conform::conform(&of.of, &mut object).unwrap();
    let mut out = Vec::new();
    protobuf::encode_object(&of.of, api_version, kind, &object, &mut out).unwrap();
    out
}

fn config_map(name: &str) -> Vec<u8> {
    let metadata = value!({"name": name, "namespace": "default", "uid": (format!("uid-{name}"))});
    message("v1", "ConfigMap", value!({"metadata": metadata, "data": {"a": "b"}}))
}

fn open(path: &Path, aside: Option<&Path>) -> Result<Input, InputError> {
    let aside = aside.map(|path| Aside::new(path, &path.with_extension("new")));
    Input::open(path, Hash::Demanded, "/registry", Keys::default(), aside)
}

/// Returns all imported objects by table and key.
fn taken(input: &mut Input) -> BTreeMap<String, Value> {
    let drafts = input.drafts().flat_map(|drafts| drafts.unwrap());
    let objects = drafts.map(|(table, key, draft)| (format!("{table} {key}"), json::parse(&draft.bytes).unwrap()));
    objects.collect()
}

#[test]
fn objects_are_imported_unchanged_and_other_keys_are_put_aside() {
    let directory = Scratch::new();
    let definition = value!({
        "kind": "CustomResourceDefinition", "apiVersion": "apiextensions.k8s.io/v1beta1",
        "metadata": {"name": "things.g.example"},
        "spec": {
            "group": "g.example", "version": "v1", "names": {"plural": "things", "kind": "Thing"},
            "scope": "Cluster", "preserveUnknownFields": false
        },
        "status": {
            "acceptedNames": {"plural": "things", "kind": "Thing"},
            "conditions": [{"type": "Established", "status": "True"}]
        }
    });
    let thing = value!({"apiVersion": "g.example/v1", "kind": "Thing", "metadata": {"name": "a", "uid": "u"}, "x": 1});
    let budget = value!({"metadata": {"name": "b", "namespace": "default"}, "spec": {"selector": {}}});
    let request = value!({"name": "r", "deviceClassName": "gpu"});
    let claim = value!({
        "metadata": {"name": "c", "namespace": "default"}, "spec": {"devices": {"requests": [request]}}
    });
    let path = snapshot(
        &directory,
        &[
            ("/registry/g.example/things/a", json::to_vec(&thing)),
            ("/registry/configmaps/default/a", config_map("a")),
            ("/registry/configmaps/default/other", config_map("b")),
            ("/registry/configmaps/default/broken", b"k8s\0\x0a\xff".to_vec()),
            ("/registry/poddisruptionbudgets/default/b", message("policy/v1beta1", "PodDisruptionBudget", budget)),
            ("/registry/resourceclaims/default/c", message("resource.k8s.io/v1beta1", "ResourceClaim", claim)),
            ("/registry/unknowns/default/a", b"{}".to_vec()),
            ("/registry/ranges/serviceips", b"x".to_vec()),
            ("/registry/apiextensions.k8s.io/customresourcedefinitions/things.g.example", json::to_vec(&definition)),
            ("/elsewhere/a", b"x".to_vec()),
        ],
    );
    let aside = directory.join("aside");
    let mut input = open(&path, Some(&aside)).unwrap();
    assert_eq!(input.revision(), Revision::new(1_000));
    let objects = taken(&mut input);
    let keys: Vec<_> = objects.keys().map(String::as_str).collect();
    assert_eq!(
        keys,
        [
            "apiextensions.k8s.io/customresourcedefinitions things.g.example",
            "configmaps default/a",
            "g.example/things a",
            "policy/poddisruptionbudgets default/b",
            "resource.k8s.io/resourceclaims default/c",
        ]
    );
    assert_eq!(objects["configmaps default/a"].str_at(&["metadata", "uid"]), "uid-a");
    assert_eq!(objects["g.example/things a"].int_at(&["x"]), Some(1));
    let budget = &objects["policy/poddisruptionbudgets default/b"];
    assert_eq!(budget.str_at(&["apiVersion"]), "policy/v1");
    assert_eq!(budget.list_at(&["spec", "selector", "matchExpressions"]).len(), 1);
    let claim = &objects["resource.k8s.io/resourceclaims default/c"];
    assert_eq!(claim.str_at(&["apiVersion"]), "resource.k8s.io/v1");
    let requests = claim.list_at(&["spec", "devices", "requests"]);
    assert_eq!(requests[0].str_at(&["exactly", "deviceClassName"]), "gpu");
    assert_eq!((input.report.taken_count(), input.report.refused_count()), (5, 3));
    assert_eq!(input.put_aside, Some((aside.clone(), 3)));
    let lines = std::fs::read_to_string(&aside).unwrap();
    let lines: Vec<Value> = lines.lines().map(|line| json::parse(line.as_bytes()).unwrap()).collect();
    let keys: Vec<_> = lines.iter().map(|line| line.str_at(&["key"])).collect();
    assert_eq!(
        keys,
        ["/registry/configmaps/default/other", "/registry/configmaps/default/broken", "/registry/unknowns/default/a"]
    );
    assert_eq!((lines[2].str_at(&["value"]), lines[2].int_at(&["revision"])), ("e30=", Some(8)));
}

#[test]
fn a_snapshot_with_encrypted_values_is_refused() {
    let directory = Scratch::new();
    let closed = b"k8s:enc:aescbc:v1:key1:xxxxxxxxxxxxxxxx".to_vec();
    let path = snapshot(
        &directory,
        &[
            ("/registry/configmaps/default/a", config_map("a")),
            ("/registry/secrets/default/a", closed.clone()),
            ("/registry/secrets/default/b", closed),
            ("/registry/secrets/default/c", b"k8s:enc:kms:v2:cloud:x".to_vec()),
        ],
    );
    let error = open(&path, None).err().unwrap().to_string();
    for part in [
        "2 by aescbc:v1 with the key \"key1\", such as /registry/secrets/default/a",
        "1 by kms:v2 with \"cloud\", which cannot be decrypted here",
    ] {
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn a_snapshot_of_something_else_is_refused() {
    let directory = Scratch::new();
    let path = snapshot(&directory, &[("/other/configmaps/default/a", config_map("a"))]);
    let error = open(&path, None).err().unwrap().to_string();
    assert!(error.contains("no key that begins with \"/registry/\", among 1 keys"), "{error}");
    let mut input = Input::open(&path, Hash::Demanded, "other/", Keys::default(), None).unwrap();
    assert_eq!(taken(&mut input).len(), 1);
}

#[test]
fn an_existing_aside_file_is_kept() {
    let directory = Scratch::new();
    let aside = directory.join("aside");
    std::fs::write(&aside, "mine").unwrap();
    let path = snapshot(&directory, &[("/registry/unknowns/default/a", b"{}".to_vec())]);
    let mut input = open(&path, Some(&aside)).unwrap();
    assert!(input.drafts().any(|drafts| matches!(drafts, Err(InputError::Aside { .. }))));
    assert_eq!(std::fs::read_to_string(&aside).unwrap(), "mine");
}
