//! ImagePolicyWebhook: asks a webhook whether pods may have their images.

use flotilla_proto::value;
use flotilla_proto::value::{Map, Value};
use futures_util::future::LocalBoxFuture;

use crate::admission::image_policy::AUDIT_PREFIX;
use crate::admission::plugin::{DecidesBy, Plugin, PluginStep, Presence, ResourcePart, Validating};
use crate::admission::{BuiltInAttributes, Operation};
use crate::status::{ApiError, ApiResult};
use crate::webhooks::CallError;

/// The plugin.
pub const PLUGIN: Plugin = Plugin {
    validating: Some(PluginStep { decides_by, run: Validating::Asking(validate) }),
    ..Plugin::new("ImagePolicyWebhook", Presence::Off)
};

/// The part of the names of annotations that the webhook sees.
const SHOWN: &str = ".image-policy.k8s.io/";

fn decides_by(part: ResourcePart<'_>, operation: Operation) -> Option<DecidesBy> {
    let is_pod = matches!(part.name(), ("", "pods", "" | "ephemeralcontainers"));
    (is_pod && matches!(operation, Operation::Create | Operation::Update)).then_some(DecidesBy::Outside)
}

fn validate<'a>(write: &'a BuiltInAttributes<'_>, pod: &'a Value) -> LocalBoxFuture<'a, ApiResult<()>> {
    Box::pin(async move {
        let admission = write.admission;
        let Some(policy) = &admission.configuration.image_policy else { return Ok(()) };
        let spec = spec(pod, write.target.subresource, write.target.namespace);
        let decision = match policy.ask(&admission.tables.outbound, spec, write.caller.ends).await {
            Ok(decision) => decision,
            Err(failed) if policy.allows_by_default() => {
                tracing::warn!(why = failed.message, "the webhook for images could not be asked: the pod is allowed");
                write.annotate(&format!("{AUDIT_PREFIX}failed-open"), || "true".to_owned());
                return Ok(());
            }
            // As in the reference, a webhook that refuses the call refuses the pod.
            Err(CallError { code: 403, message, .. }) => {
                let refused = ApiError::new(403, "Forbidden", message.clone());
                return Err(refused.with_cause("UnexpectedServerResponse", message, ""));
            }
            Err(failed) => return Err(write.refuse(pod, &failed.message)),
        };
        for (key, value) in &decision.annotations {
            write.annotate(&format!("{AUDIT_PREFIX}{key}"), || value.clone());
        }
        match (decision.allowed, &*decision.reason) {
            (true, _) => Ok(()),
            (false, "") => Err(write.refuse(pod, "one or more images rejected by webhook backend")),
            (false, why) => {
                Err(write.refuse(pod, &format!("image policy webhook backend denied one or more images: {why}")))
            }
        }
    })
}

/// Returns the question to the webhook: the images, the annotations for it, and the namespace.
fn spec(pod: &Value, subresource: &str, namespace: &str) -> Value {
    let lists = if subresource.is_empty() { &["containers", "initContainers"][..] } else { &["ephemeralContainers"] };
    let containers = lists.iter().flat_map(|list| pod.list_at(&["spec", list]));
    let image = |container: &Value| match container.str_at(&["image"]) {
        "" => Value::object(),
        image => value!({"image": image}),
    };
    let mut spec = Value::object();
    let containers: Vec<Value> = containers.map(image).collect();
    if !containers.is_empty() {
        spec.set_at(&["containers"], containers);
    }
    let all = pod.map_at(&["metadata", "annotations"]).into_iter().flat_map(Map::iter);
    for (name, value) in all.filter(|(name, _)| name.contains(SHOWN)) {
        spec.set_at(&["annotations", name], value.clone());
    }
    spec.set_at(&["namespace"], namespace);
    spec
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_webhook_sees_images_and_annotations_for_it() {
        let pod = value!({
            "metadata": {"annotations": {"a.image-policy.k8s.io/ticket": "1", "other": "2"}},
            "spec": {"initContainers": [{"image": "i"}], "containers": [{"image": "c"}, {"name": "none"}],
                "ephemeralContainers": [{"image": "e"}]}
        });
        let annotations = value!({"a.image-policy.k8s.io/ticket": "1"});
        let containers = value!([{"image": "c"}, {}, {"image": "i"}]);
        let expected = value!({"containers": containers, "annotations": (annotations.clone()), "namespace": "n"});
        assert_eq!(spec(&pod, "", "n"), expected);
        let expected = value!({"containers": [{"image": "e"}], "annotations": annotations, "namespace": "n"});
        assert_eq!(spec(&pod, "ephemeralcontainers", "n"), expected);
    }
}
