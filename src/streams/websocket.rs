//! The server side of WebSockets (RFC 6455): the handshake, and messages as frames.

use actix_http::ws::{Codec, Frame, Item, Message as Outgoing, hash_key};
use actix_web::http::StatusCode;
use actix_web::http::header::{HeaderValue, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE};
use actix_web::{HttpRequest, HttpResponse, HttpResponseBuilder};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::{Bytes, BytesMut};
use futures_util::{Stream, StreamExt as _};
use tokio_util::codec::{Decoder as _, Encoder as _};

use crate::limits;

/// The header with the subprotocols of a WebSocket.
pub const PROTOCOL: &str = "sec-websocket-protocol";

/// The prefix of a token among the subprotocols. Browsers can send a token only there.
const TOKEN: &str = "base64url.bearer.authorization.k8s.io.";

/// Returns whether a client requests a WebSocket.
pub fn is_asked_for(request: &HttpRequest) -> bool {
    let upgrade = request.headers().get(UPGRADE).and_then(|value| value.to_str().ok());
    upgrade.is_some_and(|value| value.eq_ignore_ascii_case("websocket")) && super::is_upgrade(request)
}

/// Returns the subprotocols that a client offers, without tokens.
pub fn protocols(request: &HttpRequest) -> impl Iterator<Item = &str> {
    offered(request).filter(|protocol| !protocol.starts_with(TOKEN))
}

fn offered(request: &HttpRequest) -> impl Iterator<Item = &str> {
    let values = request.headers().get_all(PROTOCOL).filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(str::trim).filter(|protocol| !protocol.is_empty())
}

/// Returns the token among the subprotocols, in the form of the header `Authorization`. `None` if there is none. An
/// invalid token becomes one that no user has.
pub fn token(request: &HttpRequest) -> Option<Vec<u8>> {
    if !is_asked_for(request) {
        return None;
    }
    let mut tokens = offered(request).filter_map(|protocol| protocol.strip_prefix(TOKEN));
    let (token, another) = (tokens.next()?, tokens.next());
    let token = URL_SAFE_NO_PAD.decode(token).ok().filter(|token| std::str::from_utf8(token).is_ok());
    if token.as_ref().is_some_and(Vec::is_empty) {
        return None;
    }
    // The client must also offer another subprotocol, for the server to choose.
    let token = token.filter(|_| another.is_none() && protocols(request).next().is_some());
    Some([b"Bearer ", &*token.unwrap_or_else(|| b"-".to_vec())].concat())
}

/// Begins the answer that accepts a WebSocket with one of the subprotocols.
///
/// # Errors
/// The answer that refuses an invalid handshake.
pub fn accept(request: &HttpRequest, protocol: Option<&str>) -> Result<HttpResponseBuilder, Box<HttpResponse>> {
    let header = |name| request.headers().get(name).map(HeaderValue::as_bytes);
    if header(SEC_WEBSOCKET_VERSION) != Some(b"13") {
        return Err(refusal(400, "missing or bad WebSocket Version").into());
    }
    let Some(key) = header(SEC_WEBSOCKET_KEY).filter(|key| key.len() == 24) else {
        return Err(refusal(400, "mismatch challenge/response").into());
    };
    let mut response = HttpResponse::build(StatusCode::SWITCHING_PROTOCOLS);
    response.upgrade("websocket");
    let hash = hash_key(key);
    response.insert_header(("sec-websocket-accept", HeaderValue::from_bytes(&hash).map_err(|_| refusal(400, ""))?));
    if let Some(protocol) = protocol {
        response.insert_header((PROTOCOL, protocol));
    }
    Ok(response)
}

/// Returns an answer that refuses a WebSocket and closes the connection.
pub fn refusal(code: u16, why: &'static str) -> HttpResponse {
    let mut response = HttpResponse::build(StatusCode::from_u16(code).unwrap_or(StatusCode::BAD_REQUEST));
    response.force_close().body(why)
}

/// A message from a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// Text or binary data.
    Data(Bytes),
    /// A ping, to be answered with the same data.
    Ping(Bytes),
}

/// The messages in the bytes of a client. They end when the client disconnects, closes the WebSocket or violates the
/// protocol.
pub struct Messages<S> {
    bytes: S,
    codec: Codec,
    buffer: BytesMut,
    /// The frames of a message that is not complete.
    begun: BytesMut,
}

impl<S> std::fmt::Debug for Messages<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Messages").finish_non_exhaustive()
    }
}

impl<S: Stream<Item = Bytes> + Unpin> Messages<S> {
    /// Reads the bytes that follow the head of a request.
    pub fn new(bytes: S) -> Self {
        let codec = Codec::new().max_size(limits::WEBSOCKET_MESSAGE_BYTES);
        Self { bytes, codec, buffer: BytesMut::new(), begun: BytesMut::new() }
    }

    /// Returns the next message. `None` at the end.
    pub async fn next(&mut self) -> Option<Message> {
        loop {
            match self.codec.decode(&mut self.buffer).ok()? {
                Some(Frame::Text(data) | Frame::Binary(data)) => return Some(Message::Data(data)),
                Some(Frame::Ping(data)) => return Some(Message::Ping(data)),
                Some(Frame::Pong(_)) => {}
                Some(Frame::Close(_)) => return None,
                Some(Frame::Continuation(item)) => {
                    let (data, is_last) = match item {
                        Item::FirstText(data) | Item::FirstBinary(data) | Item::Continue(data) => (data, false),
                        Item::Last(data) => (data, true),
                    };
                    if self.begun.len() + data.len() > limits::WEBSOCKET_MESSAGE_BYTES {
                        return None;
                    }
                    self.begun.extend_from_slice(&data);
                    if is_last {
                        return Some(Message::Data(self.begun.split().freeze()));
                    }
                }
                None => self.buffer.extend_from_slice(&self.bytes.next().await?),
            }
        }
    }
}

/// Returns the frame of a message.
fn frame(message: Outgoing) -> Bytes {
    let mut out = BytesMut::new();
    // Encoding fails only for fragments in the wrong order, and this server sends no fragments.
    let _ = Codec::new().encode(message, &mut out);
    out.freeze()
}

/// Returns a binary message.
pub fn binary(data: Bytes) -> Bytes {
    frame(Outgoing::Binary(data))
}

/// Returns a text message, or a binary one if the data is not UTF-8.
pub fn text(data: Bytes) -> Bytes {
    match data.clone().try_into() {
        Ok(text) => frame(Outgoing::Text(text)),
        Err(_) => binary(data),
    }
}

/// Returns the answer to a ping.
pub fn pong(data: Bytes) -> Bytes {
    frame(Outgoing::Pong(data))
}

/// Returns the frame that closes the WebSocket.
pub fn close() -> Bytes {
    frame(Outgoing::Close(Some(actix_http::ws::CloseCode::Normal.into())))
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;
    use futures_util::stream;

    use super::*;

    fn sent(messages: impl IntoIterator<Item = Outgoing>) -> Messages<impl Stream<Item = Bytes> + Unpin> {
        let (mut codec, mut out) = (Codec::new().client_mode(), BytesMut::new());
        messages.into_iter().for_each(|message| codec.encode(message, &mut out).unwrap());
        // In small parts, as a network may deliver them.
        let parts: Vec<Bytes> = out.chunks(3).map(Bytes::copy_from_slice).collect();
        Messages::new(stream::iter(parts))
    }

    #[tokio::test]
    async fn messages_of_several_frames_are_one() {
        let part = |text: &'static str| Bytes::from_static(text.as_bytes());
        let mut messages = sent([
            Outgoing::Binary(part("a")),
            Outgoing::Continuation(Item::FirstBinary(part("b"))),
            Outgoing::Ping(part("p")),
            Outgoing::Continuation(Item::Last(part("c"))),
            Outgoing::Close(None),
            Outgoing::Binary(part("never")),
        ]);
        assert_eq!(messages.next().await, Some(Message::Data(part("a"))));
        assert_eq!(messages.next().await, Some(Message::Ping(part("p"))));
        assert_eq!(messages.next().await, Some(Message::Data(part("bc"))));
        assert_eq!(messages.next().await, None);
    }

    #[tokio::test]
    async fn a_message_above_the_bound_ends_the_messages() {
        let part = || Bytes::from(vec![0; limits::WEBSOCKET_MESSAGE_BYTES / 2]);
        let endless =
            [Item::FirstBinary(part()), Item::Continue(part()), Item::Continue(part())].map(Outgoing::Continuation);
        assert_eq!(sent(endless).next().await, None);
    }

    #[test]
    fn tokens_among_protocols() {
        let with = |protocols: &str| {
            let request = TestRequest::get()
                .insert_header(("Connection", "Upgrade"))
                .insert_header(("Upgrade", "websocket"))
                .insert_header(("Sec-WebSocket-Protocol", protocols));
            token(&request.to_http_request()).map(|token| String::from_utf8(token).unwrap())
        };
        assert_eq!(with("base64url.bearer.authorization.k8s.io.YWJj, x").unwrap(), "Bearer abc");
        assert_eq!(with("x"), None);
        for bad in ["YWJj", "!, x", "YWJj, base64url.bearer.authorization.k8s.io.YWJj, x"] {
            assert_eq!(with(&format!("base64url.bearer.authorization.k8s.io.{bad}")).unwrap(), "Bearer -");
        }
    }

    #[test]
    fn the_handshake_follows_the_standard() {
        let request = TestRequest::get()
            .insert_header(("Connection", "keep-alive, Upgrade"))
            .insert_header(("Upgrade", "websocket"))
            .insert_header(("Sec-WebSocket-Version", "13"))
            .insert_header(("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="))
            .insert_header(("Sec-WebSocket-Protocol", "a, b"))
            .to_http_request();
        assert!(is_asked_for(&request));
        assert_eq!(protocols(&request).collect::<Vec<_>>(), ["a", "b"]);
        let response = accept(&request, Some("b")).unwrap().finish();
        assert_eq!(response.headers().get("sec-websocket-accept").unwrap(), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        assert_eq!(response.headers().get(PROTOCOL).unwrap(), "b");
        let old = TestRequest::get().insert_header(("Sec-WebSocket-Version", "8")).to_http_request();
        assert_eq!(accept(&old, None).err().unwrap().status(), 400);
    }
}
