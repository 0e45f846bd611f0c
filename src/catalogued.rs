//! Facts about how built-in resources are stored, which the catalogue does not state.

use flotilla_proto::catalogue;
use flotilla_proto::schema::{Kind, Ref, Resource};

use crate::kinds;

/// Tables that admission of other objects reads. These reads must be current, and a member catches up only with the
/// group `default` and the object's own group, so these tables always stay in `default`. A test of `tables::lookup`
/// compares the list with the tables that the code reads.
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

/// Returns the kind in which the objects of a resource are stored.
pub fn stored_kind(resource: &'static Resource) -> Ref<Kind> {
    let stated = kinds::strategy(&resource.group, &resource.name).stored_as;
    if let Some(kind) = stated.and_then(|(group, version, kind)| catalogue::kind(group, version, kind)) {
        return Ref::Static(kind);
    }
    let versions = catalogue::group(&resource.group).map_or(&[][..], |group| group.versions).iter();
    let first = versions.flat_map(|version| version.resources).find(|of| of.name == resource.name);
    first.unwrap_or(resource).kind.clone()
}

/// Returns group and plural name of the stored form of a built-in resource. Returns `None` if there is none. Without a
/// group, the core group comes first, as in kubectl.
pub fn stored_resource(group: Option<&str>, name: &str) -> Option<(&'static str, &'static str)> {
    let is_asked = |resource: &&Resource| resource.name == name && group.is_none_or(|group| resource.group == group);
    let is_stored = |resource: &&'static Resource| {
        let stored = stored_kind(resource);
        (&stored.group, &stored.version) == (&resource.kind.group, &resource.kind.version)
    };
    let found = catalogue::resources().filter(is_asked).filter(is_stored);
    found.map(|resource| (&*resource.group, &*resource.name)).min()
}
