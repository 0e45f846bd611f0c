//! Who answers a request: what its method and path come to, and whether there is such a thing.

use std::sync::Arc;

use compact_str::CompactString;
use flotilla_proto::schema::Subresource;

use super::handler::Head;
use super::members;
use crate::backup::BACKUP_PATH;
use crate::console::Part;
use crate::field::quote;
use crate::overview::OVERVIEW_PATH;
use crate::request::path::{self, ResourcePath, Target};
use crate::request::verb::Verb;
use crate::served::{Resources, Served};
use crate::status::{ApiError, ApiResult};

/// Where the server tells what it measured.
const METRICS: &str = "/metrics";
/// Where it tells what the checks of health say, in the same form.
const HEALTH_METRICS: &str = "/metrics/slis";

/// Who answers a request.
#[derive(Debug)]
pub(super) enum Routed {
    /// Those who know objects.
    Objects(RequestInfo),
    /// Nobody, as far as is known here: it is about objects that are not built in, and not defined.
    Unserved(RequestInfo),
    /// Nobody: it watches, but no resource.
    WatchOfNothing,
    /// What was measured.
    Metrics,
    /// The results of the checks of health, as measurements.
    HealthMetrics,
    /// The administration of the cluster: what of it.
    Cluster(CompactString),
    /// What this member tells of itself and its cluster.
    Overview,
    /// The console: which part of it.
    Console(Part),
    /// A backup.
    Backup,
    /// Discovery, health, and other documents, if any.
    Document,
}

/// What a request about objects asks for.
#[derive(Debug)]
pub(super) struct RequestInfo {
    /// What the path names.
    pub(super) of: ResourcePath,
    /// The verb of the method on such a path, whether or not the resource has it.
    pub(super) verb: Option<Verb>,
    /// The resource; 404 where there is none, or none in this shape. Who may not ask is not told.
    pub(super) served: ApiResult<Arc<Served>>,
}

/// Finds who answers a request for a path that is not decoded yet; `watch` is what its query says.
pub(super) fn route(resources: &Resources, method: &str, path: &str, watch: bool) -> Routed {
    let decoded = path::decode(path);
    match path::parse(&decoded) {
        Target::Resource(of) => {
            let served = resources.find(&of.group, &of.version, &of.resource).filter(|served| !served.off);
            let is_nowhere = served.is_none() && !resources.has_group(&of.group);
            objects(served, is_nowhere, of, method, watch)
        }
        Target::WatchOfNothing => Routed::WatchOfNothing,
        Target::Other => match &*decoded {
            METRICS => Routed::Metrics,
            HEALTH_METRICS => Routed::HealthMetrics,
            BACKUP_PATH => Routed::Backup,
            OVERVIEW_PATH => Routed::Overview,
            other => elsewhere(other),
        },
    }
}

/// Finds who answers a request for what this server has besides objects and documents.
fn elsewhere(path: &str) -> Routed {
    match (Part::of(path), members::asked(path)) {
        (Some(part), _) => Routed::Console(part),
        (None, Some(asked)) => Routed::Cluster(asked.into()),
        (None, None) => Routed::Document,
    }
}

/// Finds who answers a request for objects of a resource, if it is known; whether not even its group is built in.
pub(super) fn objects(
    served: Option<Arc<Served>>,
    is_nowhere: bool,
    of: ResourcePath,
    method: &str,
    watch: bool,
) -> Routed {
    let custom = served.as_ref().filter(|served| served.custom.is_some());
    // HEAD is no verb of what is built in.
    let method = if method == "HEAD" && custom.is_some() { "GET" } else { method };
    let verb = Verb::of(method, watch, &of);
    let is_nowhere = match custom {
        Some(custom) => !is_custom_path(custom, &of, verb),
        None => is_nowhere,
    };
    let info = RequestInfo { verb, served: find(served, &of), of };
    if is_nowhere { Routed::Unserved(info) } else { Routed::Objects(info) }
}

/// Whether a path has a shape in which there are custom resources of a kind: their definition is not asked for others.
fn is_custom_path(served: &Served, of: &ResourcePath, verb: Option<Verb>) -> bool {
    let is_across = of.name.is_none() && matches!(verb, Some(Verb::List | Verb::Watch));
    let is_placed = match served.resource.namespaced {
        true => of.namespace.is_some() || is_across,
        false => of.namespace.is_none(),
    };
    is_placed && of.rest.is_none()
}

/// The resource that a path names, if it is known; 404 where there is none, or none in this shape.
fn find(served: Option<Arc<Served>>, of: &ResourcePath) -> ApiResult<Arc<Served>> {
    let served = served.ok_or_else(ApiError::no_such_path)?;
    let namespaced = served.resource.namespaced;
    let misplaced =
        of.namespace.is_some() && !namespaced || (namespaced && of.namespace.is_none() && of.name.is_some());
    // Across namespaces things are listed, not made.
    if namespaced && of.namespace.is_none() && !served.has_verb("list") {
        return Err(ApiError::no_such_path());
    }
    let proxied = of.subresource.as_deref() == Some("proxy");
    if misplaced || (of.rest.is_some() && !proxied) {
        return Err(ApiError::no_such_path());
    }
    if let Some(name) = &of.subresource
        && subresource(&served, name).is_none()
    {
        return Err(match served.custom {
            Some(_) => served.not_found(of.name.as_deref().unwrap_or("")),
            None => ApiError::no_such_path(),
        });
    }
    if let Some(name) = of.name.as_deref() {
        check_segment(name)?;
        // What is only created has no paths of its own.
        if of.subresource.is_none() && !["get", "list", "update"].iter().any(|verb| served.has_verb(verb)) {
            return Err(ApiError::no_such_path());
        }
    }
    Ok(served)
}

/// Names that cannot stand in a path.
fn check_segment(name: &str) -> ApiResult<()> {
    if matches!(name, "." | "..") {
        let message = format!("Name parameter invalid: {}: may not be '{name}'", quote(name));
        return Err(ApiError::bad_request(message));
    }
    Ok(())
}

pub(super) fn subresource<'s>(served: &'s Served, name: &str) -> Option<&'s Subresource> {
    served.resource.subresources.iter().find(|subresource| subresource.name == name)
}

/// Whether the resource, or its subresource, has a verb on paths of this shape.
pub(super) fn allows(served: &Served, of: &ResourcePath, verb: Verb) -> bool {
    if let Some(name) = of.subresource.as_deref() {
        let verb = if verb == Verb::Watch { Verb::Get } else { verb };
        return subresource(served, name).is_some_and(|sub| sub.verbs.iter().any(|v| v == verb.name()));
    }
    let named = of.name.is_some();
    if of.watch && verb != Verb::Watch {
        return false;
    }
    let fits = match verb {
        Verb::Get | Verb::Update | Verb::Patch | Verb::Delete => named,
        Verb::Watch => true,
        Verb::List => !named,
        Verb::Create | Verb::DeleteCollection => !named && (!served.resource.namespaced || of.namespace.is_some()),
    };
    fits && served.has_verb(verb.name())
}

/// 405 for a method that the resource does not have on paths of this shape, in its own words.
pub(super) fn method_not_allowed(served: &Served, of: &ResourcePath, head: &Head<'_>) -> ApiError {
    let watching = of.watch || head.query.flag("watch").unwrap_or(false);
    if head.method == "GET" && watching && of.name.is_none() && served.has_verb("list") {
        return ApiError::method_not_supported(served.group(), &served.resource.name, "watch");
    }
    if served.custom.is_some() {
        let verb = Verb::of(head.method, watching, of);
        return match verb {
            Some(Verb::Update | Verb::Patch) if of.name.is_none() => ApiError::bad_request("name must be provided"),
            _ => ApiError::method_not_supported(served.group(), &served.resource.name, verb.map_or("", Verb::name)),
        };
    }
    let message = "the server does not allow this method on the requested resource";
    ApiError { details: Some(Box::default()), ..ApiError::new(405, "MethodNotAllowed", message) }
}

#[cfg(test)]
#[path = "routing_tests.rs"]
mod tests;
