//! Builds the variables that expressions of policies see besides the objects of a write.

use std::sync::Arc;
use std::time::Instant;

use flotilla_cel::library::authorizer::{Authorizer, Resource};
use flotilla_proto::value;
use flotilla_proto::value::Value;
use futures_util::future::BoxFuture;

use super::super::webhooks::user_info;
use super::super::{DynamicAttributes, MatchedVersion, Seen};
use super::cached_authorizer::CachedAuthorizer;
use crate::expressions::Inputs;
use crate::status::ApiResult;
use crate::tables::{GroupVersionKind, GroupVersionResource};

/// Members of a namespace's metadata that expressions do not see.
const HIDDEN: [&str; 3] = ["managedFields", "ownerReferences", "selfLink"];

/// The variables that are the same for all policies of a write.
#[derive(Debug)]
pub struct PolicyVariables {
    namespace: Value,
    authorizer: Arc<dyn Authorizer>,
    decisions: Arc<CachedAuthorizer>,
    ends: Option<Instant>,
    resource: Resource,
}

impl PolicyVariables {
    /// Returns the variables of a write. Builds them on the first call.
    ///
    /// # Errors
    /// 404: there is no such namespace.
    pub fn of(attributes: &DynamicAttributes<'_>) -> ApiResult<Arc<Self>> {
        if let Some(variables) = attributes.variables.get() {
            return Ok(Arc::clone(variables));
        }
        let variables = Self::made(attributes)?;
        Ok(Arc::clone(attributes.variables.get_or_init(|| Arc::new(variables))))
    }

    fn made(attributes: &DynamicAttributes<'_>) -> ApiResult<Self> {
        let is_namespace = attributes.kind.kind == "Namespace" && attributes.kind.group.is_empty();
        let namespace = if is_namespace || attributes.namespace.is_empty() {
            Value::Null
        } else {
            shown(&attributes.namespace_object()?)
        };
        let (authorizer, user) = (attributes.admission.tables.authorizer.clone(), Arc::clone(&attributes.user));
        let resource = Resource {
            group: attributes.resource.group.clone(),
            resource: attributes.resource.resource.clone(),
            subresource: attributes.subresource.to_owned(),
            namespace: attributes.namespace.clone(),
            name: attributes.name.clone(),
            ..Resource::default()
        };
        let decisions = Arc::new(CachedAuthorizer::new(authorizer, user));
        let authorizer = Arc::clone(&decisions) as Arc<dyn Authorizer>;
        Ok(Self { namespace, authorizer, decisions, ends: attributes.ends, resource })
    }

    /// Returns a future that asks the webhook on whose answer the last evaluation depends. The evaluation must be
    /// repeated afterwards. Returns `None` if no webhook must be asked.
    pub fn pending(&self) -> Option<BoxFuture<'_, ()>> {
        self.decisions.inquiry().pending(self.ends)
    }

    /// Returns all variables for one evaluation.
    pub fn inputs<'a>(&'a self, seen: &'a Seen, request: &'a Value, params: &'a Value) -> Inputs<'a> {
        Inputs {
            object: seen.object.as_ref().unwrap_or(&Value::Null),
            old_object: seen.old.as_ref().unwrap_or(&Value::Null),
            request,
            namespace: &self.namespace,
            params,
            authorizer: Some((&self.authorizer, &self.resource)),
        }
    }
}

/// Returns a namespace in the form that expressions see.
fn shown(namespace: &Value) -> Value {
    let mut metadata = namespace.at(&["metadata"]).clone();
    if let Some(members) = metadata.as_object_mut() {
        members.retain(|name, _| !HIDDEN.contains(&name));
    }
    let part = |name: &str| {
        let part = namespace.at(&[name]);
        if part.is_null() { Value::object() } else { part.clone() }
    };
    value!({"metadata": metadata, "spec": (part("spec")), "status": (part("status"))})
}

/// Returns the variable `request` with this resource and kind. Policies see those that they matched; match conditions
/// see the resource of the request.
pub fn request(attributes: &DynamicAttributes<'_>, resource: &GroupVersionResource, kind: &GroupVersionKind) -> Value {
    let mut request = value!({"uid": "", "kind": (kind.to_value()), "resource": (resource.to_value())});
    let texts = |request: &mut Value, fields: &[(&str, &str)]| {
        let stated = fields.iter().filter(|(_, text)| !text.is_empty());
        stated.for_each(|(field, text)| request.set_at(&[field], *text));
    };
    texts(&mut request, &[("subResource", attributes.subresource)]);
    request.set_at(&["requestKind"], attributes.kind.to_value());
    request.set_at(&["requestResource"], attributes.resource.to_value());
    texts(
        &mut request,
        &[
            ("requestSubResource", attributes.subresource),
            ("name", &attributes.name),
            ("namespace", &attributes.namespace),
        ],
    );
    request.set_at(&["operation"], attributes.operation.name());
    request.set_at(&["userInfo"], user_info(&attributes.user));
    request.set_at(&["dryRun"], attributes.dry_run);
    request.set_at(&["options"], attributes.options.clone().unwrap_or_default());
    request
}

/// Returns the variable `request` as match conditions see it, and as all other expressions see it.
pub fn requests(attributes: &DynamicAttributes<'_>, matched: &MatchedVersion) -> (Value, Value) {
    let all = request(attributes, &matched.resource, &matched.kind);
    if matched.resource == attributes.resource {
        return (all.clone(), all);
    }
    (request(attributes, &attributes.resource, &matched.kind), all)
}
