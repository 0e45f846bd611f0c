//! Removes the fields that a manager applied before and no longer applies, unless other managers own them.

use flotilla_proto::schema::{Ref, Type};
use flotilla_proto::value::{Map, Value};

use super::entries::{Entries, Owned};
use super::form::Form;
use super::owned::{fields, with_named_fields};
use super::{ManagedResource, merge, set};
use crate::status::ApiResult;

/// Returns the merged object without the fields of `last` that have no owner any more. `entries` holds the new sets.
///
/// # Errors
/// The object cannot be converted to a version in which an entry names fields.
pub fn prune(
    resource: &ManagedResource<'_>,
    merged: Value,
    entries: &Entries,
    last: Option<&Owned>,
) -> ApiResult<Value> {
    let Some(last) = last.filter(|last| !last.set.is_empty()) else { return Ok(merged) };
    let version = resource.api_version();
    let owns_all = |entry: &Owned| entry.api_version == version && set::is_within(&last.set, &entry.set);
    if last.api_version == version && entries.0.values().any(owns_all) {
        return Ok(merged);
    }
    let convert = |object: &Value, to: &str| resource.versions.convert(object, to);
    let (at_last, of_last);
    let (of, whole): (&Type, &Value) = if last.api_version == version {
        (resource.of, &merged)
    } else {
        match convert(&merged, &last.api_version)? {
            Some((of, object)) => {
                (of_last, at_last) = (of, object);
                (&of_last, &at_last)
            }
            None => return Ok(merged),
        }
    };
    let form = Form::of_type(of);
    let last_set = with_named_fields(&last.set, Some(form));
    let mut pruned = merge::without(form, whole, &last_set);
    // First in the version that was pruned, so that the object can be converted to the others.
    pruned = add_back(of, whole, &pruned, &owned_at(entries, &last.api_version));
    let mut versions: Vec<&str> = entries.0.values().map(|entry| entry.api_version.as_str()).collect();
    versions.sort_unstable();
    versions.dedup();
    for other in versions.into_iter().filter(|other| *other != last.api_version) {
        let own = other == version && last.api_version == version;
        let both = if own { None } else { convert(whole, other)?.zip(convert(&pruned, other)?) };
        if let Some(((of, whole), (_, part))) = both {
            let part = add_back(&of, &whole, &part, &owned_at(entries, other));
            if let Some((_, back)) = convert(&part, &last.api_version)? {
                pruned = back;
            }
        }
    }
    pruned = add_back_dangling(of, whole, &pruned, &last_set);
    if last.api_version == version {
        return Ok(pruned);
    }
    Ok(convert(&pruned, &version)?.map_or(merged, |(_, object): (Ref<Type>, Value)| object))
}

/// Returns the fields that all managers together own in one version.
fn owned_at(entries: &Entries, api_version: &str) -> Map {
    let mut all = Map::new();
    for entry in entries.0.values().filter(|entry| entry.api_version == api_version) {
        set::unite(&mut all, &entry.set);
    }
    all
}

/// Returns the whole object without the fields that were pruned and have no owner.
fn add_back(of: &Type, whole: &Value, pruned: &Value, owned: &Map) -> Value {
    let form = Form::of_type(of);
    let mut gone = with_named_fields(&fields(of, whole), Some(form));
    set::subtract(&mut gone, &with_named_fields(&fields(of, pruned), Some(form)));
    set::subtract(&mut gone, &with_named_fields(owned, Some(form)));
    merge::without(form, whole, &gone)
}

/// Returns the whole object without the fields that were pruned and are in `last`. Fields stay that were pruned only
/// because a value that contains them was pruned.
fn add_back_dangling(of: &Type, whole: &Value, pruned: &Value, last: &Map) -> Value {
    let form = Form::of_type(of);
    let mut gone = with_named_fields(&fields(of, whole), Some(form));
    set::subtract(&mut gone, &with_named_fields(&fields(of, pruned), Some(form)));
    merge::without(form, whole, &set::intersection(&gone, last))
}
