//! Takes over objects that another server has stored. They are valid already, and keep all of their content.

use flotilla_cluster::{Draft, limits};
use flotilla_proto::schema::Kind;
use flotilla_proto::value::Value;

use super::{encode, now};
use crate::served::Served;
use crate::status::{ApiError, ApiResult};

impl Served {
    /// Converts an object of a built-in kind to the stored version of its resource.
    pub fn converted_to_stored(&self, of: &Kind, object: Value) -> Value {
        let is_stored = (&of.group, &of.version) == (&self.stored.group, &self.stored.version);
        if is_stored { object } else { self.strategy.convert(of, &self.stored, object) }
    }
}

/// Encodes an object for the store. An object of a built-in kind is in its stored version and gets the defaults of
/// fields that it lacks, as if a newer Kubernetes read it. A custom resource may be in any version of its definition.
///
/// # Errors
/// 413: it is larger than an object may be. 422: it has no metadata.
pub fn adopt(served: &Served, mut object: Value) -> ApiResult<Draft> {
    if object.map_at(&["metadata"]).is_none() {
        return Err(ApiError::new(422, "Invalid", "the object has no metadata"));
    }
    let draft = match &served.custom {
        Some(custom) => {
            let is_stored = object.str_at(&["apiVersion"]) == served.stored.api_version();
            // The webhook of the definition cannot be called here. The object is converted when it is read.
            if custom.converted_by_webhook().is_some() || is_stored {
                object.sort_members();
                encode::draft_as_is(served, &object)
            } else {
                encode::draft(served, &object)?
            }
        }
        None => {
            served.strategy.set_defaults(&mut object, now());
            encode::order_members(&mut object, &served.stored.of);
            encode::draft_as_is(served, &object)
        }
    };
    if draft.bytes.len() > limits::OBJECT_BYTES_MAX {
        let message = format!("Request entity too large: limit is {}", limits::OBJECT_BYTES_MAX);
        return Err(ApiError::new(413, "RequestEntityTooLarge", message));
    }
    Ok(draft)
}
