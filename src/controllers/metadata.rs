//! What controllers read of an object's metadata, without reading the object.
//!
//! Most changes concern no controller; finding that out must not cost decoding them. A member's name with its quotes
//! and colon cannot stand inside a JSON string, where quotes are escaped, so that searching the text is sound.

use flotilla_cluster::Object;
use flotilla_proto::json::{self, Part};
use flotilla_proto::value::Value;
use memchr::memmem;

pub use crate::registry::mentions;
use crate::status::{ApiError, ApiResult};

/// All but who owns which fields, which is most of it and concerns no controller: it stands last.
const PART: Part = Part::but(&[("managedFields", Part::Rest)]);
/// The same of a custom resource, where it stands among the others.
const SORTED_PART: Part = Part::but(&[("managedFields", Part::Nothing)]);

/// The tree of an object's metadata alone, without its managed fields.
pub fn metadata(object: &Object) -> ApiResult<Value> {
    let unreadable = || ApiError::internal(format_args!("the metadata of {} is no JSON", object.key()));
    read(object.metadata()).ok_or_else(unreadable)
}

fn read(text: &[u8]) -> Option<Value> {
    json::parse_part(text, if is_sorted(text) { SORTED_PART } else { PART }, 0..text.len())
}

/// Whether members are sorted by name, as in custom resources: then others come before the name, which every object
/// has.
fn is_sorted(text: &[u8]) -> bool {
    !text.starts_with(b"{\"name\":")
}

/// The UID in the metadata of an object.
pub fn uid(object: &Object) -> Option<&str> {
    uid_in(object.metadata())
}

fn uid_in(text: &[u8]) -> Option<&str> {
    const MEMBER: &[u8] = b"\"uid\":\"";
    // Owners have one each. They stand behind it where members have their usual order, and before it where they are
    // sorted.
    let at = if is_sorted(text) { memmem::rfind(text, MEMBER) } else { memmem::find(text, MEMBER) };
    let start = at? + MEMBER.len();
    let length = text[start..].iter().position(|byte| *byte == b'"')?;
    std::str::from_utf8(&text[start..start + length]).ok()
}

/// Whether an object waits for a finalizer before it goes.
pub fn has_finalizer(object: &Value, finalizer: &str) -> bool {
    object.list_at(&["metadata", "finalizers"]).iter().any(|known| known.as_str() == Some(finalizer))
}

/// Takes a finalizer away.
pub fn release(object: &mut Value, finalizer: &str) {
    let finalizers = object.get_mut("metadata").and_then(|metadata| metadata.get_mut("finalizers"));
    if let Some(finalizers) = finalizers.and_then(Value::as_array_mut) {
        finalizers.retain(|known| known.as_str() != Some(finalizer));
    }
}

/// Whether the object is being deleted. Labels and annotations may have that name, too.
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
