//! NamespaceExists: refuses writes in namespaces that do not exist.

use flotilla_proto::value::Value;

use crate::admission::plugin::{DecidesBy, Plugin, Presence, ResourcePart};
use crate::admission::{BuiltInAttributes, Operation};
use crate::status::{ApiError, ApiResult};

/// The plugin.
pub const PLUGIN: Plugin = Plugin::new("NamespaceExists", Presence::Off).validating(decides_by, validate);

fn decides_by(part: ResourcePart<'_>, operation: Operation) -> Option<DecidesBy> {
    let is_write = matches!(operation, Operation::Create | Operation::Update | Operation::Delete);
    (part.served.resource.namespaced && is_write).then_some(DecidesBy::Tables)
}

fn validate(write: &BuiltInAttributes<'_>, _: &Value) -> ApiResult<()> {
    let namespace = write.target.namespace;
    match write.admission.tables.look_up("", "namespaces", "", namespace)? {
        Some(_) => Ok(()),
        None => Err(ApiError::not_found("", "namespaces", namespace)),
    }
}
