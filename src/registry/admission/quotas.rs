//! Charging objects to the quotas of their namespace.

use flotilla_cluster::Scope;
use flotilla_proto::value::Value;

use super::super::{Registry, Target, WriteOptions};
use super::Request;
use crate::gateway::Caller;
use crate::kinds::admission;
use crate::metrics::admission::{Operation, Phase};
use crate::status::{ApiError, ApiResult};

/// What is charged again when it changes: group, resource and subresource.
const RECHARGED: [(&str, &str, &str); 3] =
    [("", "persistentvolumeclaims", ""), ("", "pods", "resize"), ("", "services", "")];

/// Whether a change of an object may be charged.
pub(super) fn is_recharged(target: Target<'_>) -> bool {
    RECHARGED.contains(&(target.served.group(), &target.served.resource.name, target.subresource))
}

impl Registry {
    /// Charges a finished object that is about to be created, or what it uses more than before, to the quotas that it
    /// concerns; 403 where one has no room. What fails afterwards stays charged until the quotas are counted anew.
    pub(in super::super) async fn charge_quotas(
        &self,
        target: Target<'_>,
        object: &Value,
        old: Option<&Value>,
        options: &WriteOptions,
        caller: &mut Caller,
    ) -> ApiResult<()> {
        let (group, resource) = (target.served.group(), &*target.served.resource.name);
        if !target.served.resource.namespaced {
            return Ok(());
        }
        if old.is_some() && !is_recharged(target) {
            return Ok(());
        }
        let uid = |quota: &Value| quota.str_at(&["metadata", "uid"]).to_owned();
        let mut quotas = self.look_up_all("", "resourcequotas", Scope::namespace(target.namespace))?;
        quotas.retain(|quota| !caller.charged.contains(&uid(quota)));
        if quotas.is_empty() {
            return Ok(());
        }
        let mut usage = admission::quota_usage(group, resource, object);
        if let Some(old) = old {
            admission::quota_growth(&mut usage, &admission::quota_usage(group, resource, old));
            if usage.is_empty() {
                return Ok(());
            }
        }
        let operation = if old.is_some() { Operation::Update } else { Operation::Create };
        let request = Request::new(self, target, caller, operation, Phase::Validate);
        let charge = |quota: &Value| {
            admission::charge_quota(quota, resource, object, old.is_none(), &usage)
                .map_err(|why| request.refuse(object, &why))
        };
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
        if caller.tenure.is_some() && !options.dry_run {
            caller.charged.extend(charged);
        }
        revised
    }
}
