//! Chooses the address families of a service.

use flotilla_proto::value::Value;

use super::{Allocations, invalid};
use crate::field::{Errors, Path};
use crate::kinds::core::service;
use crate::kinds::core::service::change;
use crate::kinds::core::service::ip_addresses;
use crate::rules::addresses;
use crate::status::ApiResult;

/// Sets the family policy and the families, unless the addresses, the cluster and the old service leave no choice.
pub(super) fn choose_families(object: &mut Value, old: Option<&Value>, allocations: &dyn Allocations) -> ApiResult<()> {
    if service::kind(object) == "ExternalName" || old.is_some_and(|old| change::keeps_preferred(object, old)) {
        return Ok(());
    }
    let headless_free = object.str_at(&["spec", "clusterIP"]) == "None" && service::selects_nothing(object);
    if object.at(&["spec", "ipFamilyPolicy"]).is_null() {
        let before = old.and_then(|old| old.at(&["spec", "ipFamilyPolicy"]).as_str());
        let policy = before.unwrap_or(if headless_free { "RequireDualStack" } else { "SingleStack" }).to_owned();
        object.set_at(&["spec", "ipFamilyPolicy"], policy);
    }
    let mut errors = Errors::default();
    ip_addresses::validate(object, old, &mut errors);
    if !errors.is_empty() {
        return Err(invalid(object, &errors));
    }
    let single = object.str_at(&["spec", "ipFamilyPolicy"]) == "SingleStack";
    if let Some(old) = old {
        reduce(object, old, single, &mut errors);
    }
    check_single(object, single, &mut errors);
    follow_addresses(object, allocations, &mut errors);
    if !errors.is_empty() {
        return Err(invalid(object, &errors));
    }
    if headless_free {
        add_families(object, allocations.families()[0], !single);
        return Ok(());
    }
    check_configured(object, allocations, &mut errors);
    if !errors.is_empty() {
        return Err(invalid(object, &errors));
    }
    add_families(object, allocations.families()[0], !single && allocations.families().len() == 2);
    Ok(())
}

/// Under the policy `SingleStack`, removes the second address and family unless the client changed them. Under other
/// policies, adds an error if the client removed them.
fn reduce(object: &mut Value, old: &Value, single: bool, errors: &mut Errors) {
    let path = Path::root("spec.ipFamilyPolicy");
    for (field, what) in [("clusterIPs", "cluster IP"), ("ipFamilies", "IP family")] {
        let (after, before) = (object.list_at(&["spec", field]), old.list_at(&["spec", field]));
        if single && after == before && after.len() > 1 {
            let first = after[..1].to_vec();
            object.set_at(&["spec", field], first);
        } else if !single && !after.is_empty() && after.len() < before.len() {
            let why = format!("must be 'SingleStack' to release the secondary {what}");
            errors.invalid(&path, object.at(&["spec", "ipFamilyPolicy"]), why);
        }
    }
}

fn check_single(object: &Value, single: bool, errors: &mut Errors) {
    for (field, what) in [("clusterIPs", "cluster IPs"), ("ipFamilies", "IP families")] {
        if single && object.list_at(&["spec", field]).len() == 2 {
            let why = format!("must be 'RequireDualStack' or 'PreferDualStack' when multiple {what} are specified");
            errors.invalid(&Path::root("spec.ipFamilyPolicy"), object.at(&["spec", "ipFamilyPolicy"]), why);
        }
    }
}

/// Adds the families of addresses that the client chose.
fn follow_addresses(object: &mut Value, allocations: &dyn Allocations, errors: &mut Errors) {
    let mut families = object.list_at(&["spec", "ipFamilies"]).to_vec();
    let stated = families.len();
    for (index, address) in object.list_at(&["spec", "clusterIPs"]).iter().enumerate() {
        let text = address.as_str().unwrap_or("");
        if text == "None" {
            break;
        }
        if index < families.len() {
            continue;
        }
        let family = addresses::family(text).unwrap_or("unknown");
        if allocations.families().contains(&family) {
            families.push(family.into());
        } else {
            let path = Path::root("spec.clusterIPs");
            let why = format!("{family} is not configured on this cluster");
            errors.invalid(&path.index(index), object.at(&["spec", "clusterIPs"]), why);
        }
    }
    if families.len() > stated {
        object.set_at(&["spec", "ipFamilies"], families);
    }
}

fn check_configured(object: &Value, allocations: &dyn Allocations, errors: &mut Errors) {
    let policy = object.at(&["spec", "ipFamilyPolicy"]);
    if policy.as_str() == Some("RequireDualStack") && allocations.families().len() < 2 {
        let why = "this cluster is not configured for dual-stack services";
        errors.invalid(&Path::root("spec.ipFamilyPolicy"), policy, why);
    }
    let path = Path::root("spec.ipFamilies");
    for (index, family) in object.list_at(&["spec", "ipFamilies"]).iter().enumerate() {
        if !family.as_str().is_some_and(|family| allocations.families().contains(&family)) {
            errors.invalid(&path.index(index), family, "not configured on this cluster");
        }
    }
}

/// Adds the preferred family to a service without families, and the second one if it needs both.
fn add_families(object: &mut Value, preferred: &str, both: bool) {
    let mut families = object.list_at(&["spec", "ipFamilies"]).to_vec();
    if families.is_empty() {
        families.push(preferred.into());
    }
    if both && families.len() == 1 {
        let other = if families[0].as_str() == Some("IPv4") { "IPv6" } else { "IPv4" };
        families.push(other.into());
    }
    object.set_at(&["spec", "ipFamilies"], families);
}
