//! NamespaceLifecycle: refuses creates in namespaces that do not exist or are being deleted.

use flotilla_proto::value::Value;

use crate::admission::plugin::{DecidesBy, Plugin, Presence, ResourcePart};
use crate::admission::{BuiltInAttributes, Operation};
use crate::status::{ApiError, ApiResult, Cause};
use crate::tables::{mentions, stored_tree};

/// The plugin.
pub const PLUGIN: Plugin = Plugin::new("NamespaceLifecycle", Presence::On).mutating(decides_by, mutate);

fn decides_by(part: ResourcePart<'_>, operation: Operation) -> Option<DecidesBy> {
    // Access reviews are answered for any namespace.
    let is_review = part.served.group() == "authorization.k8s.io";
    (part.served.resource.namespaced && !is_review && operation == Operation::Create).then_some(DecidesBy::Tables)
}

fn mutate(write: &BuiltInAttributes<'_>, object: &mut Value) -> ApiResult<()> {
    let (tables, target) = (&write.admission.tables, write.target);
    let namespaces =
        tables.resources.of_resource("", "namespaces").ok_or_else(|| ApiError::internal("no namespaces"))?;
    let Some(namespace) = tables.current(&namespaces, "", target.namespace) else {
        return Err(ApiError::not_found("", "namespaces", target.namespace));
    };
    // A namespace whose text lacks this member is not being deleted. A text that has it may have a label of the same
    // name, so it is decoded.
    let is_deleting = || -> ApiResult<bool> {
        Ok(mentions(&namespace, "\"deletionTimestamp\":")
            && !stored_tree(&namespace)?.at(&["metadata", "deletionTimestamp"]).is_null())
    };
    if namespace.terms().field("status.phase") != Some("Terminating") && !is_deleting()? {
        return Ok(());
    }
    // For an action the path names the object; the name in the document does not matter.
    let name = if target.name.is_empty() { object.str_at(&["metadata", "name"]) } else { target.name };
    let why = format!("unable to create new content in namespace {} because it is being terminated", target.namespace);
    let mut error = ApiError::forbidden(target.served.group(), &target.served.resource.name, name, &why);
    if let Some(details) = &mut error.details {
        details.causes.push(Cause {
            reason: "NamespaceTerminating".into(),
            message: format!("namespace {} is being terminated", target.namespace),
            field: "metadata.namespace".into(),
        });
    }
    Err(error)
}
