//! A write, as those outside see it who decide about it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use flotilla_proto::value;
use flotilla_proto::value::Value;
use parking_lot::Mutex;

use super::{Matched, Operation, Reinvocation};
use crate::access::User;
use crate::registry::{Registry, stored_tree};
use crate::served::Served;
use crate::status::{ApiError, ApiResult};

/// Group, version and kind.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct GroupVersionKind {
    /// Group; empty for the core group.
    pub group: String,
    /// Version.
    pub version: String,
    /// Name of the kind.
    pub kind: String,
}

/// Group, version and plural name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct GroupVersionResource {
    /// Group; empty for the core group.
    pub group: String,
    /// Version.
    pub version: String,
    /// Plural name.
    pub resource: String,
}

/// A write that is to be decided about.
#[derive(Debug)]
pub struct Attributes<'a> {
    /// Objects, who may do what, and everything else that decisions look into.
    pub registry: &'a Registry,
    /// The resource of the path, as the request's version serves it.
    pub served: &'a Served,
    /// Kind of the request: of the object, or of the document of a subresource that has a kind of its own.
    pub kind: GroupVersionKind,
    /// Resource of the request.
    pub resource: GroupVersionResource,
    /// Subresource; empty for the object itself.
    pub subresource: &'a str,
    /// Namespace; that of a Namespace is its own name.
    pub namespace: String,
    /// Name; empty where there is none yet, and for each object of a collection that is deleted.
    pub name: String,
    /// What is done.
    pub operation: Operation,
    /// The object as it is to be stored, or the document, or the options of a connection; `None` for a deletion. It is
    /// in the version in which the registry checks it: see [`Attributes::seen_as`].
    pub object: Option<Value>,
    /// The object as it is stored; `None` where there is none.
    pub old: Option<Value>,
    /// Options of the request, with their kind; `None` for a connection.
    pub options: Option<Value>,
    /// Whether nothing is to be stored.
    pub dry_run: bool,
    /// Who asks.
    pub user: Arc<User>,
    /// When the request is given up.
    pub ends: Option<Instant>,
    /// What is asked again.
    pub reinvocation: Reinvocation,
    /// What is told besides the decision.
    pub told: Mutex<Told>,
}

/// What is told besides a decision, in order.
#[derive(Debug, Default)]
pub struct Told {
    /// To the client, as `Warning` headers.
    pub warnings: Vec<String>,
    /// To the audit log: keys and values.
    pub annotations: Vec<(String, String)>,
}

/// The objects of a write in one version.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// As [`Attributes::object`].
    pub object: Option<Value>,
    /// As [`Attributes::old`].
    pub old: Option<Value>,
}

impl GroupVersionKind {
    /// `apiVersion` of objects of the kind.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// As reviews and expressions have it.
    pub fn to_value(&self) -> Value {
        value!({"group": (&*self.group), "version": (&*self.version), "kind": (&*self.kind)})
    }

    /// The kind of the bodies of a resource, or of one of its subresources.
    pub fn of(served: &Served, subresource: &str) -> Self {
        let part = served.resource.subresources.iter().find(|part| part.name == subresource);
        let own = served.kind();
        let (group, version, kind) = match part.map(|part| &part.response_kind) {
            Some((group, version, kind)) if !kind.is_empty() => (group, version, kind),
            _ => (&own.group, &own.version, &own.name),
        };
        Self { group: group.to_string(), version: version.to_string(), kind: kind.to_string() }
    }
}

impl GroupVersionResource {
    /// As reviews and expressions have it.
    pub fn to_value(&self) -> Value {
        value!({"group": (&*self.group), "version": (&*self.version), "resource": (&*self.resource)})
    }

    /// The resource of this version.
    pub fn of(served: &Served) -> Self {
        let of = &served.resource;
        Self { group: of.group.to_string(), version: of.version.to_string(), resource: of.name.to_string() }
    }
}

impl Attributes<'_> {
    /// Tells the client something, once it is answered.
    pub fn warn(&self, text: String) {
        self.told.lock().warnings.push(text);
    }

    /// Tells the audit log something.
    pub fn annotate(&self, key: String, value: String) {
        self.told.lock().annotations.push((key, value));
    }

    /// What is left of the request's time; `None` where it has no end.
    pub fn left(&self) -> Option<Duration> {
        self.ends.map(|ends| ends.saturating_duration_since(Instant::now()))
    }

    /// The write as the request names it.
    pub fn as_requested(&self) -> Matched {
        Matched { resource: self.resource.clone(), kind: self.kind.clone(), other: None }
    }

    /// The write as it would be through another version.
    pub fn as_served(&self, other: &Arc<Served>) -> Matched {
        Matched {
            resource: GroupVersionResource::of(other),
            kind: GroupVersionKind::of(other, self.subresource),
            other: Some(Arc::clone(other)),
        }
    }

    /// The other versions, also in other groups, that serve the same objects and have the subresource.
    pub fn equivalents(&self) -> Vec<Arc<Served>> {
        let all = self.registry.resources.all();
        let has_part = |other: &Served| {
            self.subresource.is_empty() || other.resource.subresources.iter().any(|part| part.name == self.subresource)
        };
        let is_other = |other: &&Arc<Served>| {
            other.table == self.served.table && GroupVersionResource::of(other) != self.resource && has_part(other)
        };
        all.iter().filter(is_other).cloned().collect()
    }

    /// The objects of the write in the version that was matched.
    ///
    /// # Errors
    /// 500: they cannot be converted.
    pub async fn seen_as(&self, matched: &Matched) -> ApiResult<Seen> {
        let mut seen = Seen::default();
        for (from, to) in [(&self.object, &mut seen.object), (&self.old, &mut seen.old)] {
            if let Some(object) = from {
                *to = Some(self.registry.convert_object(self.served, object, &matched.kind).await?);
            }
        }
        Ok(seen)
    }

    /// Takes in what a plugin made of the object in the version that was matched: it is decoded, gets its defaults and
    /// is converted back. Whether it is another object now.
    ///
    /// # Errors
    /// 500: it cannot be decoded or converted.
    pub async fn replace(&mut self, matched: &Matched, object: Value) -> ApiResult<bool> {
        let Some(own) = &self.object else { return Ok(false) };
        let version = matched.other.as_deref().unwrap_or(self.served);
        let version = version.part(self.subresource).map_or(version, |part| part);
        let before = self.registry.convert_object(self.served, own, &matched.kind).await?;
        let (decoded, is_changed) = self.registry.decode_mutated(version, object, &before)?;
        let form = GroupVersionKind {
            group: own.str_at(&["apiVersion"]).split_once('/').map_or("", |(group, _)| group).to_owned(),
            version: own.str_at(&["apiVersion"]).rsplit('/').next().unwrap_or_default().to_owned(),
            kind: own.str_at(&["kind"]).to_owned(),
        };
        self.object = Some(self.registry.convert_object(version, &decoded, &form).await?);
        Ok(is_changed)
    }

    /// Labels of the namespace of the write. A Namespace that is written is looked at as it is to be stored.
    ///
    /// # Errors
    /// 404: there is no such namespace.
    pub fn namespace_labels(&self) -> ApiResult<Value> {
        let is_written = self.resource.resource == "namespaces"
            && self.subresource.is_empty()
            && matches!(self.operation, Operation::Create | Operation::Update);
        let labels = |namespace: &Value| namespace.at(&["metadata", "labels"]).clone();
        match &self.object {
            Some(namespace) if is_written => Ok(labels(namespace)),
            _ => self.namespace_object().map(|namespace| labels(&namespace)),
        }
    }

    /// The namespace of the write, as it is stored.
    ///
    /// # Errors
    /// 404: there is no such namespace.
    pub fn namespace_object(&self) -> ApiResult<Value> {
        let served = self.registry.resources.of_resource("", "namespaces").ok_or_else(ApiError::no_such_path)?;
        let found = self.registry.current(&served, "", &self.namespace);
        stored_tree(&*found.ok_or_else(|| served.not_found(&self.namespace))?)
    }
}
