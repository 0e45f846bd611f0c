//! ResourceQuota: charges objects to the quotas of their namespace.

use flotilla_cluster::Scope;
use flotilla_proto::value::Value;
use futures_util::future::LocalBoxFuture;

use crate::admission::plugin::{DecidesBy, Plugin, PluginStep, Presence, ResourcePart, Validating};
use crate::admission::{BuiltInAttributes, Operation};
use crate::kinds::admission::quota::{Charge, Limited, Uncovered, is_counted, is_recharged};
use crate::status::{ApiError, ApiResult};
use crate::tables::Target;
use crate::wall_clock::timestamp as now;

/// The plugin.
pub const PLUGIN: Plugin = Plugin {
    applies,
    validating: Some(PluginStep { decides_by, run: Validating::Last(charge) }),
    ..Plugin::new("ResourceQuota", Presence::On)
};

fn decides_by(part: ResourcePart<'_>, operation: Operation) -> Option<DecidesBy> {
    let (group, resource, subresource) = part.name();
    match operation {
        _ if !part.served.resource.namespaced => None,
        Operation::Create => (subresource.is_empty() && is_counted(group, resource)).then_some(DecidesBy::Tables),
        Operation::Update if !is_recharged(group, resource, subresource) => None,
        // A pod is charged only when it moves from one quota to another.
        Operation::Update if part.name() == ("", "pods", "") => Some(DecidesBy::TablesFor(is_moved)),
        Operation::Update => Some(DecidesBy::Tables),
        Operation::Delete | Operation::Connect => None,
    }
}

fn is_moved(pod: &Value, old: &Value) -> bool {
    let (group, resource, subresource) = ("", "pods", "");
    Charge { group, resource, subresource, object: pod, old: Some(old), now: now() }.is_due()
}

fn charge_of<'a>(write: &BuiltInAttributes<'a>, object: &'a Value) -> Charge<'a> {
    let Target { served, subresource, .. } = write.target;
    let (group, resource) = (served.group(), &*served.resource.name);
    Charge { group, resource, subresource, object, old: write.old, now: now() }
}

/// The resources that nobody may consume without a quota.
fn limited<'a>(write: &BuiltInAttributes<'a>) -> &'a [Limited] {
    &write.admission.configuration.limited
}

/// Returns whether the write can change a usage, and the server has a quota or the configuration demands one.
fn applies(write: &BuiltInAttributes<'_>, object: &Value) -> bool {
    let quotas = || write.admission.tables.resources.of_resource("", "resourcequotas");
    let are_there = || quotas().is_some_and(|quotas| !write.admission.tables.table(&quotas).is_empty());
    charge_of(write, object).is_due() && (!limited(write).is_empty() || are_there())
}

/// Charges a finished object to the quotas that match it: all of it on a create, the increase on an update. Returns 403
/// where a quota has no room, or where the configuration demands a quota and there is none. A write that fails
/// afterwards stays charged until the quotas are recalculated.
fn charge<'a>(write: &'a BuiltInAttributes<'_>, object: &'a Value) -> LocalBoxFuture<'a, ApiResult<()>> {
    Box::pin(async move {
        let (tables, namespace) = (&write.admission.tables, write.target.namespace);
        let uid = |quota: &Value| quota.str_at(&["metadata", "uid"]).to_owned();
        let mut quotas = tables.look_up_all("", "resourcequotas", Scope::namespace(namespace))?;
        let charge = charge_of(write, object);
        let used = charge.usages();
        for quota in &quotas {
            charge.check_stated(quota).map_err(|why| write.refuse(object, &why))?;
        }
        charge.check_covered(limited(write), &quotas, &used).map_err(|uncovered| match uncovered {
            Uncovered::Amounts(names) => write.refuse(object, &format!("insufficient quota to consume: {names}")),
            Uncovered::Scopes(scopes) => {
                ApiError::unknown(format!("insufficient quota to match these scopes: [{scopes}]"))
            }
        })?;
        quotas.retain(|quota| !write.caller.basis.has_charged(&uid(quota)));
        let check = |quota: &Value| charge.check(quota, &used).map_err(|why| write.refuse(object, &why));
        let mut concerned = Vec::new();
        for quota in &quotas {
            if check(quota)?.is_some() {
                concerned.push((quota.str_at(&["metadata", "name"]), uid(quota)));
            }
        }
        let served = tables.resources.of_resource("", "resourcequotas").ok_or_else(ApiError::no_such_path)?;
        for (name, uid) in concerned {
            let target = Target::object(&served, namespace, name);
            let change = |quota: &mut Value| {
                for (name, amount) in check(quota)?.into_iter().flatten() {
                    quota.set_at(&["status", "used", &name], amount.to_string());
                }
                Ok(())
            };
            tables.revise(target, None, None, write.dry_run, &change).await?;
            write.note_charged(uid);
        }
        Ok(())
    })
}
