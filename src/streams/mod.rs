//! Requests that are passed on: to processes, ports and logs on nodes, and to servers behind nodes, pods and services.
//!
//! `registry::subresources` says where a request leads; [`pass`] takes it there and is the only way in. Bytes are
//! passed on as they come and never kept beyond what `limits` says, except where a client speaks WebSocket and the node
//! SPDY: then `translate` and `tunnel` stand between them. Whatever is open with the other server belongs to the body
//! of the answer, and ends when that is dropped: no task outlives its client.

mod duplex;
pub mod forwarded;
mod html;
mod link;
mod log;
pub mod one_way;
pub mod proxy;
mod refusal;
mod spdy;
mod translate;
mod tunnel;
pub mod upgrade;
pub mod websocket;

use std::error::Error;
use std::sync::Arc;

use crate::drain::Drain;
use actix_web::body::BodyStream;
use actix_web::http::Version;
use actix_web::http::header::UPGRADE;
use actix_web::{HttpRequest, HttpResponse, HttpResponseBuilder, web};
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};

use crate::access::FrontProxy;
use crate::limits;
use crate::outbound::{Outbound, Peer};
use crate::prometheus::Meter;
use crate::status::{ApiError, ApiResult};
use crate::transport::ClientSide;

/// Where a request leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    /// The server.
    pub peer: Peer,
    /// Path and query there, escaped. Proxies add the query of the request.
    pub path: String,
    /// How the request is passed on.
    pub manner: Manner,
}

/// How a request is passed on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Manner {
    /// What a container wrote is read.
    Log {
        /// Name of the pod, for errors.
        pod: String,
        /// Whether what it writes from now on is sent too.
        follow: bool,
    },
    /// The client is connected with a process.
    Process(Process),
    /// The client is connected with ports.
    Ports {
        /// Whether the node takes WebSockets itself.
        by_websocket: bool,
    },
    /// Any request is made of a server.
    Proxy,
}

/// The streams of a process that a client asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Process {
    /// What it reads.
    pub stdin: bool,
    /// What it writes.
    pub stdout: bool,
    /// What it writes about errors.
    pub stderr: bool,
    /// Whether it has a terminal.
    pub tty: bool,
    /// Whether the node takes WebSockets itself.
    pub by_websocket: bool,
}

/// A request to be passed on.
#[derive(Debug, Clone, Copy)]
pub struct Passing<'r> {
    /// Asks other servers.
    pub outbound: &'r Outbound,
    /// The request.
    pub request: &'r HttpRequest,
    /// Its path, not decoded.
    pub path: &'r str,
    /// Its query without the question mark.
    pub query: &'r str,
    /// Where streams are counted.
    pub meter: &'r Arc<Meter>,
    /// Proxies that this server believes who asks: in headers that nobody behind it may take from a client.
    pub proxy: Option<&'r FrontProxy>,
    /// Tells when to end what has no end of its own.
    pub drain: Option<&'r Drain>,
}

/// Passes a request on.
///
/// # Errors
/// What clients of the reference are told where the other server cannot be reached or does not answer as it should.
pub async fn pass(passing: Passing<'_>, to: &Destination, payload: web::Payload) -> ApiResult<HttpResponse> {
    let is_websocket = |suits: fn(&str) -> bool| {
        websocket::is_asked_for(passing.request) && websocket::protocols(passing.request).any(suits)
    };
    match &to.manner {
        Manner::Log { pod, follow } => log::answer(passing, to, pod, *follow).await,
        Manner::Process(process) if !process.by_websocket && is_websocket(translate::suits) => {
            translate::answer(&passing, to, *process)
        }
        Manner::Ports { by_websocket: false } if is_websocket(tunnel::suits) => tunnel::answer(&passing, to).await,
        _ if is_upgrade(passing.request) => upgrade::answer(&passing, to).await,
        Manner::Proxy => proxy::answer(&Passing { drain: None, ..passing }, to, payload).await,
        Manner::Process(_) | Manner::Ports { .. } => Err(ApiError::bad_request("Upgrade request required")),
    }
}

/// Whether a client wants to go on with another protocol. HTTP/1.1 leaves the header only where it does, and HTTP/2 has
/// none (RFC 9113, section 8.6).
fn is_upgrade(request: &HttpRequest) -> bool {
    request.version() == Version::HTTP_11 && request.headers().contains_key(UPGRADE)
}

impl Passing<'_> {
    /// Whether the client wants to go on with another protocol.
    pub fn is_upgrade(&self) -> bool {
        is_upgrade(self.request)
    }

    /// Ends a stream with its client or the server.
    fn lasting<S: Stream>(&self, stream: S) -> impl Stream<Item = S::Item> + use<S> {
        stream.take_until(self.over())
    }

    /// Waits until the client is gone or the server is to stop.
    fn over(&self) -> impl Future<Output = ()> + use<> {
        let (client, drain) = (self.request.conn_data::<ClientSide>().cloned(), self.drain.cloned());
        async move {
            let gone = async {
                match client {
                    Some(client) => client.gone().await,
                    None => std::future::pending().await,
                }
            };
            let stops = async {
                match drain {
                    Some(drain) => drain.begun().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = gone => {}
                () = stops => {}
            }
        }
    }

    /// Waits for the other server as long as the client does.
    ///
    /// # Errors
    /// When the client is gone, or the server stops.
    pub async fn meanwhile<T>(&self, work: impl Future<Output = T>) -> ApiResult<T> {
        tokio::select! {
            done = work => Ok(done),
            () = self.over() => Err(ApiError::unavailable("the stream ended before it began", 1)),
        }
    }

    /// What the client sends behind the head of a request for another protocol. Must be called before it is told that
    /// it may.
    fn client_bytes(&self) -> ApiResult<ClientBytes> {
        client_bytes(self.request)
    }
}

fn client_bytes(request: &HttpRequest) -> ApiResult<ClientBytes> {
    let client = request.conn_data::<ClientSide>().filter(|_| is_upgrade(request));
    let client = client.ok_or_else(|| ApiError::internal("the connection cannot go on as something else"))?;
    Ok(client.take_over().boxed_local())
}

/// An answer by which the connection goes on as another protocol, of which these are the bytes.
fn switched<E>(mut begun: HttpResponseBuilder, bytes: impl Stream<Item = Result<Bytes, E>> + 'static) -> HttpResponse
where
    E: Into<Box<dyn Error>> + 'static,
{
    let mut response = begun.body(BodyStream::new(bytes));
    // What follows is no body of HTTP: no sizes of parts may stand in it.
    response.head_mut().no_chunking(true);
    response
}

/// Counts a stream by the code that it ended or was answered with.
fn count(meter: &Meter, family: &'static str, code: u16) {
    let code = code.min(limits::STATUS_CODE_MAX).to_string();
    meter.counter(family, &[("code", &*code)]).increment(1);
}

/// What a client sends.
type ClientBytes = futures_util::stream::LocalBoxStream<'static, Bytes>;
