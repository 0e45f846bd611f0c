//! Taking over objects that another server has stored: they are valid already, and keep everything that they have.

use flotilla_cluster::{Draft, limits};
use flotilla_proto::schema::Kind;
use flotilla_proto::value::Value;

use super::encode;
use crate::kinds::conversion;
use crate::served::Served;
use crate::status::{ApiError, ApiResult};

impl Served {
    /// An object that was read by a kind of a built-in resource, in the version that is stored.
    pub fn converted_to_stored(&self, of: &Kind, object: Value) -> Value {
        let is_stored = (&of.group, &of.version) == (&self.stored.group, &self.stored.version);
        if is_stored { object } else { conversion::convert(of, &self.stored, object) }
    }
}

/// What the store keeps of an object in its stored version; a custom resource may be in any version of its definition.
/// Of built-in kinds what was left out since has its default, as if the object were read by a newer Kubernetes.
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
            // A webhook that converts it cannot be asked, so it is converted when it is read.
            if custom.converted_by_webhook().is_some() || is_stored {
                object.sort_members();
                encode::draft_as_is(served, &object)
            } else {
                encode::draft(served, &object)?
            }
        }
        None => {
            (served.strategy.default)(&mut object);
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
