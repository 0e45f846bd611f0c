//! How defaults are written into an object: what counts as not set depends on the field's presence in Go.

use flotilla_proto::value::{Map, Value};

/// Sets a field that is a pointer, a list or a map: zero is a value of its own, only absence is filled.
pub fn pointer(object: &mut Map, key: &str, value: impl Into<Value>) {
    let place = object.get(key);
    if place.is_none_or(Value::is_null) {
        object.insert(key, value);
    }
}

/// Sets a plain field: the empty string and zero are the same as absence.
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

/// The items of a list for changing them; none if there is no such list.
pub fn items<'a>(object: &'a mut Map, key: &str) -> &'a mut [Value] {
    object.get_mut(key).and_then(Value::as_array_mut).map(Vec::as_mut_slice).unwrap_or_default()
}

/// The items of a list that are objects, for changing them.
pub fn objects<'a>(object: &'a mut Map, key: &str) -> impl Iterator<Item = &'a mut Map> {
    items(object, key).iter_mut().filter_map(Value::as_object_mut)
}

/// A nested object, for changing it.
pub fn object<'a>(object: &'a mut Map, key: &str) -> Option<&'a mut Map> {
    object.get_mut(key).and_then(Value::as_object_mut)
}

/// A nested object, made if it is absent.
pub fn object_or_new<'a>(object: &'a mut Map, key: &str) -> Option<&'a mut Map> {
    let place = object.entry(key);
    if place.is_null() {
        *place = Value::object();
    }
    place.as_object_mut()
}
