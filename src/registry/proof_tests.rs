use flotilla_cluster::{Options, Store};
use flotilla_proto::value;

use super::*;
use crate::access::rbac;
use crate::config::PortRange;
use crate::scratch::Scratch;
use crate::tables::Tables;

/// Updates that depend on other objects, regardless of their changes: group, resource, subresource.
const DEPENDENT: [(&str, &str, &str); 7] = [
    ("", "persistentvolumeclaims", ""),
    ("", "persistentvolumeclaims", "status"),
    ("", "pods", "ephemeralcontainers"),
    ("", "pods", "resize"),
    ("resource.k8s.io", "resourceclaims", ""),
    ("scheduling.k8s.io", "priorityclasses", ""),
    ("", "services", ""),
];

#[actix_web::test]
async fn updates_depend_on_other_objects_as_the_plugins_state() {
    let dir = Scratch::new();
    let store = Store::open(Options::new(dir.join("store"))).await.unwrap();
    let registry = Registry::new(Tables::new(store.clone()), PortRange::NODE_PORTS);
    for served in registry.tables.resources.stored() {
        let (group, resource) = (served.group(), &*served.resource.name);
        let parts = served.resource.subresources.iter().map(|part| &*part.name);
        for subresource in parts.chain([""]) {
            let target = Target::resource(&served, "").with_subresource(subresource);
            let is_dependent = DEPENDENT.contains(&(group, resource, subresource))
                || group == rbac::GROUP
                || (group, resource) == ("", "services");
            assert_eq!(registry.is_proved_by_writing(target), !is_dependent, "{group}/{resource}/{subresource}");
        }
    }
    store.shutdown().await;
}

#[actix_web::test]
async fn an_update_of_a_pod_depends_on_other_objects_when_it_changes_what_they_restrict() {
    let dir = Scratch::new();
    let store = Store::open(Options::new(dir.join("store"))).await.unwrap();
    let registry = Registry::new(Tables::new(store.clone()), PortRange::NODE_PORTS);
    let pods = registry.tables.resources.of_resource("", "pods").unwrap();
    let target = |subresource| Target::object(&pods, "a", "b").with_subresource(subresource);
    let old = value!({"spec": {"containers": [{"name": "c", "image": "d"}]}});
    let mut labelled = old.clone();
    labelled.set_at(&["metadata", "labels"], value!({"e": "f"}));
    assert!(!registry.admission.change_needs_tables(target(""), &labelled, &old));
    let mut ending = old.clone();
    ending.set_at(&["spec", "activeDeadlineSeconds"], 1);
    assert!(registry.admission.change_needs_tables(target(""), &ending, &old), "it moves to another quota");
    let mut other = old.clone();
    other.set_at(&["spec", "containers"], value!([{"name": "c", "image": "g"}]));
    assert!(registry.admission.change_needs_tables(target(""), &other, &old), "the standard of the namespace counts");
    assert!(registry.admission.change_needs_tables(target("ephemeralcontainers"), &other, &old));
    assert!(!registry.admission.change_needs_tables(target("status"), &other, &old));
    store.shutdown().await;
}

#[actix_web::test]
async fn a_status_that_grants_access_as_an_administrator_depends_on_the_namespace() {
    let dir = Scratch::new();
    let store = Store::open(Options::new(dir.join("store"))).await.unwrap();
    let registry = Registry::new(Tables::new(store.clone()), PortRange::NODE_PORTS);
    let claims = registry.tables.resources.of_resource("resource.k8s.io", "resourceclaims").unwrap();
    let target = Target::object(&claims, "a", "b");
    let result = |is_admin: bool| value!({"adminAccess": is_admin});
    let claim = |result: Value| value!({"status": {"allocation": {"devices": {"results": [result]}}}});
    let (granting, plain) = (claim(result(true)), claim(result(false)));
    let depends = |subresource, object: &Value, old: &Value| {
        registry.is_decided_by_tables(target.with_subresource(subresource), object, old)
    };
    assert!(depends("status", &granting, &plain));
    assert!(!depends("status", &granting, &granting), "it had this access before");
    assert!(!depends("status", &plain, &granting));
    assert!(!depends("", &granting, &plain), "the object itself leaves the status as it is");
    store.shutdown().await;
}
