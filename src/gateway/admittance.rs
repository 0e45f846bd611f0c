//! What requests about objects take up: the place, the time, and the series that they are counted in.

use std::sync::Arc;
use std::time::Duration;

use flotilla_proto::duration;

use super::Gateway;
use super::attempt::Course;
use super::flow::Lane;
use super::handler::Head;
use super::routing::RequestInfo;
use crate::field::quote;
use crate::metrics::requests::{self as metrics, DryRun, Route, Scope};
use crate::pki::MASTERS;
use crate::request::Caller;
use crate::request::path::ResourcePath;
use crate::request::verb::Verb;
use crate::served::Served;
use crate::status::{ApiError, ApiResult};

/// Subresources through which something else is reached.
const CONNECTS: [&str; 5] = ["attach", "exec", "log", "portforward", "proxy"];

/// Whether a path reaches something else, for as long as it takes.
pub(super) fn connects(of: &ResourcePath) -> bool {
    of.subresource.as_deref().is_some_and(|name| CONNECTS.contains(&name))
}

/// Takes a place among the requests in progress; false when there is none.
pub(super) fn enter(gateway: &Gateway, info: &RequestInfo, caller: &Caller, course: &mut Course) -> bool {
    let lane = lane(info.verb.is_none_or(Verb::writes), caller);
    if gateway.flow.has_room(lane) {
        return course.enter(gateway, lane);
    }
    if let (Some(verb), Ok(served)) = (info.verb, &info.served) {
        course.route = Some(route(served, None, &info.of, verb));
    }
    course.terminated(gateway, 429);
    false
}

/// What a request takes part in that has an end of its own.
pub(super) fn lane(mutating: bool, caller: &Caller) -> Lane {
    match mutating {
        _ if caller.user.is_member(MASTERS) => Lane::Exempt { mutating },
        true => Lane::Mutating,
        false => Lane::ReadOnly,
    }
}

/// What a request is counted as.
pub(super) fn route(served: &Arc<Served>, head: Option<&Head<'_>>, of: &ResourcePath, verb: Verb) -> Route {
    let scope = match () {
        () if of.name.is_some() || verb == Verb::Create => Scope::Resource,
        () if of.namespace.is_some() => Scope::Namespace,
        () => Scope::Cluster,
    };
    let subresource = of.subresource.as_deref();
    let at = subresource.and_then(|name| served.resource.subresources.iter().position(|own| own.name == name));
    let apply = |head: &Head<'_>| head.content_type.starts_with("application/apply-patch");
    let verb = match verb {
        _ if connects(of) => metrics::Verb::Connect,
        Verb::Get => metrics::Verb::Get,
        Verb::List => metrics::Verb::List,
        Verb::Watch => metrics::Verb::Watch,
        Verb::Create => metrics::Verb::Post,
        Verb::Update => metrics::Verb::Put,
        Verb::Patch if head.is_some_and(apply) => metrics::Verb::Apply,
        Verb::Patch => metrics::Verb::Patch,
        Verb::Delete | Verb::DeleteCollection => metrics::Verb::Delete,
    };
    let dry_run = match head.map_or("", |head| head.query.text("dryRun")) {
        "" => DryRun::No,
        "All" => DryRun::All,
        _ => DryRun::Invalid,
    };
    Route::Resource {
        served: Arc::clone(served),
        subresource: at.and_then(|at| at.try_into().ok()),
        verb,
        scope,
        dry_run,
    }
}

/// The `timeout` that a client asks for, whatever the request; none where it says nothing or nothing that can be.
pub(super) fn asked_timeout(head: &Head<'_>) -> ApiResult<Option<Duration>> {
    let text = head.query.text("timeout");
    if text.is_empty() {
        return Ok(None);
    }
    if let Some(nanos) = duration::parse(text) {
        return Ok(u64::try_from(nanos).ok().filter(|nanos| *nanos > 0).map(Duration::from_nanos));
    }
    let number = text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let why = if number { "missing unit in duration" } else { "invalid duration" };
    let message = format!("invalid timeout specified in the request URL - time: {why} {}", quote(text));
    Err(ApiError::bad_request(message))
}
