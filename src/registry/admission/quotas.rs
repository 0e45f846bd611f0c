//! Charging objects to the quotas of their namespace.

use flotilla_cluster::Scope;
use flotilla_proto::value::Value;

use super::super::{Registry, Target, WriteOptions, now};
use super::Request;
use crate::kinds::admission::quota::{Charge, is_recharged as is_charged_again};
use crate::metrics::admission::{Operation, Phase};
use crate::request::Caller;
use crate::status::{ApiError, ApiResult};

/// Returns whether updates of these objects are charged. Returns false for pods, which are charged only when they move
/// between quotas: see [`moves`].
pub(super) fn is_recharged(target: Target<'_>) -> bool {
    let (group, resource) = (target.served.group(), &*target.served.resource.name);
    is_charged_again(group, resource, target.subresource) && (group, resource, target.subresource) != ("", "pods", "")
}

/// Returns whether this update is charged, although most updates of its kind are not.
pub(super) fn moves(target: Target<'_>, object: &Value, old: &Value) -> bool {
    let (group, resource, subresource) = (target.served.group(), &*target.served.resource.name, target.subresource);
    is_charged_again(group, resource, subresource)
        && Charge { group, resource, subresource, object, old: Some(old), now: now() }.is_due()
}

impl Registry {
    /// Charges a finished object to the quotas that match it: all of it on a create, the increase on an update. Returns
    /// 403 where a quota has no room. A write that fails afterwards stays charged until the quotas are recalculated.
    pub(in super::super) async fn charge_quotas(
        &self,
        target: Target<'_>,
        object: &Value,
        old: Option<&Value>,
        options: &WriteOptions,
        caller: &mut Caller,
    ) -> ApiResult<()> {
        let (group, resource, subresource) = (target.served.group(), &*target.served.resource.name, target.subresource);
        let charge = Charge { group, resource, subresource, object, old, now: now() };
        if !target.served.resource.namespaced || !charge.is_due() {
            return Ok(());
        }
        let uid = |quota: &Value| quota.str_at(&["metadata", "uid"]).to_owned();
        let mut quotas = self.look_up_all("", "resourcequotas", Scope::namespace(target.namespace))?;
        quotas.retain(|quota| !caller.basis.has_charged(&uid(quota)));
        if quotas.is_empty() {
            return Ok(());
        }
        let used = charge.usages();
        let operation = if old.is_some() { Operation::Update } else { Operation::Create };
        let request = Request::new(self, target, caller, operation, Phase::Validate);
        let charge = |quota: &Value| charge.check(quota, &used).map_err(|why| request.refuse(object, &why));
        let mut concerned = Vec::new();
        for quota in &quotas {
            if charge(quota)?.is_some() {
                concerned.push((quota.str_at(&["metadata", "name"]), uid(quota)));
            }
        }
        let served = self.resources.of_resource("", "resourcequotas").ok_or_else(ApiError::no_such_path)?;
        let (mut charged, mut revised) = (Vec::new(), Ok(()));
        for (name, uid) in concerned {
            let target = Target { served: &served, namespace: target.namespace, name, subresource: "" };
            let change = |quota: &mut Value| {
                for (name, amount) in charge(quota)?.into_iter().flatten() {
                    quota.set_at(&["status", "used", &name], amount.to_string());
                }
                Ok(())
            };
            revised = self.revise(target, None, None, options.dry_run, &change).await.map(drop);
            if revised.is_err() {
                break;
            }
            charged.push(uid);
        }
        if !options.dry_run {
            caller.basis.note_charged(charged);
        }
        revised
    }
}
