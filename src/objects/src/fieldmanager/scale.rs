//! Translates field ownership for the subresource scale: the owner of an object's replicas owns those of its Scale.

use flotilla_proto::value::{Str, Value};

use super::entries::{Entries, FieldOwner, Owned};
use super::set;
use crate::status::{ApiError, ApiResult};

/// The version of Scale.
const SCALE_VERSION: &str = "autoscaling/v1";

/// The path of the replicas in a Scale.
const REPLICAS: [&str; 2] = ["spec", "replicas"];

/// The path of the replicas for each served version of the kind. `None` for versions without the subresource.
pub type Paths<'a> = &'a [(&'a str, Option<&'a [&'a str]>)];

fn path_in<'a>(paths: Paths<'a>, api_version: &str) -> Option<Option<&'a [&'a str]>> {
    paths.iter().find(|(version, _)| *version == api_version).map(|(_, path)| *path)
}

fn read(managed_fields: &Value) -> ApiResult<Entries> {
    Entries::read(managed_fields.clone()).map_err(|error| ApiError::unknown(error.to_string()))
}

/// Returns the `managedFields` of the Scale of an object that has these. `null` if its replicas have no owner.
///
/// # Errors
/// 500 if the `managedFields` cannot be read.
pub fn to_scale(managed_fields: &Value, paths: Paths<'_>) -> ApiResult<Value> {
    let mut entries = read(managed_fields)?;
    entries.0.retain(|_, entry| {
        let path = path_in(paths, &entry.api_version).flatten();
        path.is_some_and(|path| set::contains(&entry.set, path))
    });
    for entry in entries.0.values_mut() {
        *entry = Owned { api_version: SCALE_VERSION.into(), time: entry.time.take(), set: set::of_path(&REPLICAS) };
    }
    Ok(entries.write().unwrap_or_default())
}

/// Returns the `managedFields` of an object after its Scale was written, in the version `api_version`.
///
/// # Errors
/// 500 if either of them cannot be read.
pub fn to_parent(
    managed_fields: &Value,
    scale_fields: &Value,
    api_version: &str,
    paths: Paths<'_>,
) -> ApiResult<Value> {
    let (mut parent, mut scale) = (read(managed_fields)?, read(scale_fields)?);
    parent.0.retain(|owner, entry| match path_in(paths, &entry.api_version) {
        None => false,
        Some(Some(path)) if set::contains(&entry.set, path) => {
            // An updater of the object differs from an updater of its Scale with the same name, because the versions
            // differ.
            if scale.0.remove(owner).is_none() {
                set::remove(&mut entry.set, path);
            }
            !entry.set.is_empty()
        }
        Some(_) => true,
    });
    let mut entries: Vec<(FieldOwner, Owned)> = parent.0.into_iter().collect();
    let Some(path) = path_in(paths, api_version).flatten() else {
        return Ok(Entries::write_all(entries).unwrap_or_default());
    };
    for (owner, entry) in scale.0.into_iter().filter(|(_, entry)| set::contains(&entry.set, &REPLICAS)) {
        drop(entry);
        let own = Owned { api_version: Str::from(api_version), time: None, set: set::of_path(path) };
        entries.push((owner, own));
    }
    Ok(Entries::write_all(entries).unwrap_or_default())
}
