//! Forwards requests to other servers: to processes, ports and logs on nodes, and to servers behind nodes, pods and
//! services.
//!
//! `registry::subresources` determines the destination of a request; [`pass`], the only entry point, forwards it. Bytes
//! are forwarded as they arrive, and `limits` bounds how many are buffered. If the client speaks WebSocket and the node
//! SPDY, `translate` or `tunnel` converts between them. The body of the answer owns the connection to the other server:
//! dropping it closes the connection, so that no task outlives its client.

mod duplex;
mod exit_status;
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

/// The destination of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    /// The server.
    pub peer: Peer,
    /// The escaped path and query at the server. Proxies add the query of the request.
    pub path: String,
    /// How to forward the request.
    pub manner: ForwardMode,
}

/// How to forward a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ForwardMode {
    /// Reads the log of a container.
    Log {
        /// The name of the pod, for errors.
        pod: String,
        /// Whether to send later output too.
        follow: bool,
    },
    /// Connects the client with a process.
    Process(Process),
    /// Connects the client with ports.
    Ports {
        /// Whether the node handles WebSockets itself.
        by_websocket: bool,
    },
    /// Proxies any request to a server.
    Proxy,
}

/// The streams of a process that a client requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Process {
    /// Standard input.
    pub stdin: bool,
    /// Standard output.
    pub stdout: bool,
    /// Standard error.
    pub stderr: bool,
    /// Whether it has a terminal.
    pub tty: bool,
    /// Whether the node handles WebSockets itself.
    pub by_websocket: bool,
}

/// A request to forward.
#[derive(Debug, Clone, Copy)]
pub struct ForwardedRequest<'r> {
    /// Makes the requests to other servers.
    pub outbound: &'r Outbound,
    /// The request.
    pub request: &'r HttpRequest,
    /// The path before decoding.
    pub path: &'r str,
    /// The query, without the question mark.
    pub query: &'r str,
    /// Counts streams.
    pub meter: &'r Arc<Meter>,
    /// The trusted front proxy. Its headers state the user, so they are never forwarded from a client.
    pub proxy: Option<&'r FrontProxy>,
    /// Signals long-running requests to end when the server stops. `None` if they need not.
    pub drain: Option<&'r Drain>,
}

/// Forwards a request.
///
/// # Errors
/// The errors of the reference when the other server is unreachable or answers incorrectly.
pub async fn pass(passing: ForwardedRequest<'_>, to: &Destination, payload: web::Payload) -> ApiResult<HttpResponse> {
    let is_websocket = |suits: fn(&str) -> bool| {
        websocket::is_asked_for(passing.request) && websocket::protocols(passing.request).any(suits)
    };
    match &to.manner {
        ForwardMode::Log { pod, follow } => log::answer(passing, to, pod, *follow).await,
        ForwardMode::Process(process) if !process.by_websocket && is_websocket(translate::suits) => {
            translate::answer(&passing, to, *process)
        }
        ForwardMode::Ports { by_websocket: false } if is_websocket(tunnel::suits) => tunnel::answer(&passing, to).await,
        _ if is_upgrade(passing.request) => upgrade::answer(&passing, to).await,
        ForwardMode::Proxy => proxy::answer(&ForwardedRequest { drain: None, ..passing }, to, payload).await,
        ForwardMode::Process(_) | ForwardMode::Ports { .. } => Err(ApiError::bad_request("Upgrade request required")),
    }
}

/// Returns whether a client requests an upgrade. For HTTP/1.1, the header remains only in such requests; HTTP/2 has no
/// upgrades (RFC 9113, section 8.6).
fn is_upgrade(request: &HttpRequest) -> bool {
    request.version() == Version::HTTP_11 && request.headers().contains_key(UPGRADE)
}

impl ForwardedRequest<'_> {
    /// Returns whether the client requests an upgrade.
    pub fn is_upgrade(&self) -> bool {
        is_upgrade(self.request)
    }

    /// Ends a stream when the client disconnects or the server stops.
    fn lasting<S: Stream>(&self, stream: S) -> impl Stream<Item = S::Item> + use<S> {
        stream.take_until(self.over())
    }

    /// Waits until the client has disconnected or the server stops.
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

    /// Runs some work while the client waits.
    ///
    /// # Errors
    /// 503 if the client disconnects or the server stops first.
    pub async fn meanwhile<T>(&self, work: impl Future<Output = T>) -> ApiResult<T> {
        tokio::select! {
            done = work => Ok(done),
            () = self.over() => Err(ApiError::unavailable("the stream ended before it began", 1)),
        }
    }

    /// Takes over the bytes that the client sends after an upgrade. Must be called before the answer allows the client
    /// to send them.
    fn client_bytes(&self) -> ApiResult<ClientBytes> {
        client_bytes(self.request)
    }
}

fn client_bytes(request: &HttpRequest) -> ApiResult<ClientBytes> {
    let client = request.conn_data::<ClientSide>().filter(|_| is_upgrade(request));
    let client = client.ok_or_else(|| ApiError::internal("the connection cannot be upgraded"))?;
    Ok(client.take_over().boxed_local())
}

/// Returns the answer that upgrades the connection and then sends `bytes`.
fn switched<E>(mut begun: HttpResponseBuilder, bytes: impl Stream<Item = Result<Bytes, E>> + 'static) -> HttpResponse
where
    E: Into<Box<dyn Error>> + 'static,
{
    let mut response = begun.body(BodyStream::new(bytes));
    // The bytes that follow are not an HTTP body, and must not be sent in chunks.
    response.head_mut().no_chunking(true);
    response
}

/// Counts a stream by its final code or the code of its answer.
fn count(meter: &Meter, family: &'static str, code: u16) {
    let code = code.min(limits::STATUS_CODE_MAX).to_string();
    meter.counter(family, &[("code", &*code)]).increment(1);
}

/// The bytes that a client sends.
type ClientBytes = futures_util::stream::LocalBoxStream<'static, Bytes>;
