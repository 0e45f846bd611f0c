//! A write as matching criteria see it.

use std::sync::{Arc, OnceLock};

use flotilla_proto::value::Value;

use super::{DynamicAttributes, Operation};
use crate::served::Served;
use crate::status::{ApiError, ApiResult};
use crate::tables::{Tables, Target, kind_of, stored_tree};

/// A write as matching criteria see it. It borrows everything: a write without a match costs only the comparison.
#[derive(Debug)]
pub struct MatchAttributes<'a> {
    /// Gives access to namespaces and to the other versions of resources.
    pub tables: &'a Tables,
    /// The resource of the path, as the request's version serves it.
    pub served: &'a Served,
    /// Subresource; empty for the object itself.
    pub subresource: &'a str,
    /// Namespace; for a Namespace, its own name.
    pub namespace: &'a str,
    /// Name; empty where there is none yet, and for each object of a collection that is deleted.
    pub name: &'a str,
    /// The operation: create, update, delete or connect.
    pub operation: Operation,
    /// The object that will be stored, or the document, or the options of a connection.
    pub object: Option<&'a Value>,
    /// The stored object.
    pub old: Option<&'a Value>,
    /// Labels of the namespace, filled when they are first needed.
    labels: OnceLock<Value>,
}

impl<'a> MatchAttributes<'a> {
    /// Describes an operation on the target of a request.
    pub fn of(
        tables: &'a Tables,
        target: Target<'a>,
        operation: Operation,
        object: Option<&'a Value>,
        old: Option<&'a Value>,
    ) -> Self {
        let Target { served, namespace, name, subresource } = target;
        let named = object.filter(|_| operation == Operation::Create);
        let name = match name {
            "" => named.map_or("", |object| object.str_at(&["metadata", "name"])),
            name => name,
        };
        let namespace = if is_namespaces(served) { name } else { namespace };
        Self { tables, served, subresource, namespace, name, operation, object, old, labels: OnceLock::new() }
    }

    /// Returns group, version and plural name of the resource of the request.
    pub fn resource(&self) -> (&'a str, &'a str, &'a str) {
        let of = &self.served.resource;
        (&of.group, &of.version, &of.name)
    }

    /// Returns group, version and name of the kind of the request.
    pub fn kind(&self) -> (&'a str, &'a str, &'a str) {
        kind_of(self.served, self.subresource)
    }

    /// Returns whether the write is about a Namespace, or a subresource of one.
    pub fn is_of_namespaces(&self) -> bool {
        is_namespaces(self.served)
    }

    /// Returns the other versions, in any group, that serve the same objects and have the subresource.
    pub fn equivalents(&self) -> impl Iterator<Item = Arc<Served>> + use<'a> {
        let (own, subresource) = (self.resource(), self.subresource);
        let is_wanted = move |other: &Arc<Served>| {
            let of = &other.resource;
            !other.off
                && (&*of.group, &*of.version, &*of.name) != own
                && (subresource.is_empty() || of.subresources.iter().any(|part| part.name == subresource))
        };
        let all = self.tables.resources.versions(&self.served.table);
        (0..all.as_ref().map_or(0, |all| all.len()))
            .filter_map(move |at| all.as_ref().and_then(|all| all.get(at)).cloned())
            .filter(is_wanted)
    }

    /// Returns the labels of the write's namespace. For a Namespace that is created or updated these are its new
    /// labels.
    ///
    /// # Errors
    /// 404: there is no such namespace.
    pub fn namespace_labels(&self) -> ApiResult<&Value> {
        let is_written = self.is_of_namespaces()
            && self.subresource.is_empty()
            && matches!(self.operation, Operation::Create | Operation::Update);
        match self.object {
            Some(namespace) if is_written => Ok(namespace.at(&["metadata", "labels"])),
            _ => {
                if let Some(labels) = self.labels.get() {
                    return Ok(labels);
                }
                let labels = namespace_object(self.tables, self.namespace)?.at(&["metadata", "labels"]).clone();
                Ok(self.labels.get_or_init(|| labels))
            }
        }
    }
}

impl DynamicAttributes<'_> {
    /// Returns the write as matching criteria see it.
    pub fn for_matching(&self) -> MatchAttributes<'_> {
        MatchAttributes {
            tables: &self.admission.tables,
            served: self.served,
            subresource: self.subresource,
            namespace: &self.namespace,
            name: &self.name,
            operation: self.operation,
            object: self.object.as_ref(),
            old: self.old.as_ref(),
            labels: OnceLock::new(),
        }
    }
}

fn is_namespaces(served: &Served) -> bool {
    served.group().is_empty() && served.resource.name == "namespaces"
}

/// Returns a namespace as it is stored.
///
/// # Errors
/// 404: there is no such namespace.
pub(super) fn namespace_object(tables: &Tables, name: &str) -> ApiResult<Value> {
    let served = tables.resources.of_resource("", "namespaces").ok_or_else(ApiError::no_such_path)?;
    let found = tables.current(&served, "", name);
    stored_tree(&*found.ok_or_else(|| served.not_found(name))?)
}
