//! Field ownership: `metadata.managedFields` on every write, and server-side apply.
//!
//! The rules are those of KEP-555 and of structured-merge-diff as Kubernetes uses it. All functions are pure: the
//! caller passes objects, types and the time. Objects are in the version of the request and conform to its type.
//!
//! # Where the registry calls
//!
//! - **POST, PUT, PATCH**: decode and default the body or the patched object, then call [`update`], before mutating
//!   admission and before the strategy clears fields that the client may not set. Decoding drops `managedFields: []`:
//!   therefore call [`untracks`] with the object before decoding, and pass its result on. If admission has replaced the
//!   `managedFields` that [`update`] wrote, check them with [`validate`].
//! - **Apply**: parse the body as YAML without decoding it. [`apply`] returns the merged object; decode and default it
//!   ([`ManagedResource::unconvertible`] is the error if that fails), then [`Applied::finish`] writes `managedFields`.
//!   Where [`Applied::object`] is `None`, the live object stays as it is. Continue as for a patch.
//! - Before an update is stored, call [`restore_times`] last: an update that changes only times then changes nothing.
//! - **/scale** works on a Scale with the entries that [`scale::to_scale`] returns; [`scale::to_parent`] converts the
//!   resulting entries back. The [`ManagedResource`] is the Scale of `autoscaling/v1`.
//!
//! If [`update`] cannot compare or convert the objects, they lose their `managedFields`, as in the reference. Updates
//! never fail because of that.

mod added;
mod apply;
mod check;
mod compare;
mod configure;
mod element;
mod entries;
mod form;
mod merge;
mod owned;
mod prune;
pub mod reset;
pub mod scale;
mod set;
mod update;

use flotilla_proto::schema::{Ref, Type};
use flotilla_proto::value::{Map, Value};

use crate::patch::restore;
use crate::status::{ApiError, ApiResult};

pub use apply::{Applied, apply};
pub use configure::configured;
pub use entries::UPDATERS_MAX;
pub use update::{restore_times, untracks, update, validate};

/// The resource to write, in the version of the request.
#[derive(Clone, Copy)]
pub struct ManagedResource<'a> {
    /// The type of the objects.
    pub of: &'a Type,
    /// API group; empty for the core group.
    pub group: &'a str,
    /// API version without the group: `v1`.
    pub version: &'a str,
    /// Kind.
    pub kind: &'a str,
    /// Whether stored objects always fit the type. Custom resources may have been written under another schema.
    pub fixed: bool,
    /// Fields that this endpoint does not write, with everything below them; the kind's strategy names them.
    pub reset: &'a [&'a [&'a str]],
    /// The other versions of the kind.
    pub versions: &'a dyn Versions,
}

/// The served versions of a kind.
pub trait Versions {
    /// Converts an object from any served version to the version `api_version`, spelled as in `apps/v1`. Returns it
    /// with the type of that version. `None` when the version is not served. The object may lack required fields.
    ///
    /// # Errors
    /// The object cannot be converted.
    fn convert(&self, object: &Value, api_version: &str) -> ApiResult<Option<(Ref<Type>, Value)>>;
}

/// The versions of a kind that has only one.
#[derive(Debug, Clone, Copy)]
pub struct OneVersion;

impl Versions for OneVersion {
    fn convert(&self, _: &Value, _: &str) -> ApiResult<Option<(Ref<Type>, Value)>> {
        Ok(None)
    }
}

/// A request that writes.
#[derive(Debug, Clone, Copy)]
pub struct Write<'a> {
    /// The field manager: `fieldManager` of the query, or a name derived from the user agent.
    pub manager: &'a str,
    /// The subresource through which the request writes (`status`, `scale`). Empty for the object itself.
    pub subresource: &'a str,
    /// The time of the write: RFC 3339 in whole seconds.
    pub now: &'a str,
}

/// Maximum length of the name of a field manager, in bytes.
pub const MANAGER_BYTES_MAX: usize = 128;

impl ManagedResource<'_> {
    fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.to_owned() } else { format!("{}/{}", self.group, self.version) }
    }

    fn described(&self) -> String {
        described(self.group, self.version, self.kind)
    }

    /// Returns the error for a merged object that cannot be decoded; `why` is the decoder's text.
    pub fn unconvertible(&self, applied: &Value, merged: &Value, why: &str) -> ApiError {
        let (object, kind) = (self.object(applied), self.described());
        let why = restore::complaint(self.of, merged, why);
        ApiError::unknown(format!(
            "failed to convert new object ({object}) to proper version: unable to convert unstructured object to \
             {kind}: {why}"
        ))
    }

    /// Formats an object for errors of apply.
    fn object(&self, object: &Value) -> String {
        let meta = |key| object.str_at(&["metadata", key]);
        format!("{}/{}; {}", meta("namespace"), meta("name"), self.described())
    }
}

/// Formats a kind for errors of apply: `apps/v1, Kind=Deployment`.
fn described(group: &str, version: &str, kind: &str) -> String {
    format!("{group}/{version}, Kind={kind}")
}

/// Returns whether two objects are equal apart from `metadata.managedFields` and the revision, which the store sets.
fn equal_besides_ownership(a: &Value, b: &Value) -> bool {
    fn equal(a: &Map, b: &Map, skip: &[&str], member: impl Fn(&str, &Value, &Value) -> bool) -> bool {
        let count = |map: &Map| map.keys().filter(|key| !skip.contains(key)).count();
        count(a) == count(b)
            && a.iter()
                .filter(|(key, _)| !skip.contains(key))
                .all(|(key, value)| b.get(key).is_some_and(|other| member(key, value, other)))
    }
    let metadata = |a: &Value, b: &Value| match (a, b) {
        (Value::Object(a), Value::Object(b)) => equal(a, b, &["managedFields", "resourceVersion"], |_, a, b| a == b),
        (a, b) => a == b,
    };
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            equal(a, b, &[], |key, a, b| if key == "metadata" { metadata(a, b) } else { a == b })
        }
        (a, b) => a == b,
    }
}

#[cfg(test)]
#[path = "fieldmanager_tests.rs"]
mod tests;

#[cfg(test)]
mod custom_tests;
