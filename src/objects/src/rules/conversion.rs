//! Converts objects between the versions of built-in kinds.

use flotilla_proto::conform;
use flotilla_proto::schema::Kind;
use flotilla_proto::value::Value;

use super::Strategy;

/// A conversion between two versions of a kind that differ by more than their names.
#[derive(Debug, Clone, Copy)]
pub struct Conversion {
    /// Group and version of the objects.
    pub from: (&'static str, &'static str),
    /// Group and version to which they are converted.
    pub to: (&'static str, &'static str),
    /// Changes the fields, except `kind` and `apiVersion`.
    pub change: fn(object: &mut Value),
}

impl Strategy {
    /// Converts an object from one version of the kind to another. Versions without a [`Conversion`] have the same
    /// fields, so that only `apiVersion` changes.
    pub fn convert(&self, from: &Kind, to: &Kind, mut object: Value) -> Value {
        object.set_at(&["kind"], &*to.name);
        object.set_at(&["apiVersion"], to.api_version());
        let versions = ((&*from.group, &*from.version), (&*to.group, &*to.version));
        let Some(found) = self.conversions.iter().find(|each| (each.from, each.to) == versions) else { return object };
        (found.change)(&mut object);
        // A field that one version may omit can be required in the other, and `conform` adds it. This cannot fail,
        // since a stored object fits its type.
        let _ = conform::conform(&to.of, &mut object);
        object
    }
}
