//! Sets defaults in objects. As in Go, the form of a field decides whether its zero value counts as unset.

use flotilla_proto::value::{Map, Value};

/// Sets a field that is a pointer, a list or a map in Go, if it is absent; a zero value counts as set.
pub fn pointer(object: &mut Map, key: &str, value: impl Into<Value>) {
    let place = object.get(key);
    if place.is_none_or(Value::is_null) {
        object.insert(key, value);
    }
}

/// Sets a plain field if it is absent, zero or the empty string, which mean the same.
pub fn plain(object: &mut Map, key: &str, value: impl Into<Value>) {
    let unset = match object.get(key) {
        None | Some(Value::Null) | Some(Value::Int(0)) => true,
        Some(Value::Str(text)) => text.is_empty(),
        Some(_) => false,
    };
    if unset {
        object.insert(key, value);
    }
}

/// Returns the items of a list for changing them. Returns no items if there is no such list.
pub fn items<'a>(object: &'a mut Map, key: &str) -> &'a mut [Value] {
    object.get_mut(key).and_then(Value::as_array_mut).map(Vec::as_mut_slice).unwrap_or_default()
}

/// Returns the items of a list that are objects, for changing them.
pub fn objects<'a>(object: &'a mut Map, key: &str) -> impl Iterator<Item = &'a mut Map> {
    items(object, key).iter_mut().filter_map(Value::as_object_mut)
}

/// Returns a nested object for changing it. Returns `None` if it is absent or no object.
pub fn object<'a>(object: &'a mut Map, key: &str) -> Option<&'a mut Map> {
    object.get_mut(key).and_then(Value::as_object_mut)
}

/// Returns a nested object for changing it. Adds it if it is absent. Returns `None` if the member is no object.
pub fn object_or_new<'a>(object: &'a mut Map, key: &str) -> Option<&'a mut Map> {
    let place = object.entry(key);
    if place.is_null() {
        *place = Value::object();
    }
    place.as_object_mut()
}
