//! Compares strategies with the catalogue: both must agree about each kind.

use flotilla_proto::schema::{Kind, Shape, Type};
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
fn versions_of_a_kind_have_the_same_fields_or_conversions() {
    for resource in catalogue::resources() {
        let place = format!("{}/{}", resource.group, resource.name);
        let strategy = strategy(&resource.group, &resource.name);
        let versions = catalogue::resources().filter(|of| (&of.group, &of.name) == (&resource.group, &resource.name));
        let mut kinds: Vec<&Kind> = versions.map(|of| &*of.kind).collect();
        // Its objects may be stored in another group.
        let stored = strategy.stored_as.map(|(group, version, kind)| catalogue::kind(group, version, kind));
        kinds.extend(stored.map(|stored| stored.expect("the stored kind is in the catalogue")));
        let own = &*resource.kind;
        for other in kinds {
            assert_eq!(other.name, own.name, "{place}");
            let (from, to) = ((&*own.group, &*own.version), (&*other.group, &*other.version));
            let has = |from, to| strategy.conversions.iter().any(|each| (each.from, each.to) == (from, to));
            let converts = has(from, to) && has(to, from);
            assert!(converts || has_same_fields(&own.of, &other.of, 0), "{place} {} {}", from.1, to.1);
        }
    }
}

/// Returns whether objects of one type are objects of the other, too.
fn has_same_fields(one: &Type, other: &Type, depth: usize) -> bool {
    let (fields, others) = (one.fields.iter(), other.fields.iter());
    // Types that refer to themselves are the same ones in all versions.
    std::ptr::eq(one, other)
        || depth < 32
            && one.fields.len() == other.fields.len()
            && fields.zip(others).all(|(a, b)| {
                (&a.name, a.presence) == (&b.name, b.presence) && has_same_shape(&a.shape, &b.shape, depth + 1)
            })
}

fn has_same_shape(one: &Shape, other: &Shape, depth: usize) -> bool {
    match (one, other) {
        (Shape::Struct(one), Shape::Struct(other)) => has_same_fields(one, other, depth),
        (Shape::List(one), Shape::List(other)) => has_same_shape(&one.item, &other.item, depth),
        (Shape::Map(one), Shape::Map(other)) => has_same_shape(&one.value, &other.value, depth),
        _ => std::mem::discriminant(one) == std::mem::discriminant(other),
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
    protected.dedup(); // resources of several versions
    assert_eq!(protected, ["persistentvolumeclaims", "persistentvolumes", "volumeattributesclasses"]);
}
