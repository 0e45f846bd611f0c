//! What controllers read of an object's metadata, without reading the object.
//!
//! Most changes concern no controller; finding that out must not cost decoding them. A member's name with its quotes
//! and colon cannot stand inside a JSON string, where quotes are escaped, so that searching the text is sound.

use flotilla_cluster::Object;
use flotilla_proto::json;
use flotilla_proto::value::Value;

pub use crate::registry::mentions;
use crate::status::{ApiError, ApiResult};

/// The tree of an object's metadata alone.
pub fn metadata(object: &Object) -> ApiResult<Value> {
    json::parse(object.metadata())
        .map_err(|error| ApiError::internal(format_args!("metadata of {}: {error}", object.key())))
}

/// Whether the object is being deleted.
pub fn is_deleting(object: &Object) -> bool {
    mentions(object, "\"deletionTimestamp\":")
}
