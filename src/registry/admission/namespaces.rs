//! Refuses creates in namespaces that do not exist or are being deleted (NamespaceLifecycle).

use flotilla_proto::value::Value;

use super::super::{Registry, Target, encode, stored_tree};
use crate::status::{ApiError, ApiResult, Cause};

impl Registry {
    /// Refuses an object whose namespace does not exist or is being deleted.
    pub(super) fn check_namespace(&self, target: Target<'_>, object: &Value) -> ApiResult<()> {
        let served = target.served;
        if !served.resource.namespaced {
            return Ok(());
        }
        let namespaces =
            self.resources.of_resource("", "namespaces").ok_or_else(|| ApiError::internal("no namespaces"))?;
        let Some(namespace) = self.current(&namespaces, "", target.namespace) else {
            return Err(ApiError::not_found("", "namespaces", target.namespace));
        };
        // A text without this member has no such field. A text with it may have a label of the same name, so it is
        // decoded.
        let is_deleting = || -> ApiResult<bool> {
            Ok(encode::mentions(&namespace, "\"deletionTimestamp\":")
                && !stored_tree(&namespace)?.at(&["metadata", "deletionTimestamp"]).is_null())
        };
        if namespace.terms().field("status.phase") != Some("Terminating") && !is_deleting()? {
            return Ok(());
        }
        let why =
            format!("unable to create new content in namespace {} because it is being terminated", target.namespace);
        let name = object.str_at(&["metadata", "name"]);
        let mut error = ApiError::forbidden(served.group(), &served.resource.name, name, &why);
        if let Some(details) = &mut error.details {
            details.causes.push(Cause {
                reason: "NamespaceTerminating".into(),
                message: format!("namespace {} is being terminated", target.namespace),
                field: "metadata.namespace".into(),
            });
        }
        Err(error)
    }
}
