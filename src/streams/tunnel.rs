//! Tunnels SPDY through a WebSocket: each message holds some of the bytes to or from the node.

use actix_web::HttpResponse;
use bytes::Bytes;
use futures_util::{StreamExt as _, future, stream};
use http::Method;
use http::header::{HeaderMap, HeaderName, HeaderValue, UPGRADE};
use tokio::sync::mpsc;

use super::duplex::{Duplex, Merged};
use super::websocket::{self, Message, Messages};
use super::{Destination, ForwardedRequest, count, forwarded, switched, upgrade};
use crate::limits;
use crate::outbound::Unpooled;
use crate::prometheus::families;
use crate::status::ApiResult;

/// The prefix of subprotocols that are SPDY within a WebSocket.
const PREFIX: &str = "SPDY/3.1+";
const VERSION: HeaderName = HeaderName::from_static("x-stream-protocol-version");

/// Returns whether a subprotocol is tunnelled.
pub fn suits(protocol: &str) -> bool {
    protocol.starts_with(PREFIX) && protocol.ends_with(".k8s.io")
}

/// Connects a client that sends SPDY through a WebSocket with a node that speaks SPDY.
///
/// # Errors
/// The node cannot be reached or answers incorrectly, or the client's connection cannot be upgraded.
pub async fn answer(passing: &ForwardedRequest<'_>, to: &Destination) -> ApiResult<HttpResponse> {
    let (head, peer) = match upgrade::ask(passing, to, Method::POST, headers(passing)?).await? {
        Unpooled::Switched(head, peer) => (head, peer),
        Unpooled::Answered(answer) => {
            count(passing.meter, families::STREAMS_TUNNELLED, answer.status().as_u16());
            return upgrade::refused(passing, answer);
        }
    };
    let agreed = head.headers.get(VERSION).and_then(|value| value.to_str().ok()).map(str::trim);
    let protocol = agreed.filter(|agreed| !agreed.is_empty()).map(|agreed| format!("{PREFIX}{agreed}"));
    let response = match websocket::accept(passing.request, protocol.as_deref()) {
        Ok(response) => response,
        Err(refusal) => {
            count(passing.meter, families::STREAMS_TUNNELLED, 500);
            return Ok(*refusal);
        }
    };
    count(passing.meter, families::STREAMS_TUNNELLED, 101);
    let messages = Messages::new(passing.client_bytes()?);
    let (pongs, own) = mpsc::channel::<Bytes>(limits::STREAM_FRAMES);
    let client = stream::unfold((messages, pongs), async |(mut messages, pongs)| {
        loop {
            match messages.next().await? {
                Message::Data(data) => return Some((data, (messages, pongs))),
                // If the client pings faster than it reads, some pings stay unanswered; nothing else is lost.
                Message::Ping(data) => drop(pongs.try_send(websocket::pong(data))),
            }
        }
    });
    let sent = Duplex::new(client.boxed_local(), peer);
    let sent = sent.filter_map(async |part| part.ok().map(websocket::binary));
    let pongs = stream::unfold(own, async |mut own| own.recv().await.map(|pong| (pong, own)));
    let body = passing.lasting(Merged(sent.boxed_local(), pongs.boxed_local()));
    let body = body.chain(stream::once(future::ready(websocket::close())));
    Ok(switched(response, body.map(Ok::<_, std::io::Error>)))
}

/// Returns the headers of the upgrade to SPDY.
fn headers(passing: &ForwardedRequest<'_>) -> ApiResult<HeaderMap> {
    let mut headers = forwarded::of_upgrade(passing)?;
    for name in [websocket::PROTOCOL, "sec-websocket-key", "sec-websocket-version", "sec-websocket-extensions"] {
        headers.remove(name);
    }
    headers.insert(UPGRADE, HeaderValue::from_static("SPDY/3.1"));
    headers.remove(VERSION);
    for protocol in websocket::protocols(passing.request).filter(|protocol| suits(protocol)) {
        if let Ok(value) = HeaderValue::from_str(&protocol[PREFIX.len()..]) {
            headers.append(VERSION, value);
        }
    }
    Ok(headers)
}
