//! Facts on the built-in resources that the catalogue does not state: how they are stored.

use flotilla_proto::catalogue;
use flotilla_proto::schema::{Kind, Ref, Resource};

/// Tables that admission of other objects looks into. What is decided by them must be current, which is known of the
/// group `default` and of that of the object: so they stay where they are.
pub const CONSULTED: [&str; 15] = [
    "apiextensions.k8s.io/customresourcedefinitions",
    "limitranges",
    "namespaces",
    "networking.k8s.io/ingressclasses",
    "networking.k8s.io/ipaddresses",
    "networking.k8s.io/servicecidrs",
    "node.k8s.io/runtimeclasses",
    "rbac.authorization.k8s.io/clusterrolebindings",
    "rbac.authorization.k8s.io/clusterroles",
    "rbac.authorization.k8s.io/rolebindings",
    "rbac.authorization.k8s.io/roles",
    "resourcequotas",
    "scheduling.k8s.io/priorityclasses",
    "serviceaccounts",
    "storage.k8s.io/storageclasses",
];

/// Kinds that are stored in another version than one that serves them: served (group, version, resource), stored
/// (group, version, kind).
const STORED_ELSEWHERE: &[([&str; 3], [&str; 3])] = &[
    (["autoscaling", "v1", "horizontalpodautoscalers"], ["autoscaling", "v2", "HorizontalPodAutoscaler"]),
    (["events.k8s.io", "v1", "events"], ["", "v1", "Event"]),
];

/// The kind in which the objects of a resource are stored.
pub fn stored_kind(resource: &'static Resource) -> Ref<Kind> {
    let own = [&*resource.group, &*resource.version, &*resource.name];
    let elsewhere = STORED_ELSEWHERE.iter().find(|(served, _)| *served == own);
    match elsewhere.and_then(|(_, [group, version, kind])| catalogue::kind(group, version, kind)) {
        Some(kind) => Ref::Static(kind),
        None => resource.kind.clone(),
    }
}

/// Group and plural name of a built-in resource as it is stored, by that name and, if it is given, the group; without
/// one the core group comes first, as in kubectl.
pub fn stored_resource(group: Option<&str>, name: &str) -> Option<(&'static str, &'static str)> {
    let is_asked = |resource: &&Resource| resource.name == name && group.is_none_or(|group| resource.group == group);
    let is_stored = |resource: &&'static Resource| {
        let stored = stored_kind(resource);
        (&stored.group, &stored.version) == (&resource.kind.group, &resource.kind.version)
    };
    let found = catalogue::resources().filter(is_asked).filter(is_stored);
    found.map(|resource| (&*resource.group, &*resource.name)).min()
}
