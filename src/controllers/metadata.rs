//! Reads metadata of an object for controllers, without decoding the object.
//!
//! Most changes concern no controller, and finding that out must be cheap. Searching the JSON text for the name of a
//! member with its quotes and colon is sound: it cannot occur inside a JSON string, where quotes are escaped.

use flotilla_cluster::Object;
use flotilla_proto::json::{self, Part};
use flotilla_proto::value::Value;
use memchr::memmem;

use crate::status::{ApiError, ApiResult};
pub use crate::tables::mentions;

/// All metadata except `managedFields`, which is the largest part, concerns no controller and is the last member.
const PART: Part = Part::but(&[("managedFields", Part::Rest)]);
/// The same for a custom resource, whose members are sorted, so that `managedFields` is not the last one.
const SORTED_PART: Part = Part::but(&[("managedFields", Part::Nothing)]);

/// Returns the metadata of an object without its managed fields.
pub fn metadata(object: &Object) -> ApiResult<Value> {
    let unreadable = || ApiError::internal(format_args!("the metadata of {} is no JSON", object.key()));
    read(object.metadata()).ok_or_else(unreadable)
}

fn read(text: &[u8]) -> Option<Value> {
    json::parse_part(text, if is_sorted(text) { SORTED_PART } else { PART }, 0..text.len())
}

/// Returns whether members are sorted by name, as in custom resources: then other members come before `name`, which
/// every object has.
fn is_sorted(text: &[u8]) -> bool {
    !text.starts_with(b"{\"name\":")
}

/// Returns the UID of an object. `None` if it has none.
pub fn uid(object: &Object) -> Option<&str> {
    uid_in(object.metadata())
}

fn uid_in(text: &[u8]) -> Option<&str> {
    const MEMBER: &[u8] = b"\"uid\":\"";
    // References to owners have a member `uid`, too. It comes after the object's UID in the usual order of members, and
    // before it if members are sorted.
    let at = if is_sorted(text) { memmem::rfind(text, MEMBER) } else { memmem::find(text, MEMBER) };
    let start = at? + MEMBER.len();
    let length = text[start..].iter().position(|byte| *byte == b'"')?;
    std::str::from_utf8(&text[start..start + length]).ok()
}

/// Returns whether an object has a finalizer.
pub fn has_finalizer(object: &Value, finalizer: &str) -> bool {
    object.list_at(&["metadata", "finalizers"]).iter().any(|known| known.as_str() == Some(finalizer))
}

/// Removes a finalizer.
pub fn release(object: &mut Value, finalizer: &str) {
    let finalizers = object.get_mut("metadata").and_then(|metadata| metadata.get_mut("finalizers"));
    if let Some(finalizers) = finalizers.and_then(Value::as_array_mut) {
        finalizers.retain(|known| known.as_str() != Some(finalizer));
    }
}

/// Returns whether the object is being deleted. A label or annotation with that name does not count.
pub fn is_deleting(object: &Object) -> bool {
    mentions(object, "\"deletionTimestamp\":")
        && metadata(object).is_ok_and(|metadata| !metadata.at(&["deletionTimestamp"]).is_null())
}

#[cfg(test)]
mod tests {
    use flotilla_proto::value;

    use super::*;

    #[test]
    fn metadata_is_read_in_either_order_of_members() {
        let usual =
            br#"{"name":"a","uid":"own","ownerReferences":[{"uid":"other"}],"managedFields":[{"manager":"m"}]}"#;
        let sorted = br#"{"creationTimestamp":"x","managedFields":[{"manager":"m"}],"name":"a","ownerReferences":[{"uid":"other"}],"uid":"own"}"#;
        for text in [&usual[..], &sorted[..]] {
            assert_eq!(uid_in(text), Some("own"));
            let mut read = read(text).unwrap();
            read.remove_at(&["creationTimestamp"]);
            assert_eq!(read, value!({"name": "a", "ownerReferences": [{"uid": "other"}], "uid": "own"}));
        }
    }
}
