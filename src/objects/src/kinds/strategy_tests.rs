//! Compares strategies with the catalogue: both must agree about each kind.

use flotilla_proto::{catalogue, value};

use super::strategy;

#[test]
fn objects_leave_their_status_to_the_subresource_that_writes_it() {
    for resource in catalogue::resources() {
        let place = format!("{}/{}", resource.group, resource.name);
        let has_status = resource.subresources.iter().any(|subresource| subresource.name == "status");
        let strategy = strategy(&resource.group, &resource.name);
        let leaves = |subresource: &str, field: &str| strategy.reset_fields(subresource).contains(&[field].as_slice());
        assert_eq!(leaves("", "status"), has_status, "{place}");
        assert_eq!(leaves("status", "spec"), has_status, "{place}");
        assert!(has_status || !strategy.status, "{place}");
        for (name, _) in strategy.resets.iter().filter(|(name, _)| !name.is_empty()) {
            assert!(resource.subresources.iter().any(|subresource| subresource.name == *name), "{place}/{name}");
        }
    }
}

#[test]
fn converted_objects_state_their_version_and_convert_back() {
    let strategy = strategy("autoscaling", "horizontalpodautoscalers");
    let of = |version| catalogue::kind("autoscaling", version, "HorizontalPodAutoscaler").unwrap();
    let behavior = value!({"scaleDown": {"stabilizationWindowSeconds": 60}});
    let scaler = value!({"kind": "HorizontalPodAutoscaler", "apiVersion": "autoscaling/v2",
        "metadata": {"name": "a"}, "spec": {"maxReplicas": 1, "behavior": behavior}});
    let first = strategy.convert(of("v2"), of("v1"), scaler);
    assert_eq!(first.str_at(&["apiVersion"]), "autoscaling/v1");
    let second = strategy.convert(of("v1"), of("v2"), first);
    assert_eq!(second.int_at(&["spec", "behavior", "scaleDown", "stabilizationWindowSeconds"]), Some(60));
}

#[test]
fn kinds_that_are_stored_in_another_version_convert_to_it_and_back() {
    for resource in catalogue::resources() {
        let place = format!("{}/{}", resource.group, resource.name);
        let strategy = strategy(&resource.group, &resource.name);
        let own = (&*resource.group, &*resource.version);
        let versions = catalogue::resources().filter(|of| (&of.group, &of.name) == (&resource.group, &resource.name));
        let Some((group, version, kind)) = strategy.stored_as else {
            assert_eq!(versions.count(), 1, "{place} has several versions, so it must state which one is stored");
            continue;
        };
        let stored = catalogue::kind(group, version, kind).expect("the stored kind is in the catalogue");
        assert_eq!(stored.name, resource.kind.name, "{place}");
        let has = |from, to| strategy.conversions.iter().any(|each| (each.from, each.to) == (from, to));
        let is_stored = own == (group, version);
        assert!(is_stored || has(own, (group, version)) && has((group, version), own), "{place}");
    }
}

#[test]
fn protections_are_those_of_their_resources() {
    let mut protected = Vec::new();
    for resource in catalogue::resources() {
        if let Some(protection) = strategy(&resource.group, &resource.name).protection {
            assert_eq!((protection.group, protection.resource), (&*resource.group, &*resource.name));
            protected.push(&*resource.name);
        }
    }
    protected.sort_unstable();
    assert_eq!(protected, ["persistentvolumeclaims", "persistentvolumes", "volumeattributesclasses"]);
}
