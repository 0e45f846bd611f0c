//! The change that a client makes to an object. PUT, PATCH, apply and subresources differ in this part of an update.

use flotilla_proto::value::Value;

use super::ownership::Missing;
use super::{Incoming, Target};
use crate::request::Caller;
use crate::status::{ApiError, ApiResult};

/// Makes the changed object from the current one. Both are in the version of the request. The changed object has its
/// defaults, and also its `managedFields` if [`Change::owns_managed_fields`] returns true.
pub trait Change: Send {
    /// Makes the changed object.
    fn apply(&mut self, current: &Value, caller: &mut Caller) -> ApiResult<Value>;

    /// Returns the conversions by webhook that the last [`Change::apply`] lacked. If there are any, its result is void.
    fn missing_conversions(&mut self) -> Vec<Missing> {
        Vec::new()
    }

    /// Returns whether the change maintains `managedFields` itself.
    fn owns_managed_fields(&self) -> bool {
        false
    }

    /// Returns whether the client turns the tracking of field owners off.
    fn untracked(&self) -> bool {
        false
    }

    /// Returns whether the client sent the whole object, rather than a patch of it.
    fn replaces(&self) -> bool {
        false
    }

    /// Returns whether a UID in the result is a precondition, rather than a change of the UID.
    fn names_uid(&self) -> bool {
        false
    }

    /// Returns the document that the client changes, if it is a part of the object with a kind of its own, such as a
    /// Scale. Returns `None` if the client changes the object itself.
    fn document(&self, _object: &Value) -> Option<Value> {
        None
    }

    /// Returns the field owners of that document after the last [`Change::apply`], for plugins that may change the
    /// document. Null if no owners are recorded.
    fn owners(&self) -> &Value {
        &Value::Null
    }

    /// Copies a changed document into the object.
    fn take_over(&self, _document: &Value, _object: &mut Value) {}
}

/// A PUT: the body replaces the object.
pub(super) struct Replace(pub(super) Incoming);

impl Change for Replace {
    fn apply(&mut self, _: &Value, _: &mut Caller) -> ApiResult<Value> {
        Ok(self.0.value.clone())
    }

    fn untracked(&self) -> bool {
        self.0.untracked
    }

    fn replaces(&self) -> bool {
        true
    }

    fn names_uid(&self) -> bool {
        true
    }
}

/// Returns 400 when the body names another object than the path.
pub(super) fn check_identity(target: Target<'_>, object: &Value) -> ApiResult<()> {
    let name = object.str_at(&["metadata", "name"]);
    if name.is_empty() {
        let message =
            format!("the name of the object ({} based on URL) was undeterminable: name must be provided", target.name);
        return Err(ApiError::bad_request(message));
    }
    if name != target.name {
        let message = format!("the name of the object ({name}) does not match the name on the URL ({})", target.name);
        return Err(ApiError::bad_request(message));
    }
    let namespace = object.str_at(&["metadata", "namespace"]);
    if !namespace.is_empty() && namespace != target.namespace && target.served.resource.namespaced {
        let message = format!(
            "the namespace of the object ({namespace}) does not match the namespace on the URL ({})",
            target.namespace
        );
        return Err(ApiError::bad_request(message));
    }
    Ok(())
}
