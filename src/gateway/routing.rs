//! Routing: finds the resource or document of a request by its method and path.

use std::sync::Arc;
use std::time::Duration;

use compact_str::CompactString;
use flotilla_proto::schema::Subresource;

use super::head::Head;
use super::members;
use super::seats::Lane;
use crate::aggregation::Remote;
use crate::backup::BACKUP_PATH;
use crate::console::ConsolePart;
use crate::field::quote;
use crate::limits;
use crate::overview::OVERVIEW_PATH;
use crate::request::path::{self, PathKind, ResourcePath};
use crate::request::verb::Verb;
use crate::served::{Resources, Served};
use crate::status::{ApiError, ApiResult};

/// The path of the metrics.
const METRICS: &str = "/metrics";
/// The path of the results of health checks, as metrics.
const HEALTH_METRICS: &str = "/metrics/slis";

/// The route of a request: what its path and method name.
#[derive(Debug)]
pub(super) enum Routed {
    /// Objects of a resource that is served here, or of a built-in group without such a resource.
    Objects(RequestInfo),
    /// Objects of a resource that is neither built in nor defined, as far as this replica knows.
    Unserved(RequestInfo),
    /// A request that another API server answers.
    Remote {
        /// The server.
        remote: Arc<Remote>,
        /// The resource and verb, if the path names one.
        named: Option<(ResourcePath, Option<Verb>)>,
    },
    /// A watch of no resource.
    WatchOfNothing,
    /// The metrics.
    Metrics,
    /// The results of the checks of health, as metrics.
    HealthMetrics,
    /// A part of the administration of the cluster, by name.
    Cluster(CompactString),
    /// The state of this member and its cluster.
    Overview,
    /// A part of the console.
    Console(ConsolePart),
    /// A backup.
    Backup,
    /// Discovery, health, another document, or a path that names nothing.
    Document,
}

impl Routed {
    /// Returns the resource that the path names, and the verb of the method on it. `None` for paths that name no
    /// resource.
    pub(super) fn resource(&self) -> Option<(&ResourcePath, Option<Verb>)> {
        match self {
            Self::Objects(info) | Self::Unserved(info) => Some((&info.of, info.verb)),
            Self::Remote { named, .. } => named.as_ref().map(|(of, verb)| (of, *verb)),
            _ => None,
        }
    }

    /// Returns whether the request is long-running: a watch, or a connection to a server behind this one.
    pub(super) fn lasts(&self) -> bool {
        self.resource().is_some_and(|(of, verb)| verb == Some(Verb::Watch) || of.connects())
    }

    /// Returns whether the option `timeout` has an effect.
    pub(super) fn is_timed(&self) -> bool {
        let is_about_objects = matches!(self, Self::Objects(_) | Self::Unserved(_) | Self::Remote { .. });
        is_about_objects || matches!(self, Self::Overview | Self::Console(_))
    }

    /// Returns the longest time that the request may take; most may take `usual`. `None` for long-running requests, and
    /// for documents, which are made at once.
    pub(super) fn longest(&self, usual: Duration) -> Option<Duration> {
        match self {
            Self::Console(ConsolePart::Events) => Some(limits::CONSOLE_STREAM_LIFETIME),
            timed => (timed.is_timed() && !timed.lasts()).then_some(usual),
        }
    }

    /// Returns whether the request takes a seat of a priority level. Connections to something behind an object take
    /// none, since their clients decide when they end. Requests of the cluster's administrators take none, since they
    /// must reach an overloaded server.
    pub(super) fn is_shared(&self) -> bool {
        match self {
            Self::WatchOfNothing | Self::Cluster(_) | Self::Backup | Self::Console(ConsolePart::Events) => false,
            _ => self.resource().is_none_or(|(of, verb)| verb == Some(Verb::Watch) || !of.connects()),
        }
    }

    /// Returns the kind of seat that the request takes. `None` for documents and metrics, which take no time.
    pub(super) fn lane(&self, method: &str, is_exempt: bool) -> Option<Lane> {
        let reads = matches!(method, "GET" | "HEAD");
        match self {
            _ if self.lasts() => Some(Lane::Watch),
            Self::Objects(info) | Self::Unserved(info) => {
                Some(Lane::with_an_end(info.verb.is_none_or(Verb::writes), is_exempt))
            }
            Self::Remote { named: Some((_, verb)), .. } => {
                Some(Lane::with_an_end(verb.is_none_or(Verb::writes), is_exempt))
            }
            Self::Remote { named: None, .. } => Some(Lane::with_an_end(!reads, is_exempt)),
            // Administrators of a cluster must get through to an overloaded server.
            Self::Cluster(_) => Some(Lane::Exempt { mutating: !reads }),
            Self::Overview => Some(Lane::with_an_end(false, is_exempt)),
            Self::Console(ConsolePart::Events) => Some(Lane::Watch),
            Self::Console(part) => Some(Lane::with_an_end(*part == ConsolePart::Links, is_exempt)),
            Self::Backup => Some(Lane::Exempt { mutating: false }),
            Self::WatchOfNothing | Self::Metrics | Self::HealthMetrics | Self::Document => None,
        }
    }
}

/// The resource and verb of a request about objects.
#[derive(Debug)]
pub(super) struct RequestInfo {
    /// The parts of the path.
    pub(super) of: ResourcePath,
    /// The verb of the method on such a path, whether or not the resource has it.
    pub(super) verb: Option<Verb>,
    /// The resource. The error 404 if it does not exist, or has no paths of this shape. Users who are not authorized do
    /// not see the error.
    pub(super) served: ApiResult<Arc<Served>>,
}

/// Returns the route of a request that another server answers. The path is not decoded yet; `watch` says whether the
/// query asks for a watch.
pub(super) fn elsewhere(remote: Arc<Remote>, method: &str, path: &str, watch: bool) -> Routed {
    let named = match path::parse(&path::decode(path)) {
        PathKind::Resource(of) => Some((Verb::of(method, watch, &of), of)),
        PathKind::Other | PathKind::WatchOfNothing => None,
    };
    Routed::Remote { remote, named: named.map(|(verb, of)| (of, verb)) }
}

/// Returns the route of a request that this server answers. The path is not decoded yet; `watch` says whether the query
/// asks for a watch.
pub(super) fn route(resources: &Resources, method: &str, path: &str, watch: bool) -> Routed {
    let decoded = path::decode(path);
    match path::parse(&decoded) {
        PathKind::Resource(of) => {
            let served = resources.find(&of.group, &of.version, &of.resource);
            let is_nowhere = served.is_none() && !resources.has_group(&of.group);
            objects(served, is_nowhere, of, method, watch)
        }
        PathKind::WatchOfNothing => Routed::WatchOfNothing,
        PathKind::Other => match &*decoded {
            METRICS => Routed::Metrics,
            HEALTH_METRICS => Routed::HealthMetrics,
            BACKUP_PATH => Routed::Backup,
            OVERVIEW_PATH => Routed::Overview,
            other => own(other),
        },
    }
}

/// Returns the route of a path that is not about objects: a part of the console or of the cluster's administration, or
/// else a document.
fn own(path: &str) -> Routed {
    match (ConsolePart::of(path), members::asked(path)) {
        (Some(part), _) => Routed::Console(part),
        (None, Some(asked)) => Routed::Cluster(asked.into()),
        (None, None) => Routed::Document,
    }
}

/// Returns the route of a request about objects. `served` is the resource, if it is known; `is_nowhere` says that not
/// even its group is built in.
pub(super) fn objects(
    served: Option<Arc<Served>>,
    is_nowhere: bool,
    of: ResourcePath,
    method: &str,
    watch: bool,
) -> Routed {
    let custom = served.as_ref().filter(|served| served.custom.is_some());
    // Built-in resources have no verb for HEAD.
    let method = if method == "HEAD" && custom.is_some() { "GET" } else { method };
    let verb = Verb::of(method, watch, &of);
    let is_nowhere = match custom {
        Some(custom) => !is_custom_path(custom, &of, verb),
        None => is_nowhere,
    };
    let info = RequestInfo { verb, served: find(served, &of), of };
    if is_nowhere { Routed::Unserved(info) } else { Routed::Objects(info) }
}

/// Returns whether custom resources of a kind have paths of this shape. Paths of other shapes are answered as if no
/// definition existed.
fn is_custom_path(served: &Served, of: &ResourcePath, verb: Option<Verb>) -> bool {
    let is_across = of.name.is_none() && matches!(verb, Some(Verb::List | Verb::Watch));
    let is_placed = match served.resource.namespaced {
        true => of.namespace.is_some() || is_across,
        false => of.namespace.is_none(),
    };
    is_placed && of.rest.is_none()
}

/// Returns the resource that a path names. 404 if it is unknown, or has no paths of this shape.
fn find(served: Option<Arc<Served>>, of: &ResourcePath) -> ApiResult<Arc<Served>> {
    let served = served.ok_or_else(ApiError::no_such_path)?;
    let namespaced = served.resource.namespaced;
    let misplaced =
        of.namespace.is_some() && !namespaced || (namespaced && of.namespace.is_none() && of.name.is_some());
    // A path across namespaces lists objects; it cannot create one.
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
        // Resources that can only be created have no paths of single objects.
        if of.subresource.is_none() && !["get", "list", "update"].iter().any(|verb| served.has_verb(verb)) {
            return Err(ApiError::no_such_path());
        }
    }
    Ok(served)
}

/// Refuses names that cannot stand in a path.
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

/// Returns whether the resource, or its subresource, has a verb on paths of this shape.
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

/// Returns the error 405 of a method that the resource does not have on paths of this shape, in the reference's words.
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
