//! The HTTP server: its workers, TLS, the choice of HTTP version, and stopping it.

use std::future::ready;
use std::io;
use std::net::TcpListener;
use std::time::Duration;

use actix_http::{HttpService, Protocol, Request};
use actix_service::{IntoServiceFactory, Service, ServiceFactoryExt, apply_fn_factory, map_config};
use actix_tls::accept::rustls_0_23::{Acceptor, TlsStream};
use actix_tls::accept::{TlsError, max_concurrent_tls_connect};
use actix_web::App;
use actix_web::dev::{AppConfig, Extensions, Server, ServerHandle};
use actix_web::rt::net::TcpStream;
use actix_web::rt::time::{Instant, sleep, timeout};
use actix_web::web::ServiceConfig;
use futures_util::FutureExt as _;
use futures_util::future::Either;
use rustls::{ServerConfig, ServerConnection};
use socket2::{SockRef, TcpKeepalive};

use super::inbound::CurrentRequest;
use super::restored::restore;
use super::{BatchingStream, ConnectionId, Connections};
use crate::limits;

/// Starts a server with the handlers that `configure` adds. `connections` must belong to the listener. Every connection
/// has TLS, and speaks HTTP/2 or HTTP/1.1 as `tls` negotiates (RFC 7301). `identify` puts the client's identity into
/// the data of a connection.
///
/// # Errors
/// The socket cannot be used.
pub fn start<F, I>(
    listener: TcpListener,
    tls: ServerConfig,
    workers: usize,
    connections: &Connections,
    configure: F,
    identify: I,
) -> io::Result<Server>
where
    F: Fn(&mut ServiceConfig) + Clone + Send + 'static,
    I: Fn(&ServerConnection, &mut Extensions) + Clone + Send + 'static,
{
    max_concurrent_tls_connect(limits::WORKER_HANDSHAKES);
    let mut acceptor = Acceptor::new(tls);
    acceptor.set_handshake_timeout(limits::HANDSHAKE_TIMEOUT);
    let builder = Server::build();
    let (stopping, connections) = (builder.graceful_shutdown_signal(), connections.clone());
    let builder = builder
        .workers(workers)
        .max_concurrent_connections(limits::WORKER_CONNECTIONS)
        .shutdown_timeout(limits::LINGER_SECONDS)
        .disable_signals();
    let builder = builder.listen("https", listener, move || {
        let (configure, identify, stopping) = (configure.clone(), identify.clone(), stopping.clone());
        let connections = connections.clone();
        let app = map_config(App::new().configure(configure).into_factory(), |()| AppConfig::default());
        let app = app.map_err(|error: actix_web::Error| error.as_response_error().error_response());
        let app = apply_fn_factory(app, |mut request: Request, app: &_| {
            let current = request.conn_data::<CurrentRequest>().cloned();
            let answering = match restore(&mut request) {
                None => Either::Left(Service::call(app, request)),
                Some(answer) => Either::Right(ready(Err(answer))),
            };
            answering.inspect(move |_| current.iter().for_each(CurrentRequest::answered))
        });
        let http = HttpService::build()
            .graceful_shutdown_signal(move || {
                let stopping = stopping.clone();
                async move { stopping.notified().await }
            })
            .keep_alive(limits::IDLE_TIMEOUT)
            .client_request_timeout(limits::REQUEST_HEAD_TIMEOUT)
            .client_disconnect_timeout(limits::CLOSE_TIMEOUT)
            .on_connect_ext(move |connection: &BatchingStream, data| {
                data.insert(ConnectionId::next());
                data.insert(connection.outlet().clone());
                if let Some(current) = connection.current() {
                    data.insert(current.clone());
                }
                data.insert(connection.client_side());
                identify(connection.tls().get_ref().1, data);
            })
            .finish(app);
        let acceptor = acceptor.clone().map_init_err(|_| ()).map_err(TlsError::into_service_error);
        acceptor
            .and_then(move |tls: TlsStream<TcpStream>| {
                let opened = open(tls, &connections);
                async move { Ok(opened) }
            })
            .and_then(http.map_err(TlsError::Service))
    })?;
    Ok(builder.run())
}

/// Prepares a connection for the HTTP service.
fn open(
    tls: TlsStream<TcpStream>,
    connections: &Connections,
) -> (BatchingStream, Protocol, Option<std::net::SocketAddr>) {
    let socket = tls.get_ref().0;
    // Answers are written in one piece, so that waiting for more bytes would only delay them.
    let _ = socket.set_nodelay(true);
    // Without keep-alive, nothing would reveal the loss of a client on an idle connection.
    let _ = SockRef::from(socket).set_tcp_keepalive(&TcpKeepalive::new().with_time(limits::KEEP_ALIVE_TIME));
    let peer = socket.peer_addr().ok();
    let connection = BatchingStream::new(tls, connections);
    let protocol = if connection.is_http2() { Protocol::Http2 } else { Protocol::Http1 };
    (connection, protocol, peer)
}

/// Stops a server. Refuses new connections, finishes the requests in progress, and closes all connections. It waits
/// until `is_idle` returns true, at most for `grace`; connections without requests do not delay it.
pub async fn stop(handle: &ServerHandle, connections: &Connections, is_idle: impl Fn() -> bool, grace: Duration) {
    handle.pause().await;
    // The accepting thread does not say when it has stopped.
    sleep(limits::STOP_CHECK_INTERVAL).await;
    connections.leave();
    let ended = async {
        let mut busy = Instant::now();
        loop {
            if !is_idle() {
                busy = Instant::now();
            } else if connections.are_closed() || busy.elapsed() >= Duration::from_secs(limits::LINGER_SECONDS) {
                return;
            }
            sleep(limits::STOP_CHECK_INTERVAL).await;
        }
    };
    if timeout(grace, ended).await.is_err() && !is_idle() {
        tracing::warn!("the grace period is over: requests in progress are aborted");
    }
    handle.stop(true).await;
}

#[cfg(test)]
#[path = "server_tests.rs"]
mod tests;
