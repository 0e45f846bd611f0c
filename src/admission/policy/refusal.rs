//! Makes the error for a write that a policy refuses.

use flotilla_proto::value::Value;

use super::super::DynamicAttributes;
use crate::status::ApiError;

/// Returns 403 about the object of a write. An object without a name is called by its `generateName`.
pub fn forbidden(attributes: &DynamicAttributes<'_>, why: &str) -> ApiError {
    let object = attributes.object.as_ref().unwrap_or(&Value::Null);
    let names = [&*attributes.name, object.str_at(&["metadata", "name"]), object.str_at(&["metadata", "generateName"])];
    let name = names.into_iter().find(|name| !name.is_empty()).unwrap_or("Unknown");
    ApiError::forbidden(&attributes.resource.group, &attributes.resource.resource, name, why)
}
