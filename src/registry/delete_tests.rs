use flotilla_cluster::{Options, Store};
use flotilla_proto::{conform, value};
use futures_util::FutureExt as _;

use super::super::deletion_step::set_finalizers;
use super::*;
use crate::access::User;
use crate::config::PortRange;
use crate::registry::Incoming;
use crate::request::Propagation;
use crate::scratch::Scratch;
use crate::served::Resources;
use crate::tables::Tables;

#[test]
fn the_next_deletion_finishes_one_that_was_begun() {
    let pods = Resources::builtin().find("", "v1", "pods").unwrap();
    let step = |running: Option<i64>, finalizers: Value, asked: Option<i64>| {
        let mut pod = value!({"metadata": {"name": "p", "deletionTimestamp": "2026-01-01T00:00:00Z"}});
        running.into_iter().for_each(|seconds| pod.set_at(&["metadata", "deletionGracePeriodSeconds"], seconds));
        pod.set_at(&["metadata", "finalizers"], finalizers);
        step(&pods, &pod, &mut DeleteOptions { grace_seconds: asked, ..DeleteOptions::default() })
    };
    for asked in [None, Some(0), Some(30)] {
        assert!(matches!(step(Some(0), value!([]), asked), DeletionStep::Remove), "{asked:?}");
        assert!(matches!(step(None, value!([]), asked), DeletionStep::Remove), "{asked:?}");
        assert!(
            matches!(step(Some(0), value!(["example.com/held"]), asked), DeletionStep::Mark(_, false)),
            "{asked:?}"
        );
    }
    assert!(matches!(step(Some(30), value!([]), None), DeletionStep::Wait));
    assert!(matches!(step(Some(30), value!([]), Some(60)), DeletionStep::Wait));
    assert!(matches!(step(Some(30), value!([]), Some(5)), DeletionStep::Mark(_, false)));
    assert!(matches!(step(Some(30), value!([]), Some(0)), DeletionStep::Mark(_, true)));
}

#[test]
fn finalizers_that_stay_the_same_keep_their_order() {
    let maps = Resources::builtin().find("", "v1", "configmaps").unwrap();
    let after = |finalizers: Value, propagation| {
        let mut map = value!({"metadata": {"name": "a", "finalizers": finalizers}});
        set_finalizers(&maps, &mut map, propagation);
        map.at(&["metadata", "finalizers"]).clone()
    };
    let foreground = value!(["kubernetes", FOREGROUND, "a/b", "a/c"]);
    assert_eq!(after(foreground.clone(), None), foreground);
    assert_eq!(after(foreground.clone(), Some(Propagation::Foreground)), foreground);
    assert_eq!(after(foreground, Some(Propagation::Orphan)), value!(["kubernetes", "a/b", "a/c", ORPHAN]));
}

fn caller() -> Caller {
    Caller::new(Arc::new(User::default()), "test")
}

async fn create(registry: &Registry, target: Target<'_>, mut value: Value) -> Arc<Object> {
    conform::conform(target.served.of(), &mut value).unwrap();
    let incoming = Incoming { value, ..Incoming::default() };
    registry.create(target, incoming, &WriteOptions::default(), &mut caller()).await.unwrap();
    registry.tables.current(target.served, target.namespace, target.name).unwrap()
}

/// Between the mark and the removal of a pod another client removes it, and creates one with the same name.
#[actix_web::test]
async fn a_deletion_takes_no_other_object_that_has_the_name_by_now() {
    let dir = Scratch::new();
    let store = Store::open(Options::new(dir.join("store"))).await.unwrap();
    let registry = Registry::new(Tables::new(store.clone()), PortRange::NODE_PORTS);
    let namespaces = registry.tables.resources.find("", "v1", "namespaces").unwrap();
    let namespace = Target::object(&namespaces, "", "n");
    create(&registry, namespace, value!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}})).await;
    let pods = registry.tables.resources.find("", "v1", "pods").unwrap();
    let target = Target::object(&pods, "n", "p");
    let pod = value!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "n"},
        "spec": {"containers": [{"name": "c", "image": "i"}]}});

    for of_a_state in [false, true] {
        // Now and then the removal is on its way before the other client comes. Then the test begins again.
        let mut attempts = 1..=100;
        while !is_overtaken(&registry, target, &pod, of_a_state).await {
            assert!(attempts.next().is_some(), "no deletion was overtaken");
        }
    }
    store.shutdown().await;
}

/// Deletes a pod while another client removes it first and creates another one. Returns `false` if the other client
/// came too late to remove it.
async fn is_overtaken(registry: &Registry, target: Target<'_>, pod: &Value, of_a_state: bool) -> bool {
    let current = || registry.tables.current(target.served, target.namespace, target.name);
    let seen = create(registry, target, pod.clone()).await;
    let resource_version = of_a_state.then(|| seen.revision().to_string());
    let (options, mut deleting) = (DeleteOptions { resource_version, ..DeleteOptions::default() }, caller());
    let deletion = registry.delete(target, &options, &mut deleting);
    tokio::pin!(deletion);
    if let Some(deleted) = deletion.as_mut().now_or_never() {
        assert!(deleted.unwrap().gone);
        return false;
    }
    while current().is_some_and(|object| object.revision() == seen.revision()) {
        tokio::task::yield_now().await;
    }
    if let Err(error) = registry.delete(target, &DeleteOptions::default(), &mut caller()).await {
        assert_eq!((error.code, deletion.await.unwrap().gone), (404, true));
        return false;
    }
    let other = create(registry, target, pod.clone()).await;

    let deleted = deletion.await.unwrap();
    assert!(deleted.gone);
    assert_eq!(deleted.uid, stored_tree(&seen).unwrap().str_at(&["metadata", "uid"]));
    assert_eq!(current().expect("the other pod").revision(), other.revision());
    registry.delete(target, &DeleteOptions::default(), &mut caller()).await.unwrap();
    true
}
