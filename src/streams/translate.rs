//! Translates between a client that speaks WebSocket and a node that speaks SPDY, for the streams of a process.
//!
//! The client begins each message with the number of a stream. The node has a stream of its own for each number. The
//! client is connected at once; later failures are reported on the error stream.

use std::collections::BTreeMap;
use std::sync::Arc;

use actix_web::HttpResponse;
use bytes::{BufMut as _, Bytes, BytesMut};
use flotilla_proto::json;
use flotilla_proto::value::Value;
use futures_util::{StreamExt as _, future, stream};
use http::header::{CONNECTION, HeaderMap, HeaderName, HeaderValue, UPGRADE};
use http::{Method, StatusCode};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::exit_status::{FIFTH, FOURTH, ended};
use super::link::{self, Frames, Reading};
use super::spdy::{self, Received};
use super::websocket::{self, Message, Messages};
use super::{ClientBytes, Destination, ForwardedRequest, Process, count, switched, upgrade};
use crate::limits;
use crate::outbound::{self, Outbound, Switched, Unpooled};
use crate::prometheus::{Meter, families};
use crate::status::{ApiError, ApiResult};
use crate::tasks;

/// The node's protocols, the preferred one first. Newer ones report how the process ended.
const AT_NODES: [&str; 5] = [FIFTH, FOURTH, "v3.channel.k8s.io", "v2.channel.k8s.io", "channel.k8s.io"];
/// The first byte of a message that closes a stream.
const CLOSE: u8 = 255;

/// The numbers of the streams in messages of the client.
const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const ERROR: u8 = 3;
const RESIZE: u8 = 4;

/// Returns whether a subprotocol is translated.
pub fn suits(protocol: &str) -> bool {
    protocol == FIFTH
}

/// Connects a WebSocket client with a process on a SPDY node. Failures of the node go to the client's error stream.
///
/// # Errors
/// The client's connection cannot be upgraded.
pub fn answer(passing: &ForwardedRequest<'_>, to: &Destination, process: Process) -> ApiResult<HttpResponse> {
    let response = match websocket::accept(passing.request, Some(FIFTH)) {
        Ok(response) => response,
        Err(refusal) => {
            count(passing.meter, families::STREAMS_TRANSLATED, 400);
            return Ok(*refusal);
        }
    };
    let client = passing.client_bytes()?;
    let (out, mut sent) = mpsc::channel(limits::STREAM_FRAMES);
    let (outbound, outcome) = (passing.outbound.clone(), StreamOutcome::begin(passing.meter));
    let session = Session { outbound, to: to.clone(), process, out, outcome };
    let session = tasks::owned("translation", session.run(client));
    let frames = stream::poll_fn(move |cx| {
        let _ = &session; // the session ends with the answer
        sent.poll_recv(cx)
    });
    let frames = passing.lasting(frames).chain(stream::once(future::ready(websocket::close())));
    Ok(switched(response, frames.map(Ok::<_, std::io::Error>)))
}

/// A connection between a client and a process.
struct Session {
    outbound: Outbound,
    to: Destination,
    process: Process,
    out: mpsc::Sender<Bytes>,
    outcome: StreamOutcome,
}

/// The outcome of a stream, counted when it is dropped. An aborted stream counts as an internal error.
struct StreamOutcome {
    meter: Arc<Meter>,
    code: u16,
}

impl StreamOutcome {
    fn begin(meter: &Arc<Meter>) -> Self {
        Self { meter: Arc::clone(meter), code: 500 }
    }

    /// Records the status that the client gets. A process that exits with a code other than 0 is not a failure of the
    /// stream.
    fn ended(&mut self, status: &Value) {
        let has_run = status.str_at(&["status"]) == "Success" || status.str_at(&["reason"]) == "NonZeroExitCode";
        let stated = status.int_at(&["code"]).and_then(|code| u16::try_from(code).ok());
        self.code = if has_run { 200 } else { stated.unwrap_or(500) };
    }
}

impl Drop for StreamOutcome {
    fn drop(&mut self) {
        count(&self.meter, families::STREAMS_TRANSLATED, self.code);
    }
}

impl Session {
    async fn run(mut self, client: ClientBytes) {
        let first = match self.process {
            Process { stdout: true, .. } => STDOUT,
            Process { stderr: true, .. } => STDERR,
            _ => ERROR,
        };
        if self.send(first, b"").await.is_none() {
            return;
        }
        let mut messages = Messages::new(client);
        let connecting = async {
            tokio::select! {
                connected = self.connect() => Some(connected),
                () = self.deaf(&mut messages) => None,
            }
        };
        let status = match connecting.await {
            None => return,
            Some(Err(error)) => error.to_value(),
            Some(Ok((peer, protocol))) => match self.exchange(peer, &protocol, messages).await {
                Some(status) => status,
                None => return,
            },
        };
        self.outcome.ended(&status);
        let _ = self.send(ERROR, &json::to_vec(&stripped(status))).await;
    }

    /// Waits until the client disconnects. The client's messages are not read before the process is connected.
    async fn deaf(&self, _: &mut Messages<ClientBytes>) {
        self.out.closed().await;
    }

    async fn send(&self, channel: u8, data: &[u8]) -> Option<()> {
        let mut message = BytesMut::with_capacity(1 + data.len());
        message.put_u8(channel);
        message.put_slice(data);
        self.out.send(websocket::binary(message.freeze())).await.ok()
    }

    /// Upgrades a connection to the node to SPDY. The node chooses the protocol.
    async fn connect(&self) -> ApiResult<(Switched, String)> {
        let mut headers = HeaderMap::new();
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(UPGRADE, HeaderValue::from_static("SPDY/3.1"));
        let version = HeaderName::from_static("x-stream-protocol-version");
        for protocol in AT_NODES {
            headers.append(&version, HeaderValue::from_static(protocol));
        }
        let request = upgrade::request(&self.to, &self.to.path, Method::POST, headers, outbound::empty())?;
        let deadline = tokio::time::Instant::now() + limits::STREAM_BEGIN_TIMEOUT;
        let uri = format!("https://{}{}", self.to.peer.address(), self.to.path);
        let failed = |why: &dyn std::fmt::Display| {
            ApiError::internal(format!("error sending request: Post {}: {why}", crate::field::quote(&uri)))
        };
        match self.outbound.send_unpooled(&self.to.peer, request, deadline).await.map_err(|error| failed(&error))? {
            Unpooled::Switched(head, peer) => {
                let agreed = head.headers.get(&version).and_then(|value| value.to_str().ok());
                Ok((peer, agreed.unwrap_or(AT_NODES[4]).trim().to_owned()))
            }
            Unpooled::Answered(answer) if is_redirect(answer.status()) => Err(failed(&"redirect not allowed")),
            Unpooled::Answered(answer) => {
                let text = outbound::read_beginning(answer.into_body(), limits::STREAM_ERROR_BYTES).await;
                Err(refused(&text.unwrap_or_default()))
            }
        }
    }

    /// Opens the streams of the process and forwards data until the process ends. Returns the status for the client, or
    /// `None` if the client has disconnected.
    async fn exchange(&self, peer: Switched, protocol: &str, messages: Messages<ClientBytes>) -> Option<Value> {
        let Process { stdin, stdout, stderr, tty, .. } = self.process;
        let wanted = [
            (ERROR, "error", true),
            (STDIN, "stdin", stdin),
            (STDOUT, "stdout", stdout),
            (STDERR, "stderr", stderr && !tty),
            (RESIZE, "resize", tty && !["v2.channel.k8s.io", "channel.k8s.io"].contains(&protocol)),
        ];
        let (mut reading, writing, frames) = link::split(peer);
        let conversation = async {
            let mut streams = Streams::default();
            for (channel, kind, _) in wanted.into_iter().filter(|(_, _, is_wanted)| *is_wanted) {
                let number = 2 * streams.0.len() as u32 + 1;
                frames.send(spdy::open(number, &[("streamtype", kind)], number == 1)).await.ok()?;
                if timeout(limits::SPDY_STREAM_TIMEOUT, agreed(&mut reading, number)).await.ok().flatten().is_none() {
                    return Some(ApiError::internal("timed out waiting for a stream").to_value());
                }
                streams.0.insert(channel, number);
            }
            tokio::select! {
                status = self.receive(&mut reading, &streams, protocol, &frames) => status,
                () = self.forward(messages, &streams, &frames) => None,
            }
        };
        tokio::select! {
            status = conversation => status,
            () = writing.run() => Some(ApiError::internal("the connection to the node failed").to_value()),
        }
    }

    /// Forwards the client's messages until it disconnects.
    async fn forward(&self, mut messages: Messages<ClientBytes>, streams: &Streams, frames: &Frames) {
        let mut open: Vec<u8> = streams.0.keys().copied().filter(|channel| [STDIN, RESIZE].contains(channel)).collect();
        while let Some(message) = messages.next().await {
            let data = match message {
                Message::Data(data) => data,
                Message::Ping(data) => {
                    let _ = self.out.try_send(websocket::pong(data));
                    continue;
                }
            };
            let (Some(&channel), Some(rest)) = (data.first(), data.get(1..)) else { continue };
            let (channel, is_last) = match (channel, rest) {
                (CLOSE, &[closed]) if closed <= RESIZE => (closed, true),
                (CLOSE, _) => return,
                _ => (channel, false),
            };
            let Some(number) = streams.0.get(&channel).filter(|_| open.contains(&channel)) else { continue };
            let data = if is_last { &[][..] } else { rest };
            if is_last {
                open.retain(|other| *other != channel);
            }
            for part in chunks(data) {
                if frames.send(spdy::data(*number, part, is_last)).await.is_err() {
                    return;
                }
            }
        }
    }

    /// Forwards the output of the process until it ends. Returns the status that the node reported.
    async fn receive(
        &self,
        reading: &mut Reading<Switched>,
        streams: &Streams,
        protocol: &str,
        frames: &Frames,
    ) -> Option<Value> {
        let mut open: Vec<u8> =
            streams.0.keys().copied().filter(|channel| [STDOUT, STDERR, ERROR].contains(channel)).collect();
        let mut error_bytes = Vec::new();
        while !open.is_empty() {
            let (number, data, is_last) = match reading.next().await {
                Some(Received::Data(number, data, is_last)) => (number, data, is_last),
                Some(Received::Reset(number)) => (number, Bytes::new(), true),
                Some(Received::Ping(number)) => {
                    if number % 2 == 0 {
                        let _ = frames.try_send(spdy::ping(number));
                    }
                    continue;
                }
                Some(Received::Reply(_) | Received::Other) => continue,
                Some(Received::GoAway) | None => break,
            };
            let Some(channel) = streams.channel(number) else { continue };
            match channel {
                ERROR if error_bytes.len() + data.len() > limits::PROCESS_ERROR_BYTES => {
                    return Some(ApiError::internal("the node's error text is too long").to_value());
                }
                ERROR => error_bytes.extend_from_slice(&data),
                STDOUT | STDERR if !data.is_empty() => self.send(channel, &data).await?,
                _ => {}
            }
            if is_last {
                open.retain(|other| *other != channel);
            }
        }
        Some(ended(protocol, &error_bytes))
    }
}

/// The stream number at the node for each stream of the client.
#[derive(Default)]
struct Streams(BTreeMap<u8, u32>);

impl Streams {
    fn channel(&self, number: u32) -> Option<u8> {
        self.0.iter().find(|(_, own)| **own == number).map(|(channel, _)| *channel)
    }
}

/// Splits a message into parts that are short enough not to delay other streams. Returns at least one part.
fn chunks(data: &[u8]) -> impl Iterator<Item = &[u8]> {
    let empty = data.is_empty().then_some(data);
    empty.into_iter().chain(data.chunks(limits::STREAM_CHUNK_BYTES))
}

/// Waits until the node accepts a stream. `None` if it does not.
async fn agreed(reading: &mut Reading<Switched>, number: u32) -> Option<()> {
    loop {
        match reading.next().await? {
            Received::Reply(other) if other == number => return Some(()),
            Received::Reset(other) if other == number => return None,
            Received::GoAway => return None,
            _ => {}
        }
    }
}

fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

/// Returns the error for a node that does not upgrade to SPDY.
fn refused(text: &[u8]) -> ApiError {
    match json::parse(text) {
        Ok(status) if status.str_at(&["kind"]) == "Status" => {
            let code = status.int_at(&["code"]).and_then(|code| u16::try_from(code).ok()).unwrap_or(500);
            let mut error = ApiError::new(code, "", status.str_at(&["message"]));
            error.details.get_or_insert_default().stated = status;
            error
        }
        _ => {
            let text = String::from_utf8_lossy(text);
            ApiError::internal(format!("unable to upgrade connection: {}", text.trim()))
        }
    }
}

/// Removes kind and version, which statuses on the error stream do not have.
fn stripped(mut status: Value) -> Value {
    status.remove_at(&["kind"]);
    status.remove_at(&["apiVersion"]);
    status
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_message_is_one_part() {
        assert_eq!(chunks(b"").count(), 1);
        assert_eq!(chunks(&vec![0; 2 * limits::STREAM_CHUNK_BYTES + 1]).count(), 3);
    }
}
