//! Converts objects between the versions of built-in kinds.

use flotilla_proto::conform;
use flotilla_proto::schema::Kind;
use flotilla_proto::value::Value;

use super::autoscaling::horizontal_pod_autoscaler::conversion as autoscaler;
use super::core::event;

/// Converts an object from one version of a kind to another. Kinds that are not named here have the same fields in all
/// versions, so that only `apiVersion` changes.
pub fn convert(from: &Kind, to: &Kind, mut object: Value) -> Value {
    object.set_at(&["kind"], &*to.name);
    object.set_at(&["apiVersion"], to.api_version());
    match (&*from.group, &*from.name, &*from.version, &*to.version) {
        ("autoscaling", "HorizontalPodAutoscaler", "v1", "v2") => autoscaler::to_v2(&mut object),
        ("autoscaling", "HorizontalPodAutoscaler", "v2", "v1") => autoscaler::to_v1(&mut object),
        ("", "Event", _, _) if to.group == "events.k8s.io" => event::to_new(&mut object),
        ("events.k8s.io", "Event", _, _) if to.group.is_empty() => event::to_core(&mut object),
        _ => return object,
    }
    // A field that one version may omit can be required in the other, and `conform` adds it. This cannot fail, since a
    // stored object fits its type.
    let _ = conform::conform(&to.of, &mut object);
    object
}

#[cfg(test)]
mod tests {
    use flotilla_proto::{catalogue, value};

    use super::*;

    #[test]
    fn converted_objects_state_their_version_and_convert_back() {
        let of = |version| catalogue::kind("autoscaling", version, "HorizontalPodAutoscaler").unwrap();
        let behavior = value!({"scaleDown": {"stabilizationWindowSeconds": 60}});
        let scaler = value!({"kind": "HorizontalPodAutoscaler", "apiVersion": "autoscaling/v2",
            "metadata": {"name": "a"}, "spec": {"maxReplicas": 1, "behavior": behavior}});
        let first = convert(of("v2"), of("v1"), scaler);
        assert_eq!(first.str_at(&["apiVersion"]), "autoscaling/v1");
        let second = convert(of("v1"), of("v2"), first);
        assert_eq!(second.int_at(&["spec", "behavior", "scaleDown", "stabilizationWindowSeconds"]), Some(60));
    }
}
