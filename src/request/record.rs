//! The findings of the stages of a request that the audit log needs.

use std::sync::Arc;

use bytes::Bytes;
use compact_str::CompactString;
use flotilla_proto::value::Value;
use flotilla_proto::{json, order};

use crate::access::User;
use crate::served::Served;
use crate::wall_clock;

/// The findings about a request whose event will be recorded.
#[derive(Debug, Clone, Default)]
pub struct Record {
    /// Whether the object of the request is recorded.
    pub wants_object: bool,
    /// Whether objects are recorded without `metadata.managedFields`.
    pub without_managed_fields: bool,
    /// Whether the version of the objects is deprecated.
    pub is_deprecated: bool,
    /// The release of Kubernetes that no longer serves that version. `None` if none is named.
    pub removed_release: Option<String>,
    /// The object of the request, as JSON.
    pub object: Option<Bytes>,
    /// The identity of the object of the request.
    pub stated: ObjectIdentity,
    /// Whether the request is allowed, and the reason.
    pub decision: Option<(bool, String)>,
    /// The impersonated user, and the permission by which it may be impersonated.
    pub impersonated: Option<(Arc<User>, String)>,
}

/// The identity that an object states. Members that it does not state are empty.
#[derive(Debug, Clone, Default)]
pub struct ObjectIdentity {
    /// Its namespace.
    pub namespace: CompactString,
    /// Its name.
    pub name: CompactString,
    /// Its UID.
    pub uid: CompactString,
    /// Its resource version.
    pub resource_version: CompactString,
}

impl ObjectIdentity {
    fn of(object: &Value) -> Self {
        let text = |member| CompactString::from(object.str_at(&["metadata", member]));
        Self {
            namespace: text("namespace"),
            name: text("name"),
            uid: text("uid"),
            resource_version: text("resourceVersion"),
        }
    }
}

impl Record {
    /// Records the object of a request, with the defaults of its kind.
    pub fn take_object(&mut self, served: &Served, value: &Value) {
        self.stated = ObjectIdentity::of(value);
        if !self.wants_object {
            return;
        }
        let mut value = value.clone();
        served.strategy.set_defaults(&mut value, wall_clock::timestamp());
        order::reorder(served.of(), &mut value);
        self.keep(value);
    }

    /// Records the options of a deletion, under the version that the reference gives them.
    pub fn take_options(&mut self, options: Option<&Value>) {
        if let Some(options) = options.filter(|_| self.wants_object) {
            let mut value = flotilla_proto::value!({"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/__internal"});
            for (name, member) in options.as_object().into_iter().flat_map(|members| members.iter()) {
                if !matches!(name, "kind" | "apiVersion") {
                    value.set_at(&[name], member.clone());
                }
            }
            self.keep(value);
        }
    }

    /// Records a patch as JSON without line breaks: as it was sent if it has this form, else converted.
    pub fn take_patch(&mut self, patch: &Bytes) {
        if self.wants_object {
            match json::check(patch) {
                Ok(()) if !patch.contains(&b'\n') => self.object = Some(patch.clone()),
                Ok(()) => self.object = json::parse(patch).ok().map(|value| json::to_vec(&value).into()),
                Err(_) => {
                    let parsed = flotilla_proto::yaml::parse(patch);
                    self.object = parsed.ok().map(|parsed| json::to_vec(&parsed.value).into());
                }
            }
        }
    }

    fn keep(&mut self, mut value: Value) {
        if self.without_managed_fields {
            value.remove_at(&["metadata", "managedFields"]);
        }
        self.object = Some(json::to_vec(&value).into());
    }
}
