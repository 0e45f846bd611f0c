//! Protection of objects in use: the resources with a finalizer that keeps a deleted object while others use it, and
//! the resources whose objects use them.

use flotilla_proto::value::Value;

/// The protection of the objects of one resource.
#[derive(Debug)]
pub struct Protection {
    /// The group of the resource.
    pub group: &'static str,
    /// The resource.
    pub resource: &'static str,
    /// The finalizer that keeps its objects while they may be in use.
    pub finalizer: &'static str,
    /// The resources that may use them; users of namespaced objects are in the same namespace.
    pub users: &'static [User],
    /// Returns whether an object itself states that it is in use.
    pub is_used: fn(&Value) -> bool,
}

/// A resource whose objects may use the protected ones.
#[derive(Debug)]
pub struct User {
    /// The resource, of the core group.
    pub resource: &'static str,
    /// Returns whether a user (the first argument) uses an object (the second).
    pub uses: fn(&Value, &Value) -> bool,
}

/// Protects claims: pods that have a node use them.
pub static CLAIMS: Protection = Protection {
    group: "",
    resource: "persistentvolumeclaims",
    finalizer: "kubernetes.io/pvc-protection",
    users: &[User { resource: "pods", uses: pod_uses_claim }],
    is_used: |_| false,
};

/// Protects volumes: they are in use while they are bound.
pub static VOLUMES: Protection = Protection {
    group: "",
    resource: "persistentvolumes",
    finalizer: "kubernetes.io/pv-protection",
    users: &[],
    is_used: |volume| volume.str_at(&["status", "phase"]) == "Bound",
};

/// Protects VolumeAttributesClasses: volumes and claims that name them use them.
pub static CLASSES: Protection = Protection {
    group: "storage.k8s.io",
    resource: "volumeattributesclasses",
    finalizer: "kubernetes.io/vac-protection",
    users: &[
        User { resource: "persistentvolumes", uses: |user, class| names(user, name(class)) },
        User { resource: "persistentvolumeclaims", uses: |user, class| names(user, name(class)) },
    ],
    is_used: |_| false,
};

/// Adds a finalizer unless the object has it.
pub fn add_finalizer(object: &mut Value, finalizer: &str) {
    let mut finalizers = object.list_at(&["metadata", "finalizers"]).to_vec();
    if !finalizers.iter().any(|known| known.as_str() == Some(finalizer)) {
        finalizers.push(finalizer.into());
        object.set_at(&["metadata", "finalizers"], finalizers);
    }
}

/// Returns the VolumeAttributesClasses of a claim or volume: the wanted one, the current one, and the one to which a
/// controller is changing it.
pub fn attribute_classes(user: &Value) -> impl Iterator<Item = &str> {
    let paths: [&[&str]; 3] = [
        &["spec", "volumeAttributesClassName"],
        &["status", "currentVolumeAttributesClassName"],
        &["status", "modifyVolumeStatus", "targetVolumeAttributesClassName"],
    ];
    paths.into_iter().map(|path| user.str_at(path)).filter(|class| !class.is_empty())
}

fn name(object: &Value) -> &str {
    object.str_at(&["metadata", "name"])
}

fn names(user: &Value, class: &str) -> bool {
    attribute_classes(user).any(|own| own == class)
}

/// Returns whether a pod uses a claim. A pod without a node does not: a kubelet that sees the deleted claim would not
/// start it.
fn pod_uses_claim(pod: &Value, claim: &Value) -> bool {
    if pod.str_at(&["spec", "nodeName"]).is_empty() {
        return false;
    }
    // If the kubelet has finished with the pod, only finalizers keep the pod. They may wait until the claim is gone.
    let metadata = pod.at(&["metadata"]);
    let is_over = !metadata.at(&["deletionTimestamp"]).is_null()
        && metadata.int_at(&["deletionGracePeriodSeconds"]).is_some_and(|seconds| seconds == 0);
    pod.list_at(&["spec", "volumes"]).iter().any(|volume| {
        if volume.str_at(&["persistentVolumeClaim", "claimName"]) == name(claim) {
            return true;
        }
        !is_over && !volume.at(&["ephemeral"]).is_null() && is_generated(pod, volume, claim)
    })
}

/// Returns whether a claim was created for an ephemeral volume of the pod.
fn is_generated(pod: &Value, volume: &Value, claim: &Value) -> bool {
    let uid = pod.str_at(&["metadata", "uid"]);
    let mut owners = claim.list_at(&["metadata", "ownerReferences"]).iter();
    name(claim) == format!("{}-{}", name(pod), volume.str_at(&["name"]))
        && owners.any(|owner| owner.is_true_at(&["controller"]) && owner.str_at(&["uid"]) == uid)
}

#[cfg(test)]
mod tests {
    use flotilla_proto::value;

    use super::*;

    fn claim(name: &str) -> Value {
        value!({"metadata": {"name": name, "ownerReferences": [{"controller": true, "uid": "u"}]}})
    }

    #[test]
    fn pods_that_have_a_node_use_claims() {
        let mut pod = value!({
            "metadata": {"name": "p", "uid": "u"},
            "spec": {"volumes": [
                {"name": "v", "persistentVolumeClaim": {"claimName": "c"}},
                {"name": "e", "ephemeral": {}}
            ]}
        });
        assert!(!pod_uses_claim(&pod, &claim("c")), "it has none");
        pod.set_at(&["spec", "nodeName"], "n");
        assert!(pod_uses_claim(&pod, &claim("c")) && pod_uses_claim(&pod, &claim("p-e")));
        assert!(!pod_uses_claim(&pod, &claim("v")) && !pod_uses_claim(&pod, &claim("p-v")));
        assert!(!pod_uses_claim(&pod, &value!({"metadata": {"name": "p-e"}})), "it is somebody else's");
        pod.set_at(&["metadata", "deletionTimestamp"], "2026-01-01T00:00:00Z");
        pod.set_at(&["metadata", "deletionGracePeriodSeconds"], 30);
        assert!(pod_uses_claim(&pod, &claim("p-e")));
        pod.set_at(&["metadata", "deletionGracePeriodSeconds"], 0);
        assert!(pod_uses_claim(&pod, &claim("c")) && !pod_uses_claim(&pod, &claim("p-e")));
    }

    #[test]
    fn classes_are_used_as_long_as_any_field_names_them() {
        let uses = |user: Value| names(&user, "gold");
        assert!(uses(value!({"spec": {"volumeAttributesClassName": "gold"}})));
        assert!(uses(value!({"status": {"currentVolumeAttributesClassName": "gold"}})));
        assert!(uses(value!({"status": {"modifyVolumeStatus": {"targetVolumeAttributesClassName": "gold"}}})));
        assert!(!uses(value!({"spec": {"volumeAttributesClassName": "silver"}})));
    }
}
