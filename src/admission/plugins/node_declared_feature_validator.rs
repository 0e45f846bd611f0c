//! NodeDeclaredFeatureValidator: refuses a resize that needs features which the pod's node does not declare (KEP-5328).

use flotilla_proto::value::Value;

use super::pod_resize_validator::{is_resize, is_spec_changed};
use crate::admission::plugin::{DecidesBy, Plugin, Presence, ResourcePart};
use crate::admission::{BuiltInAttributes, Operation};
use crate::field::quote;
use crate::kinds::admission::{features_for_update, refuse_undeclared};
use crate::status::ApiResult;

/// The plugin.
pub const PLUGIN: Plugin = Plugin::new("NodeDeclaredFeatureValidator", Presence::On).validating(decides_by, validate);

/// Other updates change nothing that needs a feature.
fn decides_by(part: ResourcePart<'_>, operation: Operation) -> Option<DecidesBy> {
    is_resize(part, operation).then_some(DecidesBy::Tables)
}

fn validate(write: &BuiltInAttributes<'_>, pod: &Value) -> ApiResult<()> {
    let node = pod.str_at(&["spec", "nodeName"]);
    let old = write.old.unwrap_or(&Value::Null);
    if node.is_empty() || !is_spec_changed(pod, old) {
        return Ok(());
    }
    let needed = features_for_update(pod, old);
    if needed.is_empty() {
        return Ok(());
    }
    let Some(node) = write.admission.tables.look_up("", "nodes", "", node)? else {
        return Err(write.refuse(pod, &format!("node {} not found", quote(node))));
    };
    match refuse_undeclared(&needed, &node) {
        Some(why) => Err(write.refuse(pod, &why)),
        None => Ok(()),
    }
}
