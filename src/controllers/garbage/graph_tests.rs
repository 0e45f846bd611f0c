use flotilla_proto::value;

use super::*;

fn item(uid: &str) -> Item {
    Item { table: 0, key: Key::namespaced("n", uid), uid: uid.into() }
}

fn owned(owners: &[(&str, bool)]) -> Value {
    let references: Vec<Value> =
        owners.iter().map(|(uid, blocked)| value!({"uid": (*uid), "blockOwnerDeletion": (*blocked)})).collect();
    let mut metadata = Value::object();
    metadata.set_at(&["ownerReferences"], references);
    metadata
}

fn ending(finalizer: &str) -> Value {
    value!({"deletionTimestamp": "2030-01-01T00:00:00Z", "finalizers": [finalizer]})
}

#[test]
fn dependents_are_checked_when_their_owner_is_removed() {
    let mut graph = Graph::default();
    assert_eq!(graph.note(item("child"), &owned(&[("owner", false)])), [item("child")], "its owner may not exist");
    assert_eq!(graph.note(item("child"), &owned(&[("owner", false)])), [], "nothing new");
    assert!(graph.knows("child") && !graph.knows("owner"));
    assert_eq!(graph.forget("owner"), [item("child")]);
    assert_eq!(graph.forget("child"), []);
    assert!(!graph.knows("child") && graph.dependents("owner").count() == 0);
}

#[test]
fn an_owner_in_foreground_deletion_is_checked_when_dependents_are_removed() {
    let mut graph = Graph::default();
    graph.note(item("a"), &owned(&[("owner", true)]));
    graph.note(item("b"), &owned(&[("owner", false)]));
    assert_eq!(graph.note(item("owner"), &ending(FOREGROUND)), [item("owner"), item("a"), item("b")]);
    assert_eq!(graph.blocking("owner"), [(item("a"), false)]);
    assert_eq!(graph.note(item("a"), &owned(&[])), [item("owner")], "it lost its owner");
    assert!(graph.blocking("owner").is_empty());
    assert_eq!(graph.forget("b"), [item("owner")]);
    assert_eq!(graph.forget("owner"), []);
}

#[test]
fn orphaning_comes_first_and_a_lost_table_leaves_nothing() {
    let mut graph = Graph::default();
    let mut both = ending(FOREGROUND);
    both.set_at(&["finalizers"], value!([FOREGROUND, ORPHAN]));
    assert_eq!(waits(&both), Some(ORPHAN));
    graph.note(item("owner"), &both);
    graph.note(item("child"), &owned(&[("owner", true), ("gone", false)]));
    assert_eq!(graph.all().count(), 2);
    graph.forget_table(0);
    assert_eq!(graph.all().count(), 0);
    assert!(graph.dependents.is_empty() && graph.nodes.is_empty());
}
