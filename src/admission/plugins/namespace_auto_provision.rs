//! NamespaceAutoProvision: creates the namespace of a new object if it does not exist.

use flotilla_proto::value;
use flotilla_proto::value::Value;
use futures_util::future::LocalBoxFuture;

use crate::admission::plugin::{DecidesBy, Mutating, Plugin, PluginStep, Presence, ResourcePart};
use crate::admission::{BuiltInAttributes, Operation};
use crate::registry::{Incoming, Target, WriteOptions};
use crate::request::{Caller, Identity};
use crate::status::{ApiError, ApiResult};

/// The plugin.
pub const PLUGIN: Plugin = Plugin {
    mutating: Some(PluginStep { decides_by, run: Mutating::First(provide) }),
    ..Plugin::new("NamespaceAutoProvision", Presence::Off)
};

/// The owner of the fields of namespaces that the server creates.
const MANAGER: &str = "kube-apiserver";

fn decides_by(part: ResourcePart<'_>, operation: Operation) -> Option<DecidesBy> {
    (part.served.resource.namespaced && operation == Operation::Create).then_some(DecidesBy::Tables)
}

/// Creates the namespace as the server itself. Policies and webhooks are asked about it, as in the reference.
fn provide<'a>(write: &'a BuiltInAttributes<'_>, object: &'a Value) -> LocalBoxFuture<'a, ApiResult<()>> {
    Box::pin(async move {
        let (registry, name) = (write.registry, write.target.namespace);
        if write.dry_run || registry.look_up("", "namespaces", "", name)?.is_some() {
            return Ok(());
        }
        let served = registry.resources.of_resource("", "namespaces").ok_or_else(ApiError::no_such_path)?;
        let mut value = value!({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": name}});
        served.conform(&mut value, &Value::Null).map_err(ApiError::internal)?;
        let target = Target { served: &served, namespace: "", name: "", subresource: "" };
        let incoming = Incoming { value, ..Incoming::default() };
        let options = WriteOptions { manager: MANAGER.to_owned(), ..WriteOptions::default() };
        let mut caller = Caller::of(Identity::of_api_server(MANAGER));
        match registry.create(target, incoming, &options, &mut caller).await {
            Err(error) if error.reason != "AlreadyExists" => Err(write.refuse(object, &error.message)),
            _ => registry.catch_up_with(&served, "", name).await,
        }
    })
}
