//! WebSockets on which only the server sends data.

use actix_web::{HttpRequest, HttpResponse};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures_util::stream::LocalBoxStream;
use futures_util::{Stream, StreamExt as _, future, stream};

use super::duplex::Merged;
use super::websocket::{self, Message, Messages};
use super::{ClientBytes, ForwardedRequest, client_bytes, switched};
use crate::status::ApiResult;

/// The subprotocols for binary data: one encodes it as base64 text.
const BASE64: &str = "base64.binary.k8s.io";
const BINARY: &str = "binary.k8s.io";

/// Sends each part as a message, until the parts end or the client disconnects.
///
/// # Errors
/// The client's connection cannot be upgraded.
pub fn answer(passing: &ForwardedRequest<'_>, parts: LocalBoxStream<'static, Bytes>) -> ApiResult<HttpResponse> {
    let mut offered = websocket::protocols(passing.request).peekable();
    let protocol = match offered.peek() {
        None => None,
        Some(_) => match offered.find(|offered| [BINARY, BASE64].contains(offered)) {
            Some(known) => Some(known),
            None => return Ok(websocket::refusal(403, "")),
        },
    };
    let response = match websocket::accept(passing.request, protocol) {
        Ok(response) => response,
        Err(refusal) => return Ok(*refusal),
    };
    let as_text = protocol == Some(BASE64);
    let frame = move |part: Bytes| match as_text {
        true => websocket::text(STANDARD.encode(part).into()),
        false => websocket::binary(part),
    };
    let first = stream::once(future::ready(frame(Bytes::new())));
    let frames = first.chain(parts.map(frame)).boxed_local();
    Ok(switched(response, body(frames, passing.client_bytes()?)))
}

/// Returns the frames for a client, with the answers to its pings, followed by a close frame.
fn body(
    frames: LocalBoxStream<'static, Bytes>,
    client: ClientBytes,
) -> impl Stream<Item = Result<Bytes, std::io::Error>> {
    let answers = stream::unfold(Messages::new(client), async |mut messages| {
        loop {
            if let Message::Ping(data) = messages.next().await? {
                return Some((websocket::pong(data), messages));
            }
        }
    });
    let both = Merged(frames, answers.boxed_local());
    both.chain(stream::once(future::ready(websocket::close()))).map(Ok)
}

/// Sends each event as a message. Bytes that are not UTF-8 are sent as a binary message.
///
/// # Errors
/// The client's connection cannot be upgraded.
pub fn events(request: &HttpRequest, as_text: bool, events: LocalBoxStream<'static, Bytes>) -> ApiResult<HttpResponse> {
    let mut offered = websocket::protocols(request);
    let (protocol, another) = (offered.next(), offered.next());
    if !request.headers().contains_key("origin") {
        return Ok(websocket::refusal(403, ""));
    }
    if another.is_some() {
        return Ok(websocket::refusal(400, ""));
    }
    let response = match websocket::accept(request, protocol) {
        Ok(response) => response,
        Err(refusal) => return Ok(*refusal),
    };
    let frames = events.map(move |event| if as_text { websocket::text(event) } else { websocket::binary(event) });
    Ok(switched(response, body(frames.boxed_local(), client_bytes(request)?)))
}
