//! NamespaceAutoProvision: creates the namespace of a new object if it does not exist.

use flotilla_proto::value;
use flotilla_proto::value::Value;

use crate::admission::plugin::{DecidesBy, Mutating, Plugin, PluginStep, Prerequisite, Presence, ResourcePart};
use crate::admission::{BuiltInAttributes, Operation};
use crate::status::{ApiError, ApiResult};

/// The plugin.
pub const PLUGIN: Plugin = Plugin {
    mutating: Some(PluginStep { decides_by, run: Mutating::First(prepare) }),
    ..Plugin::new("NamespaceAutoProvision", Presence::Off)
};

fn decides_by(part: ResourcePart<'_>, operation: Operation) -> Option<DecidesBy> {
    (part.served.resource.namespaced && operation == Operation::Create).then_some(DecidesBy::Tables)
}

/// Returns the namespace, if it must be created. Policies and webhooks are asked about it, as in the reference.
fn prepare(write: &BuiltInAttributes<'_>) -> ApiResult<Option<Prerequisite>> {
    let (tables, name) = (&write.admission.tables, write.target.namespace);
    if write.dry_run || tables.look_up("", "namespaces", "", name)?.is_some() {
        return Ok(None);
    }
    let served = tables.resources.of_resource("", "namespaces").ok_or_else(ApiError::no_such_path)?;
    let mut object = value!({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": name}});
    served.conform(&mut object, &Value::Null).map_err(ApiError::internal)?;
    Ok(Some(Prerequisite { served, object }))
}
