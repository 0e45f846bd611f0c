//! Prepares the metadata of an object that a client sent: its namespace, the fields that clients cannot set, and
//! generated names.

use flotilla_proto::value::Value;
use rand::Rng;

use super::Target;
use crate::limits;
use crate::status::{ApiError, ApiResult};

/// Characters of a generated suffix: no vowels, and none that is easily confused with another.
const SUFFIX: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
const SUFFIX_LENGTH: usize = 5;

/// Sets the object's namespace to that of the request. Returns 400 if the object states another one.
pub fn place(target: Target<'_>, object: &mut Value) -> ApiResult<()> {
    if !target.served.resource.namespaced {
        object.remove_at(&["metadata", "namespace"]);
        return Ok(());
    }
    match object.str_at(&["metadata", "namespace"]) {
        "" => object.set_at(&["metadata", "namespace"], target.namespace),
        own if own == target.namespace => {}
        _ => {
            let message = "the namespace of the provided object does not match the namespace sent on the request";
            return Err(ApiError::bad_request(message));
        }
    }
    Ok(())
}

/// Metadata that clients cannot set on new objects.
const SYSTEM_FIELDS: [&str; 5] =
    ["creationTimestamp", "uid", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"];

/// Clears metadata of a new object that a client may not set. No manager then owns it either.
pub fn wipe(object: &mut Value) {
    for field in SYSTEM_FIELDS {
        object.remove_at(&["metadata", field]);
    }
}

/// Returns a name that begins with `prefix` and ends with random characters.
pub fn generate(prefix: &str) -> String {
    let mut end = prefix.len().min(limits::GENERATED_NAME_BYTES - SUFFIX_LENGTH);
    while !prefix.is_char_boundary(end) {
        end -= 1;
    }
    prefix[..end].to_owned() + &suffix()
}

/// Returns random text that completes a name.
pub fn suffix() -> String {
    let mut random = rand::rng();
    (0..SUFFIX_LENGTH).map(|_| char::from(SUFFIX[random.random_range(0..SUFFIX.len())])).collect()
}
