//! What controllers read of an object's metadata, without reading the object.
//!
//! Most changes concern no controller; finding that out must not cost decoding them. A member's name with its quotes
//! and colon cannot stand inside a JSON string, where quotes are escaped, so that searching the text is sound.

use flotilla_cluster::Object;
use flotilla_proto::json::{self, Part};
use flotilla_proto::value::Value;

pub use crate::registry::mentions;
use crate::status::{ApiError, ApiResult};

/// All but who owns which fields, which is most of it and concerns no controller. Of custom objects, whose members are
/// sorted by name, others stand behind it.
const PART: Part = Part::but(&[("managedFields", Part::Nothing)]);

/// The tree of an object's metadata alone, without its managed fields.
pub fn metadata(object: &Object) -> ApiResult<Value> {
    let text = object.metadata();
    let unreadable = || ApiError::internal(format_args!("the metadata of {} is no JSON", object.key()));
    json::parse_part(text, PART, 0..text.len()).ok_or_else(unreadable)
}

/// Whether the object is being deleted. Labels and annotations may have that name, too.
pub fn is_deleting(object: &Object) -> bool {
    mentions(object, "\"deletionTimestamp\":")
        && metadata(object).is_ok_and(|metadata| !metadata.at(&["deletionTimestamp"]).is_null())
}
