//! Refusing a write.

use flotilla_proto::value::Value;

use super::super::Attributes;
use crate::status::ApiError;

/// 403 about the object of a write. What has no name yet goes by the beginning of the one it will get.
pub fn forbidden(attributes: &Attributes<'_>, why: &str) -> ApiError {
    let object = attributes.object.as_ref().unwrap_or(&Value::Null);
    let names = [&*attributes.name, object.str_at(&["metadata", "name"]), object.str_at(&["metadata", "generateName"])];
    let name = names.into_iter().find(|name| !name.is_empty()).unwrap_or("Unknown");
    ApiError::forbidden(&attributes.resource.group, &attributes.resource.resource, name, why)
}
