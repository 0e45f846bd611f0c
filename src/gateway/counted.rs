//! The labels under which requests for objects are counted.

use std::sync::Arc;

use super::head::Head;
use crate::metrics::route::{self as metrics, DryRun, Route, Scope};
use crate::request::path::ResourcePath;
use crate::request::verb::Verb;
use crate::served::Served;

/// Returns the labels under which a request is counted.
pub(super) fn route(served: &Arc<Served>, head: &Head<'_>, of: &ResourcePath, verb: Verb) -> Route {
    let scope = match () {
        () if of.name.is_some() || verb == Verb::Create => Scope::Resource,
        () if of.namespace.is_some() => Scope::Namespace,
        () => Scope::Cluster,
    };
    let subresource = of.subresource.as_deref();
    let at = subresource.and_then(|name| served.resource.subresources.iter().position(|own| own.name == name));
    let verb = match verb {
        _ if of.connects() => metrics::Verb::Connect,
        Verb::Get => metrics::Verb::Get,
        Verb::List => metrics::Verb::List,
        Verb::Watch => metrics::Verb::Watch,
        Verb::Create => metrics::Verb::Post,
        Verb::Update => metrics::Verb::Put,
        Verb::Patch if head.content_type.starts_with("application/apply-patch") => metrics::Verb::Apply,
        Verb::Patch => metrics::Verb::Patch,
        Verb::Delete | Verb::DeleteCollection => metrics::Verb::Delete,
    };
    let dry_run = match head.query.text("dryRun") {
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
