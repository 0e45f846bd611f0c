//! OwnerReferencesPermissionEnforcement: lets users change owners only of objects that they may delete, and block the
//! deletion only of owners whose finalizers they may set.

use flotilla_objects::api_version;
use flotilla_proto::value::Value;

use crate::access::{Attributes, ResourceAttributes};
use crate::admission::plugin::{DecidesBy, Plugin, Presence, ResourcePart};
use crate::admission::{BuiltInAttributes, Operation};
use crate::field::quote;
use crate::status::ApiResult;

const OWNERS: [&str; 2] = ["metadata", "ownerReferences"];

/// The plugin.
pub const PLUGIN: Plugin =
    Plugin::new("OwnerReferencesPermissionEnforcement", Presence::Off).validating(decides_by, validate);

fn decides_by(part: ResourcePart<'_>, operation: Operation) -> Option<DecidesBy> {
    // Other documents than the object, such as scales, have no owners. The status of pods cannot change them.
    let has_owners = match part.subresource {
        "" => true,
        "status" => part.name() != ("", "pods", "status"),
        _ => false,
    };
    (has_owners && matches!(operation, Operation::Create | Operation::Update)).then_some(DecidesBy::Object)
}

fn validate(write: &BuiltInAttributes<'_>, object: &Value) -> ApiResult<()> {
    let had = write.old.map_or(&[][..], |old| old.list_at(&OWNERS));
    if object.list_at(&OWNERS) == had {
        return Ok(());
    }
    if write.old.is_some()
        && let Some(reason) = lacks(write, deletion(write))
    {
        let why = format!("cannot set an ownerRef on a resource you can't delete: {reason}, <nil>");
        return Err(write.refuse(object, &why));
    }
    let mut blocking = newly_blocking(object, write.old).peekable();
    if blocking.peek().is_none() || lacks(write, finalizers(("*", "*"), "*", "", "*")).is_none() {
        return Ok(());
    }
    blocking.try_for_each(|owner| may_block(write, object, owner))
}

fn deletion<'a>(write: &BuiltInAttributes<'a>) -> ResourceAttributes<'a> {
    let target = write.target;
    ResourceAttributes {
        verb: "delete",
        group: target.served.group(),
        version: &target.served.kind().version,
        resource: &target.served.resource.name,
        subresource: target.subresource,
        namespace: target.namespace,
        name: target.name,
        ..ResourceAttributes::default()
    }
}

fn finalizers<'a>(
    (group, version): (&'a str, &'a str),
    resource: &'a str,
    namespace: &'a str,
    name: &'a str,
) -> ResourceAttributes<'a> {
    let (verb, subresource) = ("update", "finalizers");
    ResourceAttributes { verb, group, version, resource, subresource, namespace, name, ..ResourceAttributes::default() }
}

/// Returns the reason why the user lacks a permission; it may be empty. Returns `None` if the user has the permission.
fn lacks(write: &BuiltInAttributes<'_>, of: ResourceAttributes<'_>) -> Option<String> {
    let caller = write.caller;
    let decision =
        write.admission.tables.authorizer.decide(caller.identity.user(), &Attributes::Resource(of), &caller.inquiry);
    (!decision.is_allowed()).then_some(decision.reason)
}

/// Returns the owners whose deletion the object blocks now and did not block before.
fn newly_blocking<'a>(object: &'a Value, old: Option<&'a Value>) -> impl Iterator<Item = &'a Value> {
    let had = old.map_or(&[][..], |old| old.list_at(&OWNERS));
    let blocks = |owner: &Value| owner.is_true_at(&["blockOwnerDeletion"]);
    let blocked = move |owner: &Value| {
        let uid = owner.str_at(&["uid"]);
        had.iter().rfind(|known| known.str_at(&["uid"]) == uid).is_some_and(blocks)
    };
    object.list_at(&OWNERS).iter().filter(move |owner| blocks(owner) && !blocked(owner))
}

/// Returns `Ok` if the user may block the deletion of an owner.
fn may_block(write: &BuiltInAttributes<'_>, object: &Value, owner: &Value) -> ApiResult<()> {
    let (api_version, kind) = (owner.str_at(&["apiVersion"]), owner.str_at(&["kind"]));
    let group = api_version::group(api_version);
    let Some(served) = write.admission.tables.resources.of_kind(group, kind) else {
        let why = format!(
            "cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion {api_version} \
             Kind {kind}: no matches for kind {} in version {}",
            quote(kind),
            quote(api_version)
        );
        return Err(write.refuse(object, &why));
    };
    // A namespaced owner is in the namespace of the object.
    let namespace = if served.resource.namespaced { write.target.namespace } else { "" };
    let of =
        finalizers((served.group(), &served.kind().version), &served.resource.name, namespace, owner.str_at(&["name"]));
    match lacks(write, of) {
        Some(reason) => {
            let why = format!(
                "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: \
                 {reason}, <nil>"
            );
            Err(write.refuse(object, &why))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use flotilla_proto::value;

    use super::*;

    #[test]
    fn only_newly_blocked_owners_count() {
        let owned = |blocks: &[(&str, bool)]| {
            let owner = |(uid, blocks): &(&str, bool)| value!({"uid": (*uid), "blockOwnerDeletion": (*blocks)});
            value!({"metadata": {"ownerReferences": (blocks.iter().map(owner).collect::<Vec<_>>())}})
        };
        let uids = |new: &Value, old: Option<&Value>| {
            newly_blocking(new, old).map(|owner| owner.str_at(&["uid"]).to_owned()).collect::<Vec<_>>()
        };
        let old = owned(&[("a", true), ("b", false)]);
        let new = owned(&[("a", true), ("b", true), ("c", true), ("d", false)]);
        assert_eq!(uids(&new, Some(&old)), ["b", "c"]);
        assert_eq!(uids(&new, None), ["a", "b", "c"]);
    }
}
