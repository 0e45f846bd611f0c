//! ServiceAccount: gives new pods a service account, its image pull secrets, and a volume with its token.

use flotilla_proto::value::Value;

use crate::admission::plugin::{DecidesBy, Part, Plugin, Presence};
use crate::admission::{BuiltInAttributes, Operation};
use crate::kinds::admission;
use crate::registry::suffix;
use crate::status::ApiResult;

/// The plugin.
pub const PLUGIN: Plugin = Plugin::new("ServiceAccount", Presence::On).mutating(decides_by, mutate);

/// The service account of pods that name none.
const DEFAULT_ACCOUNT: &str = "default";

fn decides_by(part: Part<'_>, operation: Operation) -> Option<DecidesBy> {
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
    let (registry, namespace) = (write.registry, write.target.namespace);
    let mut account = registry.look_up("", "serviceaccounts", namespace, named)?;
    if account.is_none() && named == DEFAULT_ACCOUNT && !registry.accounts_are_made {
        account = Some(Value::object());
    }
    admission::set_service_account(pod, namespace, &suffix(), |_| account).map_err(|why| write.refuse(pod, &why))
}
