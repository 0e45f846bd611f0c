//! Applies the patch of a mutating webhook to an object.

use flotilla_proto::value::Value;

use super::Failure;
use super::review_response::ReviewResponse;
use crate::field::quote;
use crate::patch::{Format, Operations};
use crate::status::ApiError;

/// Returns the object as a webhook of this name changed it. Returns `None` if the webhook wants no change. The caller
/// must decode and validate the result.
///
/// # Errors
/// The patch cannot be parsed or applied, or there is no object to change.
pub fn patched(webhook: &str, response: &ReviewResponse, object: Option<&Value>) -> Result<Option<Value>, Failure> {
    if response.patch.is_empty() {
        return Ok(None);
    }
    let operations = Operations::parse(&response.patch).map_err(|why| {
        let message = format!("received undecodable patch in webhook response: {why}");
        Failure::calling(webhook, &message, 503)
    })?;
    if operations.is_empty() {
        return Ok(None);
    }
    let Some(object) = object else {
        let hook = quote(webhook);
        let why = format!(
            "admission webhook {hook} attempted to modify the object, which is not supported for this operation"
        );
        return Err(Failure::Internal(ApiError::internal(why)));
    };
    if response.patch_type != Format::JSON_PATCH_TYPE {
        return Err(Failure::calling(webhook, &format!("unsupported patch type {}", quote(&response.patch_type)), 400));
    }
    operations.apply_telling(object.clone()).map(Some).map_err(|why| Failure::Internal(ApiError::internal(why)))
}

#[cfg(test)]
mod tests {
    use flotilla_proto::value;

    use super::*;

    fn with(patch: &str, object: Option<&Value>) -> Result<Option<Value>, String> {
        let response =
            ReviewResponse { patch: patch.into(), patch_type: "JSONPatch".into(), ..ReviewResponse::default() };
        patched("w", &response, object).map_err(|failure| match failure {
            Failure::Calling(message, _) => message,
            Failure::Refused(error) | Failure::Internal(error) => error.message,
        })
    }

    #[test]
    fn patches_apply_or_the_error_says_why() {
        let object = value!({"metadata": {"name": "a"}, "list": [1]});
        let labelled = with(r#"[{"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}]"#, Some(&object));
        assert_eq!(labelled.unwrap().unwrap().str_at(&["metadata", "labels", "a"]), "b");
        assert_eq!(with("[]", Some(&object)), Ok(None));
        let why = |patch: &str| with(patch, Some(&object)).unwrap_err();
        assert_eq!(
            why(r#"[{"op": "add", "path": "/x/y", "value": 1}]"#),
            "Internal error occurred: add operation does not apply: doc is missing path: \"/x/y\": missing value"
        );
        assert_eq!(
            why(r#"[{"op": "remove", "path": "/metadata/z"}]"#),
            "Internal error occurred: error in remove for path: '/metadata/z': Unable to remove nonexistent key: z: missing value"
        );
        assert_eq!(
            why(r#"[{"op": "add", "path": "/list/7", "value": 1}]"#),
            "Internal error occurred: error in add for path: '/list/7': Unable to access invalid index: 7: invalid index referenced"
        );
        assert_eq!(
            why(r#"[{"op": "test", "path": "/metadata/name", "value": "b"}]"#),
            "Internal error occurred: testing value /metadata/name failed: test failed"
        );
        let none = with(r#"[{"op": "remove", "path": "/a"}]"#, None).unwrap_err();
        assert!(none.contains("attempted to modify the object, which is not supported for this operation"), "{none}");
        let unreadable = why("{}");
        assert!(unreadable.starts_with("failed calling webhook \"w\": received undecodable patch"), "{unreadable}");
    }
}
