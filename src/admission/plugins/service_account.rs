//! ServiceAccount: gives new pods a service account, its image pull secrets, and a volume with its token.

use flotilla_proto::value::Value;

use crate::admission::plugin::{DecidesBy, Plugin, Presence, ResourcePart};
use crate::admission::{BuiltInAttributes, Operation};
use crate::kinds::admission;
use crate::rules::names;
use crate::status::{ApiError, ApiResult};
use crate::tables::suffix;

/// The plugin.
pub const PLUGIN: Plugin = Plugin::new("ServiceAccount", Presence::On)
    .mutating(decides_by, mutate)
    .validating(validating_decides_by, validate);

/// The service account of pods that name none.
const DEFAULT_ACCOUNT: &str = "default";

fn decides_by(part: ResourcePart<'_>, operation: Operation) -> Option<DecidesBy> {
    (part.name() == ("", "pods", "") && operation == Operation::Create).then_some(DecidesBy::Tables)
}

fn mutate(write: &BuiltInAttributes<'_>, pod: &mut Value) -> ApiResult<()> {
    if admission::is_mirror_pod(pod) {
        return admission::check_mirror_pod(pod).map_err(|why| write.refuse(pod, &why));
    }
    let named = match pod.str_at(&["spec", "serviceAccountName"]) {
        "" => DEFAULT_ACCOUNT,
        name => name,
    };
    let (namespace, account) = (write.target.namespace, account(write, pod, named)?);
    admission::set_service_account(pod, namespace, &suffix(), |_| account).map_err(|why| write.refuse(pod, &why))
}

/// Looks an account up. The default account counts as present if this server does not create it.
fn account(write: &BuiltInAttributes<'_>, pod: &Value, name: &str) -> ApiResult<Option<Value>> {
    if let Err(why) = names::check_resource_name(name) {
        return Err(write.refuse(pod, &admission::failed_look_up(write.target.namespace, name, &why)));
    }
    let found = write.admission.tables.look_up("", "serviceaccounts", write.target.namespace, name)?;
    Ok(found.or_else(|| (name == DEFAULT_ACCOUNT && !write.admission.accounts_are_made).then(Value::object)))
}

fn validating_decides_by(part: ResourcePart<'_>, operation: Operation) -> Option<DecidesBy> {
    let gets_containers = part.name() == ("", "pods", "ephemeralcontainers") && operation == Operation::Update;
    decides_by(part, operation).or_else(|| gets_containers.then_some(DecidesBy::Tables))
}

/// Checks the account of a finished pod, which policies and webhooks may have changed.
fn validate(write: &BuiltInAttributes<'_>, pod: &Value) -> ApiResult<()> {
    let is_new = write.operation == Operation::Create;
    if is_new && admission::is_mirror_pod(pod) {
        return admission::check_mirror_pod(pod).map_err(|why| write.refuse(pod, &why));
    }
    let (namespace, named) = (write.target.namespace, pod.str_at(&["spec", "serviceAccountName"]));
    if named.is_empty() {
        let name = pod.str_at(&["metadata", "name"]);
        return Err(write.refuse(pod, &format!("no service account specified for pod {namespace}/{name}")));
    }
    let Some(account) = account(write, pod, named)? else {
        return Err(write.refuse(pod, &admission::missing_account(namespace, named)));
    };
    match is_new {
        true => admission::check_account(pod, &account).map_err(|why| write.refuse(pod, &why)),
        // The reference answers with an internal error.
        false => admission::check_ephemeral_containers(pod, &account).map_err(ApiError::unknown),
    }
}
