//! Decides which user may write which part of the status of a ResourceClaim (KEP-4817, KEP-5018): schedulers write
//! allocations, drivers write device status.

use std::collections::BTreeSet;

use flotilla_proto::value::Value;

use super::{Registry, Target};
use crate::access::{Attributes, Authorizer, ResourceAttributes, User, forbidden};
use crate::field::{Errors, Path};
use crate::kinds::resource::admin_access;
use crate::request::Caller;
use crate::rules::names;
use crate::status::ApiResult;

const GROUP: &str = "resource.k8s.io";
/// The label of a namespace that lets its claims have access as an administrator, if it is `true`.
const ADMIN_LABEL: &str = "resource.kubernetes.io/admin-access";

/// Returns the field by which a new claim or template asks for access as an administrator, or by which the new status
/// of a claim grants such access. Returns `None` if there is no such field, or if the status granted it before.
fn admin_access_field(target: Target<'_>, new: &Value, old: Option<&Value>) -> Option<String> {
    if target.served.group() != GROUP {
        return None;
    }
    if let Some(old) = old.filter(|_| target.subresource == "status") {
        let at = admin_access::granted(new, old)?;
        return Some(format!("status.allocation.devices.results[{at}].adminAccess"));
    }
    let devices: &[&str] = match &*target.served.resource.name {
        "resourceclaims" => &["spec", "devices"],
        "resourceclaimtemplates" => &["spec", "spec", "devices"],
        _ => return None,
    };
    let at = admin_access::asked(new.at(devices)).filter(|_| old.is_none())?;
    Some(format!("spec.devices.requests[{at}].adminAccess"))
}

impl Registry {
    /// Adds an error if a request wants administrative access to devices (KEP-5018) and the namespace lacks the label
    /// that allows it.
    ///
    /// # Errors
    /// 500: the namespace cannot be read.
    pub(super) fn check_admin_access(
        &self,
        target: Target<'_>,
        new: &Value,
        old: Option<&Value>,
        errors: &mut Errors,
    ) -> ApiResult<()> {
        let Some(field) = admin_access_field(target, new, old) else { return Ok(()) };
        let namespace = self.tables.look_up("", "namespaces", "", target.namespace)?.unwrap_or(Value::Null);
        if namespace.str_at(&["metadata", "labels", ADMIN_LABEL]) != "true" {
            let why =
                format!("admin access to devices requires the `{ADMIN_LABEL}: true` label on the containing namespace");
            errors.forbidden(&Path::root(&field), why);
        }
        Ok(())
    }

    /// Adds an error for every part of a status that changes although this user may not change it. If a webhook must be
    /// asked first, leaves the question in the caller's inquiry. The errors then mean nothing.
    pub(super) fn check_status_writer(
        &self,
        target: Target<'_>,
        object: &Value,
        old: &Value,
        caller: &Caller,
        errors: &mut Errors,
    ) {
        if (&*target.served.stored.group, &*target.served.resource.name) == (GROUP, "resourceclaims") {
            check_status(&self.tables.authorizer, target, object, old, caller, errors);
        }
    }
}

/// Adds an error for every part of the status that changes although the user may not change it.
fn check_status(
    authorizer: &Authorizer,
    target: Target<'_>,
    new: &Value,
    old: &Value,
    caller: &Caller,
    errors: &mut Errors,
) {
    let writer = StatusWriter { authorizer, target, caller };
    let part = |object: &Value, field: &str| object.at(&["status", field]).clone();
    if ["allocation", "reservedFor"].iter().any(|field| part(new, field) != part(old, field)) {
        writer.check_binding(errors);
    }
    if !new.at(&["status", "allocation"]).is_null() {
        writer.check_drivers(new, old, errors);
    }
}

struct StatusWriter<'a> {
    authorizer: &'a Authorizer,
    target: Target<'a>,
    caller: &'a Caller,
}

impl StatusWriter<'_> {
    fn check_binding(&self, errors: &mut Errors) {
        let verb = self.caller.verb;
        if let Err(why) =
            self.check(ResourceAttributes { verb, subresource: "binding", ..ResourceAttributes::default() })
        {
            let what = "changing status.allocation or status.reservedFor requires resource=\"resourceclaims/binding\"";
            errors.forbidden(&Path::root("status.allocation"), format!("{what}, verb=\"{verb}\" permission: {why}"));
        }
    }

    fn check_drivers(&self, new: &Value, old: &Value, errors: &mut Errors) {
        let mut prefixes = vec!["arbitrary-node:"];
        if is_on_node(self.caller.identity.user(), allocated_node(new)) {
            prefixes.insert(0, "associated-node:");
        }
        let verbs: Vec<String> = prefixes.iter().map(|prefix| format!("{prefix}{}", self.caller.verb)).collect();
        for driver in changed_drivers(new.list_at(&["status", "devices"]), old.list_at(&["status", "devices"])) {
            let may = |verb: &String| {
                let namespace = self.target.namespace;
                let of = ResourceAttributes {
                    verb,
                    subresource: "driver",
                    namespace,
                    name: driver,
                    ..ResourceAttributes::default()
                };
                self.check(of)
            };
            let tried: Vec<Result<(), String>> = verbs.iter().map(may).collect();
            if self.caller.inquiry.is_open() {
                return; // all is decided again once the question is answered
            }
            if tried.iter().any(Result::is_ok) {
                continue;
            }
            let Some(Err(why)) = tried.into_iter().next() else { continue };
            let what = "changing status.devices requires resource=\"resourceclaims/driver\"";
            let verbs = verbs.join(" ");
            errors.forbidden(&Path::root("status.devices"), format!("{what}, verb=\"[{verbs}]\" permission: {why}"));
        }
    }

    /// Checks that the user has a permission. `Err` holds the text of the refusal.
    fn check(&self, of: ResourceAttributes<'_>) -> Result<(), String> {
        let attributes = Attributes::Resource(ResourceAttributes {
            group: GROUP,
            version: &self.target.served.kind().version,
            resource: "resourceclaims",
            ..of
        });
        let decision = self.authorizer.decide(self.caller.identity.user(), &attributes, &self.caller.inquiry);
        match decision.is_allowed() {
            true => Ok(()),
            false => Err(forbidden(self.caller.identity.user(), &attributes, &decision.reason).message),
        }
    }
}

/// Returns the drivers of the devices whose status was added, changed or removed.
fn changed_drivers<'a>(new: &'a [Value], old: &'a [Value]) -> BTreeSet<&'a str> {
    let others = |list: &'a [Value], than: &'a [Value]| {
        list.iter().filter(move |device| !than.contains(device)).map(|device| device.str_at(&["driver"]))
    };
    others(new, old).chain(others(old, new)).collect()
}

/// Returns the one node that an allocation is for, or an empty text if it is not for exactly one node.
fn allocated_node(claim: &Value) -> &str {
    let terms = claim.list_at(&["status", "allocation", "nodeSelector", "nodeSelectorTerms"]);
    let [term] = terms else { return "" };
    let ([], [field]) = (term.list_at(&["matchExpressions"]), term.list_at(&["matchFields"])) else { return "" };
    match field.list_at(&["values"]) {
        [node] if field.str_at(&["key"]) == "metadata.name" && field.str_at(&["operator"]) == "In" => {
            node.as_str().unwrap_or("")
        }
        _ => "",
    }
}

/// Returns whether the user is a service account whose token is bound to a pod on this node.
fn is_on_node(user: &User, node: &str) -> bool {
    let own = user.node();
    !node.is_empty() && own == Some(node) && names::dns1123_subdomain(node).is_empty()
}

#[cfg(test)]
mod tests {
    use flotilla_proto::value;

    use super::*;

    #[test]
    fn drivers_are_those_whose_device_status_changed() {
        let device = |driver: &str, pool: &str| value!({"driver": driver, "pool": pool});
        let (old, new) = ([device("a", "1"), device("b", "1"), device("c", "1")], [device("a", "1"), device("b", "2")]);
        assert_eq!(changed_drivers(&new, &old).into_iter().collect::<Vec<_>>(), ["b", "c"]);
    }

    #[test]
    fn node_of_an_allocation() {
        let claim = |field: Value| value!({"status": {"allocation": {"nodeSelector": {"nodeSelectorTerms": [{"matchFields": [field]}]}}}});
        let own = value!({"key": "metadata.name", "operator": "In", "values": ["n"]});
        assert_eq!(allocated_node(&claim(own)), "n");
        assert_eq!(allocated_node(&claim(value!({"key": "x", "operator": "In", "values": ["n"]}))), "");
    }
}
