//! Compares the current object with the state that a client claims to have seen.

use flotilla_cluster::Object;
use flotilla_proto::value::Value;

use super::Target;
use crate::field::{ErrorKind, FieldError};
use crate::request::query::parse_revision;
use crate::served::Served;
use crate::status::{ApiError, ApiResult};

/// The message of 409 when the object is not the one that the client saw.
pub const MODIFIED: &str =
    "the object has been modified; please apply your changes to the latest version and try again";

/// Compares the revision that the client saw, if it stated one. A patch without one carries the current revision.
pub fn check_revision(target: Target<'_>, new: &Value, current: &Object) -> ApiResult<()> {
    let served = target.served;
    let stated = new.str_at(&["metadata", "resourceVersion"]);
    let revision = parse_revision(stated).map_err(|why| {
        // In the reference this error comes from the storage, which does not name the field.
        let bare = why.find("strconv.").map_or(why.as_str(), |at| &why[at..]);
        ApiError::unknown(bare)
    })?;
    if revision == 0 {
        if served.strategy.unconditional_update {
            return Ok(());
        }
        let error = FieldError {
            kind: ErrorKind::Invalid,
            field: "metadata.resourceVersion".into(),
            shown: "0".into(),
            detail: "must be specified for an update".into(),
        };
        return Err(ApiError::invalid(served.group(), &served.resource.name, target.name, &[error]));
    }
    if revision != current.revision().get() {
        return Err(ApiError::conflict(served.group(), &served.resource.name, target.name, MODIFIED));
    }
    Ok(())
}

/// Returns 409 when the client saw another object with this name.
pub fn check_uid(target: Target<'_>, new: &Value, old: &Value, dry_run: bool) -> ApiResult<()> {
    let (stated, own) = (new.str_at(&["metadata", "uid"]), old.str_at(&["metadata", "uid"]));
    if stated.is_empty() || stated == own {
        return Ok(());
    }
    let why = wrong_uid(target, stated, own, dry_run);
    Err(ApiError::conflict(target.served.group(), &target.served.resource.name, target.name, &why))
}

/// Returns the message of 409 for an object that is not the one that the client saw.
pub fn wrong_uid(target: Target<'_>, stated: &str, own: &str, dry_run: bool) -> String {
    format!(
        "StorageError: invalid object, Code: 4, Key: {}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: {stated}, UID in object meta: {own}",
        registry_key(target, dry_run)
    )
}

/// Returns the key of an object in the reference's own store, which some of its messages contain. A dry run fails
/// before the store adds its prefix.
pub fn registry_key(target: Target<'_>, dry_run: bool) -> String {
    let root = if dry_run { "" } else { "/registry" };
    let prefix = match target.served.custom {
        Some(_) => format!("{}/{}", target.served.group(), target.served.resource.name),
        None => storage_prefix(target.served).to_owned(),
    };
    let namespace = if target.served.resource.namespaced { format!("{}/", target.namespace) } else { String::new() };
    format!("{root}/{prefix}/{namespace}{}", target.name)
}

/// Returns the part of the key that names the resource. Some resources keep the name under which they were first
/// stored.
fn storage_prefix(served: &Served) -> &str {
    match (&*served.stored.group, &*served.resource.name) {
        ("", "services") => "services/specs",
        ("", "endpoints") => "services/endpoints",
        ("", "nodes") => "minions",
        ("", "replicationcontrollers") => "controllers",
        ("networking.k8s.io", "ingresses") => "ingress",
        (_, name) => name,
    }
}
