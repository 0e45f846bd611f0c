//! The names of limits in quotas, and the resources that each of them counts.

use crate::rules::resources::{is_huge_pages, is_native};

/// Resources of the core group that quotas count under their plain name, too.
pub(super) const PLAIN: [&str; 7] =
    ["configmaps", "persistentvolumeclaims", "pods", "replicationcontrollers", "resourcequotas", "secrets", "services"];
/// Names that count amounts of pods, beside the number of pods.
const OF_PODS: [&str; 9] = [
    "cpu",
    "ephemeral-storage",
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];
/// Suffix of a name after the name of a storage class.
pub(super) const OF_STORAGE_CLASS: &str = ".storageclass.storage.k8s.io/";
/// Suffix of a name after the name of a device class.
pub(super) const OF_DEVICE_CLASS: &str = ".deviceclass.resource.k8s.io/devices";
/// Prefix of the extended resources by which pods request devices of a class.
pub(super) const IMPLICIT_CLASS: &str = "deviceclass.resource.kubernetes.io/";

/// Returns the resources (group and resource) whose objects a name counts, as far as the name determines them; empty
/// for an unknown name.
pub fn resources_of(name: &str) -> Vec<(String, String)> {
    let core = |resource: &str| vec![(String::new(), resource.to_owned())];
    if let Some(counted) = name.strip_prefix("count/") {
        let (resource, group) = counted.split_once('.').unwrap_or((counted, ""));
        return vec![(group.to_owned(), resource.to_owned())];
    }
    if PLAIN.contains(&name) {
        return core(name);
    }
    match name {
        "services.loadbalancers" | "services.nodeports" => return core("services"),
        "requests.storage" => return core("persistentvolumeclaims"),
        _ => {}
    }
    if name.ends_with(OF_DEVICE_CLASS) {
        return vec![("resource.k8s.io".into(), "resourceclaims".into())];
    }
    let of_class = name.split_once(OF_STORAGE_CLASS).map(|(_, rest)| rest);
    if matches!(of_class, Some("requests.storage" | "persistentvolumeclaims")) {
        return core("persistentvolumeclaims");
    }
    if OF_PODS.contains(&name) || is_huge_pages(name) {
        return core("pods");
    }
    match name.strip_prefix("requests.") {
        Some(of) if is_huge_pages(of) || !is_native(name) || of.starts_with(IMPLICIT_CLASS) => core("pods"),
        _ => Vec::new(),
    }
}

/// Returns whether a name counts objects of a resource.
pub fn counts(name: &str, group: &str, resource: &str) -> bool {
    resources_of(name).iter().any(|(g, r)| (&**g, &**r) == (group, resource))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_determine_the_counted_resources() {
        for (name, group, resource) in [
            ("pods", "", "pods"),
            ("count/pods", "", "pods"),
            ("count/deployments.apps", "apps", "deployments"),
            ("count/widgets.sub.example.com", "sub.example.com", "widgets"),
            ("limits.memory", "", "pods"),
            ("hugepages-2Mi", "", "pods"),
            ("requests.hugepages-2Mi", "", "pods"),
            ("requests.example.com/gpu", "", "pods"),
            ("requests.storage", "", "persistentvolumeclaims"),
            ("gold.storageclass.storage.k8s.io/requests.storage", "", "persistentvolumeclaims"),
            ("services.nodeports", "", "services"),
            ("gpu.deviceclass.resource.k8s.io/devices", "resource.k8s.io", "resourceclaims"),
            ("count/resourceclaims.resource.k8s.io", "resource.k8s.io", "resourceclaims"),
        ] {
            assert_eq!(resources_of(name), [(group.to_owned(), resource.to_owned())], "{name}");
            assert!(counts(name, group, resource) && !counts(name, "other", resource));
        }
        for name in ["example.com/gpu", "limits.example.com/gpu", "gold.storageclass.storage.k8s.io/bogus", "storage"] {
            assert!(resources_of(name).is_empty(), "{name}");
        }
    }
}
