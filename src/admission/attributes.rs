//! A write as admission policies and webhooks see it.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use flotilla_objects::api_version;
use flotilla_proto::value::Value;
use parking_lot::Mutex;

use super::match_attributes::namespace_object;
use super::policy::PolicyVariables;
use super::{Admission, MatchedVersion, Operation, Reinvocation, RuleVersion};
use crate::access::User;
use crate::request::Notices;
use crate::served::Served;
use crate::status::{ApiError, ApiResult};
use crate::tables::{GroupVersionKind, GroupVersionResource};

/// A write about which policies and webhooks decide. It owns the objects, in the version in which the registry
/// validates them, and records the plugins that must run again. Plugins within the server get
/// [`BuiltInAttributes`](super::BuiltInAttributes).
#[derive(Debug)]
pub struct DynamicAttributes<'a> {
    /// Gives access to objects, to the authorizer and to the configuration.
    pub admission: &'a Admission,
    /// The resource of the path, as the request's version serves it.
    pub served: &'a Served,
    /// Kind of the request: of the object, or of the document of a subresource that has a kind of its own.
    pub kind: GroupVersionKind,
    /// Resource of the request.
    pub resource: GroupVersionResource,
    /// Subresource; empty for the object itself.
    pub subresource: &'a str,
    /// Namespace; for a Namespace, its own name.
    pub namespace: String,
    /// Name; empty where there is none yet, and for each object of a collection that is deleted.
    pub name: String,
    /// The operation: create, update, delete or connect.
    pub operation: Operation,
    /// The object that will be stored, or the document, or the options of a connection, in the version in which the
    /// registry validates it: see [`DynamicAttributes::seen_as`]. `None` for a deletion.
    pub object: Option<Value>,
    /// The stored object. `None` if there is none.
    pub old: Option<Value>,
    /// Options of the request, with their kind. `None` for a connection.
    pub options: Option<Value>,
    /// Whether nothing will be stored.
    pub dry_run: bool,
    /// The user of the request.
    pub user: Arc<User>,
    /// The time at which the request times out. `None` if it does not time out.
    pub ends: Option<Instant>,
    /// Whether the audit log records the objects of the request.
    pub records_objects: bool,
    /// The plugins that must run again after the object changed.
    pub reinvocation: Reinvocation,
    /// Warnings and audit annotations, besides the decision.
    pub notices: Mutex<Notices>,
    /// The namespace, the authorizer and the resource as expressions see them; made for the first expression.
    pub variables: OnceLock<Arc<PolicyVariables>>,
}

/// The objects of a write in one version.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// The object; see [`DynamicAttributes::object`].
    pub object: Option<Value>,
    /// The stored object; see [`DynamicAttributes::old`].
    pub old: Option<Value>,
}

impl DynamicAttributes<'_> {
    /// Adds a warning for the client.
    pub fn warn(&self, text: String) {
        self.notices.lock().warn(text);
    }

    /// Adds an audit annotation.
    pub fn annotate(&self, key: String, value: String) {
        self.notices.lock().annotate(key, value);
    }

    /// Returns the remaining time of the request. Returns `None` if the request does not time out.
    pub fn left(&self) -> Option<Duration> {
        self.ends.map(|ends| ends.saturating_duration_since(Instant::now()))
    }

    /// Returns the resource and kind of the write in the version in which criteria matched it.
    pub fn through(&self, version: RuleVersion) -> MatchedVersion {
        match version {
            RuleVersion::Requested => {
                MatchedVersion { resource: self.resource.clone(), kind: self.kind.clone(), other: None }
            }
            RuleVersion::Other(other) => MatchedVersion {
                resource: GroupVersionResource::of(&other),
                kind: GroupVersionKind::of(&other, self.subresource),
                other: Some(other),
            },
        }
    }

    /// Refuses a write whose time is over.
    ///
    /// # Errors
    /// 504: the time of the request is over.
    pub fn in_time(&self) -> ApiResult<()> {
        match self.left() {
            Some(Duration::ZERO) => {
                Err(ApiError::timeout("Timeout: request did not complete within requested timeout", 0))
            }
            _ => Ok(()),
        }
    }

    /// Converts the objects of the write to the version that was matched.
    ///
    /// # Errors
    /// 500: they cannot be converted.
    pub async fn seen_as(&self, matched: &MatchedVersion) -> ApiResult<Seen> {
        let mut seen = Seen::default();
        for (from, to) in [(&self.object, &mut seen.object), (&self.old, &mut seen.old)] {
            if let Some(object) = from {
                *to = Some(self.admission.tables.convert_object(self.served, object, &matched.kind).await?);
            }
        }
        Ok(seen)
    }

    /// Replaces the object by the one that a plugin returned in the matched version: decodes that object, adds its
    /// defaults and converts it back. Returns whether the object changed.
    ///
    /// # Errors
    /// 500: it cannot be decoded or converted.
    pub async fn replace(&mut self, matched: &MatchedVersion, object: Value) -> ApiResult<bool> {
        let Some(own) = &self.object else { return Ok(false) };
        let version = matched.other.as_deref().unwrap_or(self.served);
        let version = version.part(self.subresource).map_or(version, |part| part);
        let before = self.admission.tables.convert_object(self.served, own, &matched.kind).await?;
        let (decoded, is_changed) = self.admission.tables.decode_mutated(version, object, &before)?;
        let form = GroupVersionKind {
            group: api_version::group(own.str_at(&["apiVersion"])).to_owned(),
            version: own.str_at(&["apiVersion"]).rsplit('/').next().unwrap_or_default().to_owned(),
            kind: own.str_at(&["kind"]).to_owned(),
        };
        self.object = Some(self.admission.tables.convert_object(version, &decoded, &form).await?);
        Ok(is_changed)
    }

    /// Returns the namespace of the write, as it is stored.
    ///
    /// # Errors
    /// 404: there is no such namespace.
    pub fn namespace_object(&self) -> ApiResult<Value> {
        namespace_object(&self.admission.tables, &self.namespace)
    }
}
