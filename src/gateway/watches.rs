//! Answers to watches: a stream of events, over HTTP or a WebSocket.

use std::sync::Arc;

use actix_web::body::BodyStream;
use actix_web::http::header::{CONTENT_TYPE, HeaderValue};
use actix_web::{HttpRequest, HttpResponse, web};
use bytes::{Buf as _, Bytes};
use futures_util::{StreamExt as _, stream};

use super::Gateway;
use crate::answer::{self, CACHING};
use crate::registry::Listing;
use crate::representation::Show;
use crate::request::Media;
use crate::served::Served;
use crate::status::{ApiError, ApiResult};
use crate::streams::{one_way, websocket};
use crate::transport::ConnectionId;
use crate::watch;

/// A request to watch.
pub(super) struct WatchRequest<'r> {
    /// The namespace of its path; empty for all.
    pub(super) namespace: &'r str,
    /// Its options.
    pub(super) listing: Listing,
    /// The connection that takes the events.
    pub(super) connection: ConnectionId,
    /// The HTTP request.
    pub(super) request: &'r HttpRequest,
}

/// Answers a watch with a stream of events.
pub(super) async fn respond(
    gateway: &web::Data<Gateway>,
    served: &Arc<Served>,
    asked: WatchRequest<'_>,
    show: Show<'_>,
    warnings: &[String],
) -> ApiResult<HttpResponse> {
    let WatchRequest { namespace, listing, connection, request } = asked;
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
    let taken = (gateway.streams.clone(), connection);
    let events = watch::begin(&gateway.registry, served, (namespace, &listing), show, taken).await?;
    if websocket::is_asked_for(request) {
        let is_text = representation.media == Media::Json;
        let events = events.filter_map(async |events| events.ok());
        let events = events.flat_map(move |events| stream::iter(apart(events, is_text)));
        return one_way::events(request, is_text, events.boxed_local());
    }
    let mut response = HttpResponse::Ok();
    response.insert_header((CONTENT_TYPE, HeaderValue::from_static(content_type)));
    response.insert_header(CACHING);
    answer::append_warnings(&mut response, warnings);
    Ok(response.body(BodyStream::new(events)))
}

/// Splits events: each is a line of text, or has its length before it.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_stand_apart() {
        assert_eq!(apart(Bytes::from_static(b"{1}\n{2}\n"), true), ["{1}\n", "{2}\n"]);
        assert_eq!(apart(Bytes::from_static(b"\0\0\0\x01a\0\0\0\x02bc"), false), ["a", "bc"]);
        assert_eq!(apart(Bytes::from_static(b"\0\0\0\x09a"), false), ["a"]);
    }
}
