//! Calls in gRPC: the frames of messages, and a call that has one message in each direction.

use crate::tasks;
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::SocketAddr;

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use http::header::{CONTENT_TYPE, TE};
use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message;
use tokio::net::UnixStream;

/// The number of bytes before a message: one says whether it is compressed, four state its length.
const FRAME_HEAD: usize = 5;

/// The reason why bytes are not a message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The message is compressed, although this server did not ask for that.
    #[error("a message is compressed")]
    Compressed,
    /// The message is longer than the bound.
    #[error("a message of {0} bytes is too large")]
    TooLarge(usize),
    /// The message cannot be decoded.
    #[error("a message cannot be decoded: {0}")]
    Wrong(#[from] prost::DecodeError),
}

/// The reason why a call has no answer.
#[derive(Debug, thiserror::Error)]
pub enum GrpcError {
    /// No connection to the socket was established.
    #[error("cannot connect: {0}")]
    Connect(#[source] io::Error),
    /// The connection failed.
    #[error("the connection failed: {0}")]
    Connection(#[from] hyper::Error),
    /// The answer is not a gRPC answer.
    #[error("the answer cannot be read: {0}")]
    Answer(String),
    /// The server refused.
    #[error("code {code}: {message}")]
    Refused {
        /// The gRPC status code.
        code: String,
        /// The server's reason.
        message: String,
    },
}

/// Returns a message in its frame.
pub fn framed(message: &impl Message) -> Bytes {
    let mut frame = BytesMut::with_capacity(FRAME_HEAD + message.encoded_len());
    frame.put_u8(0);
    frame.put_u32(message.encoded_len() as u32);
    frame.extend_from_slice(&message.encode_to_vec());
    frame.freeze()
}

/// Takes the first message out of received bytes. Returns `None` if they do not contain all of it yet.
///
/// # Errors
/// The bytes are not a message, or the message has more than `bytes_max` bytes.
pub fn take<M: Message + Default>(received: &mut BytesMut, bytes_max: usize) -> Result<Option<M>, FrameError> {
    let Some(head) = received.first_chunk::<FRAME_HEAD>() else { return Ok(None) };
    let [compressed, length @ ..] = *head;
    let length = u32::from_be_bytes(length) as usize;
    if compressed != 0 {
        return Err(FrameError::Compressed);
    }
    if length > bytes_max {
        return Err(FrameError::TooLarge(length));
    }
    if received.len() < FRAME_HEAD + length {
        return Ok(None);
    }
    received.advance(FRAME_HEAD);
    Ok(Some(M::decode(received.split_to(length).freeze())?))
}

/// Calls a method, as in `v2.KeyManagementService/Status`, of the server that listens on a socket, over a connection of
/// its own. A path that begins with `/@` is the name of an abstract socket, as in Kubernetes.
///
/// # Errors
/// See [`GrpcError`]. An answer of more than `bytes_max` bytes is not read.
pub async fn call<A: Message, B: Message + Default>(
    socket: &str,
    method: &str,
    message: &A,
    bytes_max: usize,
) -> Result<B, GrpcError> {
    let stream = connect(socket).await.map_err(GrpcError::Connect)?;
    let (mut client, connection) = http2::Builder::new(TokioExecutor::new()).handshake(TokioIo::new(stream)).await?;
    let driver = tasks::detached("grpc", connection);
    let unreadable = |why: &dyn std::fmt::Display| GrpcError::Answer(why.to_string());
    let request = Request::post(format!("http://localhost/{method}"));
    let request = request.header(CONTENT_TYPE, "application/grpc").header(TE, "trailers");
    let request = request.body(Full::new(framed(message))).map_err(|error| unreadable(&error))?;
    let answer = client.send_request(request).await;
    let answer = async {
        let (head, body) = answer?.into_parts();
        if head.status != StatusCode::OK {
            return Err(unreadable(&head.status));
        }
        refusal(&head.headers)?;
        let body = Limited::new(body, FRAME_HEAD + bytes_max).collect().await.map_err(|error| unreadable(&error))?;
        body.trailers().map_or(Ok(()), refusal)?;
        let mut received = BytesMut::from(&*body.to_bytes());
        let message = take(&mut received, bytes_max).map_err(|error| unreadable(&error))?;
        message.ok_or_else(|| unreadable(&"it has no message"))
    };
    let answer = answer.await;
    driver.abort();
    answer
}

async fn connect(socket: &str) -> io::Result<UnixStream> {
    let Some(name) = socket.strip_prefix("/@") else { return UnixStream::connect(socket).await };
    let stream = std::os::unix::net::UnixStream::connect_addr(&SocketAddr::from_abstract_name(name)?)?;
    stream.set_nonblocking(true)?;
    UnixStream::from_std(stream)
}

/// Reads the outcome of a call from headers or trailers. Either may have it.
fn refusal(headers: &HeaderMap) -> Result<(), GrpcError> {
    let text = |name: &str| headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    match text("grpc-status") {
        Some(code) if code != "0" => {
            Err(GrpcError::Refused { code, message: text("grpc-message").unwrap_or_default() })
        }
        _ => Ok(()),
    }
}
