//! Who owns which fields: `metadata.managedFields` on every write, and server-side apply.
//!
//! Rules are those of KEP-555 and of structured-merge-diff as Kubernetes uses it. Everything here is pure: the caller
//! brings objects, types and the time. Objects are in the version of the request and conform to its type.
//!
//! # Where the registry calls
//!
//! - **POST, PUT, PATCH**: decode and default the body or patched object, then [`update`] (before mutating admission,
//!   before the strategy clears what the client may not set). `managedFields: []` does not survive decoding: ask
//!   [`untracks`] about the undecoded object and pass on what it says. After admission has changed an object whose
//!   `managedFields` are not those that [`update`] wrote, check them with [`validate`].
//! - **Apply**: parse the body as YAML, not decoded. [`apply`] gives the merged object, which is then decoded and
//!   defaulted (if that fails: [`Target::unconvertible`]); then [`Applied::finish`] writes `managedFields`. Where
//!   [`Applied::object`] is `None`, the live object stays as it is. From there on as for a patch.
//! - Last, before an update is stored: [`settle`], so that an update that changes nothing but times is none.
//! - **/scale** works on a Scale with the entries that [`scale::to_scale`] gives it; [`scale::to_parent`] takes the
//!   outcome back. Its [`Target`] is `autoscaling/v1` Scale.
//!
//! Objects that [`update`] cannot make sense of lose their `managedFields`, as with the reference; updates never fail
//! because of them.

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
mod reset;
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
pub use reset::{custom_reset_fields, reset_fields};
pub use update::{settle, untracks, update, validate};

/// The resource that is written, in the version of the request.
#[derive(Clone, Copy)]
pub struct Target<'a> {
    /// The type of the objects.
    pub of: &'a Type,
    /// API group; empty for the core group.
    pub group: &'a str,
    /// API version without the group: `v1`.
    pub version: &'a str,
    /// Kind.
    pub kind: &'a str,
    /// Whether objects always fit the type. Those of custom resources may have been written under another schema.
    pub fixed: bool,
    /// Fields that this endpoint does not write, with all below; see [`reset_fields`].
    pub reset: &'a [&'a [&'a str]],
    /// The other versions of the kind.
    pub versions: &'a dyn Versions,
}

/// The served versions of a kind.
pub trait Versions {
    /// An object, in any served version, in the version `api_version` (as in `apps/v1`), with that version's type.
    /// `None` when the version is not served. The object may lack required fields.
    ///
    /// # Errors
    /// When the object cannot be converted.
    fn convert(&self, object: &Value, api_version: &str) -> ApiResult<Option<(Ref<Type>, Value)>>;
}

/// For kinds of one version.
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
    /// The field manager: the query's `fieldManager`, or what is made of the user agent.
    pub manager: &'a str,
    /// The subresource written through (`status`, `scale`); empty for the object itself.
    pub subresource: &'a str,
    /// The time of the write, RFC 3339 in whole seconds.
    pub now: &'a str,
}

/// How many bytes the name of a field manager may have.
pub const MANAGER_BYTES_MAX: usize = 128;

impl Target<'_> {
    fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.to_owned() } else { format!("{}/{}", self.group, self.version) }
    }

    fn described(&self) -> String {
        described(self.group, self.version, self.kind)
    }

    /// The error when the merged object of an apply cannot be decoded; `why` is the decoder's complaint.
    pub fn unconvertible(&self, applied: &Value, merged: &Value, why: &str) -> ApiError {
        let (object, kind) = (self.object(applied), self.described());
        let why = restore::complaint(self.of, merged, why);
        ApiError::unknown(format!(
            "failed to convert new object ({object}) to proper version: unable to convert unstructured object to \
             {kind}: {why}"
        ))
    }

    /// An object as errors of apply name it.
    fn object(&self, object: &Value) -> String {
        let meta = |key| object.str_at(&["metadata", key]);
        format!("{}/{}; {}", meta("namespace"), meta("name"), self.described())
    }
}

/// A kind as errors of apply name it: `apps/v1, Kind=Deployment`.
fn described(group: &str, version: &str, kind: &str) -> String {
    format!("{group}/{version}, Kind={kind}")
}

/// Whether two objects are equal in all but `metadata.managedFields` and, because it is the store's, the revision.
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
