//! Between the version of a request and the stored one.

use flotilla_cluster::Object;
use flotilla_proto::conform;
use flotilla_proto::value::{Map, Str, Value};

use super::encode;
use crate::kinds::conversion;
use crate::served::Served;
use crate::status::ApiResult;

/// An object of the request's version in that in which it is admitted and checked: the stored one, but for custom
/// resources that of the request, which has a schema of its own. They are converted when they are encoded.
pub fn to_stored(served: &Served, object: Value) -> Value {
    if served.custom.is_some() || served.is_stored_version() {
        return object;
    }
    let mut stored = conversion::convert(served.kind(), &served.stored, object);
    encode::order_members(&mut stored, &served.stored.of);
    stored
}

/// A stored object, as the request's version shows it.
///
/// # Errors
/// 500: it is a custom resource of a version that is not known any more.
pub fn to_served(served: &Served, object: Value) -> ApiResult<Value> {
    match &served.custom {
        Some(custom) => custom.show(object),
        None => Ok(shown(served, object)),
    }
}

/// An object that came of [`to_stored`], as the request's version would show it if it were stored.
pub fn as_if_stored(served: &Served, object: Value) -> ApiResult<Value> {
    match &served.custom {
        Some(custom) => custom.show(custom.store(object)?),
        None => Ok(shown(served, object)),
    }
}

fn shown(served: &Served, object: Value) -> Value {
    if served.is_stored_version() {
        return object;
    }
    let mut shown = conversion::convert(&served.stored, served.kind(), object);
    encode::order_members(&mut shown, served.of());
    shown
}

/// A stored object in the version in which it is admitted and checked; see [`to_stored`].
///
/// # Errors
/// As for [`to_served`].
pub fn current(served: &Served, object: Value) -> ApiResult<Value> {
    match &served.custom {
        Some(custom) => custom.show(object),
        None => Ok(object),
    }
}

/// Whether storing an object that came of [`to_stored`] would change nothing. `old` is what [`current`] made of
/// `stored`. Definitions may have changed since a custom resource was stored, also the version that is stored.
pub fn is_unchanged(served: &Served, new: &Value, old: &Value, stored: &Object) -> ApiResult<bool> {
    match &served.custom {
        Some(custom) if new == old => Ok(custom.store(new.clone())? == encode::stored_tree(stored)?),
        Some(_) => Ok(false),
        None => Ok(new == old),
    }
}

/// Drops what is empty and was not there before, in an object of the request's version: see [`conform::forget_empty`].
/// Custom resources keep it.
pub fn forget_empty(served: &Served, object: &mut Value, before: &Value) {
    if served.custom.is_none() {
        conform::forget_empty(served.of(), object, before);
    }
}

/// Writes the defaults of the kind into an object of the request's version. The kind states them for its stored form.
///
/// # Errors
/// 413: those of a custom resource make it larger than an object may be.
pub fn default(served: &Served, object: &mut Value) -> ApiResult<()> {
    if let Some(custom) = &served.custom {
        return custom.default(object);
    }
    if served.is_stored_version() {
        (served.strategy.default)(object);
        return Ok(());
    }
    let mut stored = to_stored(served, std::mem::take(object));
    served.strategy.default_converted.unwrap_or(served.strategy.default)(&mut stored);
    *object = shown(served, stored);
    Ok(())
}

/// Writes the defaults into a valid object of the stored version that were left out while it was checked, as it came in
/// another version.
pub fn default_valid(served: &Served, object: &mut Value) {
    if served.strategy.default_converted.is_some() && !served.is_stored_version() {
        (served.strategy.default)(object);
        encode::order_members(object, &served.stored.of);
    }
}

/// As [`default`], for an object that was made of one which has its defaults: of what both share they are not written
/// again, where the kind says that they follow from that alone.
///
/// # Errors
/// As for [`default`].
pub fn default_changed(served: &Served, object: &mut Value, before: &Value) -> ApiResult<()> {
    if !served.strategy.defaults_by_member || !served.is_stored_version() {
        return default(served, object);
    }
    let shared: Vec<(Str, Value)> = object
        .as_object_mut()
        .into_iter()
        .flat_map(Map::iter_mut)
        .filter_map(|(key, member)| member.is_same(before.at(&[key])).then(|| (key.into(), std::mem::take(member))))
        .collect();
    (served.strategy.default)(object);
    shared.into_iter().for_each(|(key, member)| object.set_at(&[&key], member));
    Ok(())
}
