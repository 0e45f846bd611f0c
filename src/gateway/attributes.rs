//! The attributes of a request, which decide its authorization and its flow.

use std::borrow::Cow;

use super::head::Head;
use super::resources;
use super::routing::Routed;
use crate::access::Attributes;
use crate::request::path;

/// Calls `decide` with the attributes of a request. Returns `None` if the request has none.
pub(super) fn with_attributes<T>(
    head: &Head<'_>,
    routed: &Routed,
    decide: impl FnOnce(&Attributes<'_>) -> T,
) -> Option<T> {
    match routed.resource() {
        Some((of, verb)) => {
            Some(resources::with_attributes(head, of, verb, |attributes| decide(&Attributes::Resource(attributes))))
        }
        // The reference authorizes nothing for this path.
        None if matches!(routed, Routed::WatchOfNothing) => None,
        None => {
            let (verb, path) = (in_lower_case(head.method), path::decode(head.path));
            Some(decide(&Attributes::Path { verb: &verb, path: &path }))
        }
    }
}

/// Returns a method in lower case. The usual ones are not copied.
fn in_lower_case(method: &str) -> Cow<'_, str> {
    match method {
        "GET" => "get".into(),
        "HEAD" => "head".into(),
        "POST" => "post".into(),
        other => other.to_lowercase().into(),
    }
}
