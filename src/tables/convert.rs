//! Converts objects between the version of a request and the stored version.

use flotilla_cluster::Object;
use flotilla_proto::conform;
use flotilla_proto::value::{Map, Str, Value};

use super::encode;
use crate::served::Served;
use crate::status::ApiResult;
use crate::wall_clock::timestamp as now;

/// Converts an object from the version of the request to the version in which it is admitted and validated. For
/// built-in kinds that is the stored version. For custom resources it is the version of the request, which has a schema
/// of its own; they are converted when they are encoded.
pub fn to_stored(served: &Served, object: Value) -> Value {
    if served.custom.is_some() || served.is_stored_version() {
        return object;
    }
    let mut stored = served.strategy.convert(served.kind(), &served.stored, object);
    encode::order_members(&mut stored, &served.stored.of);
    stored
}

/// Converts a stored object to the version of the request.
///
/// # Errors
/// 500: it is a custom resource in a version that its definition no longer has.
pub fn to_served(served: &Served, object: Value) -> ApiResult<Value> {
    match &served.custom {
        Some(custom) => custom.show(object),
        None => Ok(shown(served, object)),
    }
}

/// Converts a result of [`to_stored`] to the version of the request, as if it had been stored.
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
    let mut shown = served.strategy.convert(&served.stored, served.kind(), object);
    encode::order_members(&mut shown, served.of());
    shown
}

/// Converts a stored object to the version in which it is admitted and validated; see [`to_stored`].
///
/// # Errors
/// As for [`to_served`].
pub fn current(served: &Served, object: Value) -> ApiResult<Value> {
    match &served.custom {
        Some(custom) => custom.show(object),
        None => Ok(object),
    }
}

/// Returns whether storing `new` would change nothing. [`to_stored`] returned `new`, and [`current`] returned `old` for
/// `stored`. A custom resource may need a write in spite of equal content: its definition, and with it the stored
/// version, may have changed since it was stored.
pub fn is_unchanged(served: &Served, new: &Value, old: &Value, stored: &Object) -> ApiResult<bool> {
    match &served.custom {
        Some(custom) if new == old => Ok(custom.store(new.clone())? == encode::stored_tree(stored)?),
        Some(_) => Ok(false),
        None => Ok(new == old),
    }
}

/// Replaces empty values by `null` in an object of the stored version, before it is stored: see
/// [`conform::forget_empty`]. Custom resources keep empty values.
pub fn forget_empty(served: &Served, object: &mut Value, before: &Value) {
    if served.custom.is_none() {
        conform::forget_empty(&served.stored.of, object, before);
    }
}

/// Does the same as [`forget_empty`] where `before` has `null`, in an object of the version of the request. Other empty
/// values are changes of the client, and are validated as it sent them.
pub fn forget_equal(served: &Served, object: &mut Value, before: &Value) {
    if served.custom.is_none() {
        conform::forget_equal(served.of(), object, before);
    }
}

/// Writes the defaults of the kind into an object of the version of the request. The kind states them for its stored
/// version.
///
/// # Errors
/// 413: the defaults of a custom resource make it larger than an object may be.
pub fn default(served: &Served, object: &mut Value) -> ApiResult<()> {
    if let Some(custom) = &served.custom {
        return custom.default(object);
    }
    if served.is_stored_version() {
        served.strategy.set_defaults(object, now());
        return Ok(());
    }
    let mut stored = to_stored(served, std::mem::take(object));
    match served.strategy.default_converted {
        Some(default) => default(&mut stored),
        None => served.strategy.set_defaults(&mut stored, now()),
    }
    *object = shown(served, stored);
    Ok(())
}

/// Writes defaults into a valid object of the stored version. An object that came in another version is validated
/// before it gets these defaults.
pub fn default_valid(served: &Served, object: &mut Value) {
    if served.strategy.default_converted.is_some() && !served.is_stored_version() {
        served.strategy.set_defaults(object, now());
        encode::order_members(object, &served.stored.of);
    }
}

/// Does the same as [`default`] for an object made from one that has its defaults. Members that both share are skipped
/// if the kind says that the defaults of a member depend on that member alone.
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
    served.strategy.set_defaults(object, now());
    shared.into_iter().for_each(|(key, member)| object.set_at(&[&key], member));
    Ok(())
}
