//! Watch streams: present objects first where asked for, then every change, in order (API concepts, "Efficient
//! detection of changes").
//!
//! A watch is a cursor into its table's change log. It holds no events: what a slow client has not taken yet is still
//! in the log.

mod bell;
mod encode;
mod end;
mod event;
mod reminder;
mod stream;

use std::sync::Arc;

use actix_web::body::BodyStream;
use actix_web::http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use actix_web::{HttpRequest, HttpResponse, web};
use bytes::{Buf as _, Bytes};
use flotilla_cluster::{Compacted, Interest, Revision, Table};
use futures_util::{StreamExt as _, stream as streams};
use tokio::time::Instant;

use crate::gateway::lists::Show;
use crate::gateway::query::parse_revision;
use crate::gateway::{Gateway, Media, answer};
use crate::limits;
use crate::registry::selector::{FieldOperator, FieldRequirement, Selection};
use crate::registry::{Listing, Page, Registry, Served};
use crate::status::{ApiError, ApiResult};
use crate::streams::{one_way, websocket};
use crate::transport::ConnectionId;

use bell::Rope;
use encode::Encoder;
use end::End;
use stream::Stream;

/// Where a watch begins.
enum Start {
    /// With these objects, then what changes after them.
    Objects(Page),
    /// With what changed after a revision.
    After(Revision),
    /// With an error: the answer is a stream all the same.
    Failed(ApiError),
}

/// What a request wants to watch.
pub struct Asked<'r> {
    /// The namespace of its path; empty for all.
    pub namespace: &'r str,
    /// Its options.
    pub listing: Listing,
    /// The connection that takes the events.
    pub connection: ConnectionId,
    /// Its request.
    pub request: &'r HttpRequest,
}

/// Answers a watch with a stream of events.
pub async fn respond(
    gateway: &web::Data<Gateway>,
    served: &Arc<Served>,
    asked: Asked<'_>,
    show: Show<'_>,
    warnings: &[String],
) -> ApiResult<HttpResponse> {
    let Asked { namespace, listing, connection, request } = asked;
    let representation = show.representation;
    if representation.media == Media::Yaml {
        let types = "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch";
        return Err(ApiError::new(
            406,
            "NotAcceptable",
            format!("only the following media types are accepted: {types}"),
        ));
    }
    let content_type = match representation.media {
        Media::Protobuf => "application/vnd.kubernetes.protobuf;stream=watch",
        _ => Media::Json.name(),
    };
    let registry = &gateway.registry;
    let table = registry.table(served);
    let start = start(registry, &table, served, namespace, &listing).await?;
    let encoder = Encoder::new(Arc::clone(registry), Arc::clone(served), show)?;
    let interest = interest(namespace, &listing);
    let rope = Rope::of(connection);
    let end = End::of(gateway.streams.clone(), served);
    let events = Stream::new(table, interest, start, encoder, &listing, end, rope);
    if websocket::is_asked_for(request) {
        let is_text = representation.media == Media::Json;
        let events = events.filter_map(async |events| events.ok());
        let events = events.flat_map(move |events| streams::iter(apart(events, is_text)));
        return one_way::events(request, is_text, events.boxed_local());
    }
    let mut response = HttpResponse::Ok();
    response.insert_header((CONTENT_TYPE, HeaderValue::from_static(content_type)));
    response.insert_header((CACHE_CONTROL, HeaderValue::from_static("no-cache, private")));
    answer::append_warnings(&mut response, warnings);
    Ok(response.body(BodyStream::new(events)))
}

/// Events, each on its own: a line of text each, or with its length before it.
fn apart(mut events: Bytes, is_text: bool) -> Vec<Bytes> {
    let mut all = Vec::new();
    while !events.is_empty() {
        let length = match is_text {
            true => events.iter().position(|byte| *byte == b'\n').map_or(events.len(), |end| end + 1),
            false if events.len() >= 4 => events.get_u32() as usize,
            false => events.len(),
        };
        all.push(events.split_to(length.min(events.len())));
    }
    all
}

/// Which changes can concern a watch, so that others do not wake it.
fn interest(namespace: &str, listing: &Listing) -> Interest {
    let namespace = match namespace {
        "" => listing.selection.exact_field("metadata.namespace"),
        own => Some(own),
    };
    let fields = listing.selection.fields.0.iter();
    let mut exact =
        fields.filter(|r| !r.field.starts_with("metadata.") && listing.selection.exact_field(&r.field).is_some());
    Interest {
        namespace: namespace.map(Into::into),
        name: listing.selection.exact_field("metadata.name").map(Into::into),
        field: exact.next().filter(|r| !r.value.is_empty()).map(|r| (r.field.clone(), r.value.clone())),
    }
}

/// Whether a change that concerns an interest is selected without being looked at: the selection demands no more than
/// the namespace and the name of the interest, which no object ever changes.
fn decides(interest: &Interest, selection: &Selection) -> bool {
    let is_decided = |requirement: &FieldRequirement| {
        let known = match requirement.field.as_str() {
            "metadata.name" => &interest.name,
            "metadata.namespace" => &interest.namespace,
            _ => return false,
        };
        requirement.operator == FieldOperator::Equals && known.as_ref() == Some(&requirement.value)
    };
    selection.labels.0.is_empty() && selection.fields.0.iter().all(is_decided)
}

/// Finds where a watch begins, by the rules for its resource version (API concepts, "Semantics for watch").
async fn start(
    registry: &Registry,
    table: &Arc<Table>,
    served: &Served,
    namespace: &str,
    listing: &Listing,
) -> ApiResult<Start> {
    let revision = parse_revision(&listing.revision).map_err(ApiError::unknown)?;
    let (selection, wanted) = (listing.selection.clone(), listing.revision.clone());
    let all = Listing { selection, revision: wanted, ..Listing::default() };
    match (listing.initial_events, revision) {
        (Some(true), _) => {
            let page = registry.list(served, namespace, &all).await;
            Ok(page.map_or_else(Start::Failed, Start::Objects))
        }
        (Some(false), 0) => {
            registry.barrier(table).await?;
            registry.store.freshened(table).await;
            Ok(Start::After(table.revision()))
        }
        (None, 0) => registry.list(served, namespace, &all).await.map(Start::Objects),
        (_, after) => {
            let after = Revision::new(after);
            // What is written from now on is to come after it, in whichever shard.
            if table.is_spread() && table.revision() < after {
                let deadline = Instant::now() + limits::WATCH_BEGIN_WAIT;
                let _ = registry.store.reach(table, after, deadline).await; // it may be yet to come
            }
            let floor = table.horizon();
            if after < floor {
                return Ok(Start::Failed(lost(after, Compacted { floor })));
            }
            Ok(Start::After(after))
        }
    }
}

/// The error event of a watch that cannot go on from where it was.
fn lost(after: Revision, Compacted { floor }: Compacted) -> ApiError {
    ApiError::expired(format!("too old resource version: {after} ({floor})"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::selector::{FieldSelector, LabelSelector};

    #[test]
    fn events_stand_apart() {
        assert_eq!(apart(Bytes::from_static(b"{1}\n{2}\n"), true), ["{1}\n", "{2}\n"]);
        assert_eq!(apart(Bytes::from_static(b"\0\0\0\x01a\0\0\0\x02bc"), false), ["a", "bc"]);
        assert_eq!(apart(Bytes::from_static(b"\0\0\0\x09a"), false), ["a"]);
    }

    #[test]
    fn names_alone_decide_what_is_selected() {
        let decided = |namespace: &str, labels: &str, fields: &str| {
            let (labels, fields) = (LabelSelector::parse(labels).unwrap(), FieldSelector::parse(fields).unwrap());
            let listing = Listing { selection: Selection { labels, fields }, ..Listing::default() };
            decides(&interest(namespace, &listing), &listing.selection)
        };
        assert!(decided("", "", "") && decided("a", "", ""));
        assert!(decided("a", "", "metadata.name=b") && decided("", "", "metadata.namespace=a,metadata.name=b"));
        assert!(decided("a", "", "metadata.namespace=a,metadata.name=b,metadata.name=b"));
        assert!(!decided("a", "", "metadata.namespace=b") && !decided("", "", "metadata.name=a,metadata.name=b"));
        assert!(!decided("", "", "metadata.name!=a") && !decided("", "", "metadata.name="));
        assert!(!decided("", "app", "metadata.name=a") && !decided("", "", "spec.nodeName=a"));
    }
}
