//! AlwaysPullImages: has nodes pull the images of new containers each time. Only users who may pull an image can then
//! use it.

use flotilla_proto::value::Value;

use crate::admission::plugin::{DecidesBy, Plugin, Presence, ResourcePart};
use crate::admission::{BuiltInAttributes, Operation};
use crate::field::quote;
use crate::status::ApiResult;

const ALWAYS: &str = "Always";
const CONTAINERS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

/// The plugin.
pub const PLUGIN: Plugin =
    Plugin::new("AlwaysPullImages", Presence::Off).mutating(decides_by, mutate).validating(decides_by, validate);

fn decides_by(part: ResourcePart<'_>, operation: Operation) -> Option<DecidesBy> {
    part.is_written(operation, ("", "pods")).then_some(DecidesBy::Object)
}

fn mutate(write: &BuiltInAttributes<'_>, pod: &mut Value) -> ApiResult<()> {
    if has_new_image(pod, write.old) {
        pull_always(pod);
    }
    Ok(())
}

fn validate(write: &BuiltInAttributes<'_>, pod: &Value) -> ApiResult<()> {
    match other_policy(pod).filter(|_| has_new_image(pod, write.old)) {
        Some(why) => Err(write.refuse(pod, &why)),
        None => Ok(()),
    }
}

fn images(pod: &Value) -> impl Iterator<Item = &str> {
    let containers = CONTAINERS.iter().flat_map(|list| pod.list_at(&["spec", list]));
    containers.map(|container| container.str_at(&["image"]))
}

/// Returns whether a pod is new, or has an image that the stored pod lacks.
fn has_new_image(pod: &Value, old: Option<&Value>) -> bool {
    old.is_none_or(|old| images(pod).any(|image| !images(old).any(|known| known == image)))
}

fn pull_always(pod: &mut Value) {
    let Some(spec) = pod.get_mut("spec") else { return };
    for list in CONTAINERS {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            container.set_at(&["imagePullPolicy"], ALWAYS);
        }
    }
    for volume in spec.get_mut("volumes").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(image) = volume.get_mut("image") {
            image.set_at(&["pullPolicy"], ALWAYS);
        }
    }
}

/// Returns the refusal of the first image that is not always pulled.
fn other_policy(pod: &Value) -> Option<String> {
    let refused = |path: String, policy: &str| {
        (policy != ALWAYS)
            .then(|| format!("{path}: Unsupported value: {}: supported values: {}", quote(policy), quote(ALWAYS)))
    };
    let mut containers = CONTAINERS.iter().flat_map(|list| {
        let all = pod.list_at(&["spec", list]).iter().enumerate();
        all.map(move |(at, container)| {
            (format!("spec.{list}[{at}].imagePullPolicy"), container.str_at(&["imagePullPolicy"]))
        })
    });
    let volumes = pod.list_at(&["spec", "volumes"]).iter().enumerate();
    let mut volumes = volumes
        .filter(|(_, volume)| !volume.at(&["image"]).is_null())
        .map(|(at, volume)| (format!("spec.volumes[{at}].image.pullPolicy"), volume.str_at(&["image", "pullPolicy"])));
    containers
        .find_map(|(path, policy)| refused(path, policy))
        .or_else(|| volumes.find_map(|(path, policy)| refused(path, policy)))
}

#[cfg(test)]
mod tests {
    use flotilla_proto::value;

    use super::*;

    fn pod(image: &str, policy: &str) -> Value {
        value!({"spec": {
            "containers": [{"name": "c", "image": image, "imagePullPolicy": policy}],
            "volumes": [{"name": "v", "emptyDir": {}}, {"name": "i", "image": {"pullPolicy": policy}}]
        }})
    }

    #[test]
    fn every_image_of_a_new_pod_is_pulled() {
        let mut new = pod("a", "Never");
        let refused = "spec.containers[0].imagePullPolicy: Unsupported value: \"Never\": supported values: \"Always\"";
        assert_eq!(other_policy(&new).as_deref(), Some(refused));
        pull_always(&mut new);
        assert_eq!(new, pod("a", "Always"));
        assert_eq!(other_policy(&new), None);
    }

    #[test]
    fn updates_count_only_if_they_bring_an_image() {
        assert!(has_new_image(&pod("a", "Never"), None));
        assert!(!has_new_image(&pod("a", "Never"), Some(&pod("a", "Always"))));
        assert!(has_new_image(&pod("b", "Never"), Some(&pod("a", "Always"))));
    }
}
