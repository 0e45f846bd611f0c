//! The connections to one peer.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::header::HOST;
use http::{Request, Response, Uri, Version};
use hyper::body::Incoming;
use hyper::client::conn::{TrySendError, http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use parking_lot::Mutex;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::egress::Proxy;
use super::transport::{self, Stream};
use super::{Answer, Body, Error, Peer, tls, wording};
use crate::limits;
use crate::tasks;

type Tls = (Arc<ClientConfig>, ServerName<'static>);

/// The connections to one peer, and the requests over them.
pub struct Pool {
    peer: Peer,
    /// The proxy through which the peer is reached. `None` for direct connections.
    proxy: Option<Arc<Proxy>>,
    tls: Option<Tls>,
    /// The settings for connections for exclusive use, which never offer HTTP/2.
    tls_alone: Option<Tls>,
    /// One permit for each request that may be in progress.
    places: Arc<Semaphore>,
    waiting: AtomicUsize,
    open: Arc<AtomicUsize>,
    kept: Mutex<PoolState>,
}

struct PoolState {
    /// Idle connections of HTTP/1.1, the most recently used last.
    idle: Vec<(Instant, Sender)>,
    /// The connection of HTTP/2, which all requests share.
    shared: Option<Sender>,
    used: Instant,
    /// Whether a task closes idle connections.
    is_swept: bool,
}

/// Sends the requests of one connection.
struct Sender {
    requests: Requests,
    ends: Arc<str>,
}

enum Requests {
    One(http1::SendRequest<Body>),
    Many(http2::SendRequest<Body>),
}

/// Counts an open connection until it is dropped.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Pool {
    /// Returns a pool without connections. The pool makes them through the proxy if there is one.
    ///
    /// # Errors
    /// The TLS settings of the peer are invalid.
    pub fn new(peer: Peer, proxy: Option<Arc<Proxy>>) -> Result<Self, Error> {
        let tls = peer.secure.as_ref().map(|secure| tls::config(secure, secure.http2)).transpose()?;
        let tls_alone = peer.secure.as_ref().map(|secure| tls::config(secure, false)).transpose()?;
        let kept = PoolState { idle: Vec::new(), shared: None, used: Instant::now(), is_swept: false };
        let places = Arc::new(Semaphore::new(limits::OUTBOUND_REQUESTS));
        let (waiting, open) = (AtomicUsize::new(0), Arc::default());
        Ok(Self { peer, proxy, tls, tls_alone, places, waiting, open, kept: Mutex::new(kept) })
    }

    /// Returns whether no request is in progress, and none began within this time.
    pub fn is_idle_for(&self, time: Duration) -> bool {
        self.requests() == 0 && self.kept.lock().used.elapsed() >= time
    }

    /// Returns the number of open connections.
    pub fn connections(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// Returns the number of requests in progress or waiting.
    pub fn requests(&self) -> usize {
        let waiting = self.waiting.load(Ordering::Relaxed);
        waiting + limits::OUTBOUND_REQUESTS - self.places.available_permits()
    }

    /// Opens a connection for exclusive use.
    ///
    /// # Errors
    /// The connection or the TLS handshake failed.
    pub async fn connect_alone(&self) -> Result<Stream, Error> {
        transport::connect(&self.peer, self.proxy.as_deref(), self.tls_alone.as_ref()).await
    }

    /// Makes a request, over a kept connection or a new one.
    ///
    /// # Errors
    /// As for [`super::Outbound::send`], or too many requests wait for the peer.
    pub async fn send(self: &Arc<Self>, mut request: Request<Body>) -> Result<Response<Answer>, Error> {
        let place = self.place().await?;
        loop {
            let kept = self.take();
            let is_new = kept.is_none();
            let mut sender = match kept {
                Some(sender) => sender,
                None => self.open().await?,
            };
            match sender.send(request).await {
                Ok(answer) => {
                    let ends = Arc::clone(&sender.ends);
                    self.keep(sender);
                    return Ok(answer.map(|body| Answer::new(body, ends, Some(place))));
                }
                // The kept connection had closed before the request was sent: another one is tried.
                Err(TrySendErrorOf { error: _, request: Some(unsent) }) if !is_new => request = unsent,
                Err(TrySendErrorOf { error, .. }) => return Err(wording::request(&error, &sender.ends)),
            }
        }
    }

    async fn place(&self) -> Result<OwnedSemaphorePermit, Error> {
        struct Waits<'a>(&'a AtomicUsize);
        impl Drop for Waits<'_> {
            fn drop(&mut self) {
                self.0.fetch_sub(1, Ordering::Relaxed);
            }
        }
        let busy = || Error::Busy(self.peer.address());
        let before = self.waiting.fetch_add(1, Ordering::Relaxed);
        let _waits = Waits(&self.waiting);
        if before >= limits::OUTBOUND_WAITING {
            return Err(busy());
        }
        Arc::clone(&self.places).acquire_owned().await.map_err(|_| busy())
    }

    /// Takes a kept connection that is still open, as far as is known.
    fn take(&self) -> Option<Sender> {
        let mut kept = self.kept.lock();
        kept.used = Instant::now();
        kept.forget_ended();
        match &kept.shared {
            Some(Sender { requests: Requests::Many(many), ends }) => {
                Some(Sender { requests: Requests::Many(many.clone()), ends: Arc::clone(ends) })
            }
            _ => kept.idle.pop().map(|(_, sender)| sender),
        }
    }

    /// Keeps a connection for later requests: HTTP/2 at once, HTTP/1.1 after its answer.
    fn keep(self: &Arc<Self>, mut sender: Sender) {
        match sender.requests {
            Requests::Many(_) => {
                let mut kept = self.kept.lock();
                if kept.shared.is_none() {
                    kept.shared = Some(sender);
                    self.sweep(&mut kept);
                }
            }
            Requests::One(_) => {
                let pool = Arc::clone(self);
                tasks::detached("connection", async move {
                    if !sender.is_ready().await {
                        return;
                    }
                    let mut kept = pool.kept.lock();
                    if kept.idle.len() < limits::OUTBOUND_IDLE_CONNECTIONS {
                        kept.idle.push((Instant::now(), sender));
                        pool.sweep(&mut kept);
                    }
                });
            }
        }
    }

    /// Starts the task that closes idle connections, unless it runs.
    fn sweep(self: &Arc<Self>, kept: &mut PoolState) {
        if std::mem::replace(&mut kept.is_swept, true) {
            return;
        }
        let pool = Arc::downgrade(self);
        tasks::detached("idle connections", async move {
            loop {
                tokio::time::sleep(limits::OUTBOUND_IDLE_TIMEOUT / 3).await;
                let Some(pool) = pool.upgrade() else { return };
                let mut kept = pool.kept.lock();
                kept.forget_ended();
                if kept.used.elapsed() >= limits::OUTBOUND_IDLE_TIMEOUT
                    && pool.places.available_permits() == limits::OUTBOUND_REQUESTS
                {
                    kept.shared = None;
                }
                if kept.idle.is_empty() && kept.shared.is_none() {
                    kept.is_swept = false;
                    return;
                }
            }
        });
    }

    async fn open(&self) -> Result<Sender, Error> {
        let stream = transport::connect(&self.peer, self.proxy.as_deref(), self.tls.as_ref()).await?;
        let (ends, io) = (stream.ends, TokioIo::new(stream.io));
        self.open.fetch_add(1, Ordering::Relaxed);
        let counted = Counted(Arc::clone(&self.open));
        let failed = |error: hyper::Error| wording::request(&error, &ends);
        let requests = if stream.is_http2 {
            let (many, connection) = http2::Builder::new(TokioExecutor::new())
                .timer(TokioTimer::new())
                .keep_alive_interval(limits::OUTBOUND_PING_INTERVAL)
                .keep_alive_timeout(limits::OUTBOUND_PING_TIMEOUT)
                .keep_alive_while_idle(true)
                .max_header_list_size(limits::OUTBOUND_HEAD_BYTES as u32)
                .handshake(io)
                .await
                .map_err(failed)?;
            tasks::detached("connection", async move { ended(connection.await, counted) });
            Requests::Many(many)
        } else {
            let (one, connection) = http1::Builder::new()
                .max_buf_size(limits::OUTBOUND_HEAD_BYTES)
                .max_headers(limits::OUTBOUND_HEADERS)
                .handshake(io)
                .await
                .map_err(failed)?;
            tasks::detached("connection", async move { ended(connection.await, counted) });
            Requests::One(one)
        };
        Ok(Sender { requests, ends })
    }
}

/// Handles the end of a connection. The requests that wait for answers get the error by themselves.
fn ended(how: Result<(), hyper::Error>, counted: Counted) {
    drop(counted);
    if let Err(error) = how {
        tracing::debug!(%error, "a connection to another server failed");
    }
}

impl PoolState {
    fn forget_ended(&mut self) {
        let is_fresh = |since: &Instant| since.elapsed() < limits::OUTBOUND_IDLE_TIMEOUT;
        self.idle.retain(|(since, sender)| is_fresh(since) && !sender.is_closed());
        if self.shared.as_ref().is_some_and(Sender::is_closed) {
            self.shared = None;
        }
    }
}

/// The reason why a request failed, with the request if it was not sent.
struct TrySendErrorOf {
    error: hyper::Error,
    request: Option<Request<Body>>,
}

impl From<TrySendError<Request<Body>>> for TrySendErrorOf {
    fn from(mut failed: TrySendError<Request<Body>>) -> Self {
        let request = failed.take_message();
        Self { error: failed.into_error(), request }
    }
}

impl Sender {
    async fn send(&mut self, request: Request<Body>) -> Result<Response<Incoming>, TrySendErrorOf> {
        match &mut self.requests {
            Requests::One(one) => Ok(one.try_send_request(of_version_1(request)).await?),
            Requests::Many(many) => Ok(many.try_send_request(of_version_2(request)).await?),
        }
    }

    fn is_closed(&self) -> bool {
        match &self.requests {
            Requests::One(one) => one.is_closed(),
            Requests::Many(many) => many.is_closed(),
        }
    }

    /// Waits until the answer was read. Returns false if the connection closes instead.
    async fn is_ready(&mut self) -> bool {
        match &mut self.requests {
            Requests::One(one) => one.ready().await.is_ok(),
            Requests::Many(_) => true,
        }
    }
}

/// Adapts a request to HTTP/1.1: the host goes into a header, and only the path into the first line.
pub(super) fn of_version_1(mut request: Request<Body>) -> Request<Body> {
    *request.version_mut() = Version::HTTP_11;
    if let Some(authority) = request.uri().authority() {
        if let Ok(host) = authority.as_str().parse() {
            request.headers_mut().entry(HOST).or_insert(host);
        }
        let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
        if let Ok(uri) = path.parse::<Uri>() {
            *request.uri_mut() = uri;
        }
    }
    request
}

/// Adapts a request to HTTP/2: the host goes into the URI.
fn of_version_2(mut request: Request<Body>) -> Request<Body> {
    *request.version_mut() = Version::HTTP_2;
    let host = request.headers_mut().remove(HOST);
    if request.uri().authority().is_none()
        && let Some(host) = host
    {
        let mut parts = request.uri().clone().into_parts();
        parts.scheme = Some(http::uri::Scheme::HTTPS);
        parts.authority = host.to_str().ok().and_then(|host| host.parse().ok());
        if let Ok(uri) = Uri::from_parts(parts) {
            *request.uri_mut() = uri;
        }
    }
    request
}
