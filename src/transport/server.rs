//! The HTTP server: workers that accept connections, TLS, and which HTTP is spoken.

use std::io;
use std::net::TcpListener;

use actix_http::{HttpService, Protocol};
use actix_service::{IntoServiceFactory, ServiceFactoryExt, map_config};
use actix_tls::accept::rustls_0_23::{Acceptor, TlsStream};
use actix_tls::accept::{TlsError, max_concurrent_tls_connect};
use actix_web::App;
use actix_web::dev::{AppConfig, Extensions, Server};
use actix_web::rt::net::TcpStream;
use actix_web::web::ServiceConfig;
use rustls::{ServerConfig, ServerConnection};

use super::{ConnectionId, Gathered};
use crate::limits;

/// Protocols that clients are offered, the preferred one first (RFC 7301).
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// Begins to serve what `configure` says. Every connection has TLS; `identify` puts into its data who it belongs to.
///
/// # Errors
/// When the socket cannot be used.
pub fn start<F, I>(
    listener: TcpListener,
    mut tls: ServerConfig,
    workers: usize,
    configure: F,
    identify: I,
) -> io::Result<Server>
where
    F: Fn(&mut ServiceConfig) + Clone + Send + 'static,
    I: Fn(&ServerConnection, &mut Extensions) + Clone + Send + 'static,
{
    max_concurrent_tls_connect(limits::WORKER_HANDSHAKES);
    tls.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).into();
    let mut acceptor = Acceptor::new(tls);
    acceptor.set_handshake_timeout(limits::HANDSHAKE_TIMEOUT);
    let builder = Server::build();
    let stopping = builder.graceful_shutdown_signal();
    let builder = builder
        .workers(workers)
        .max_concurrent_connections(limits::WORKER_CONNECTIONS)
        .shutdown_timeout(limits::LINGER_SECONDS)
        .disable_signals();
    let builder = builder.listen("https", listener, move || {
        let (configure, identify, stopping) = (configure.clone(), identify.clone(), stopping.clone());
        let app = App::new().configure(configure).into_factory();
        let app = app.map_err(|error: actix_web::Error| error.as_response_error().error_response());
        let http = HttpService::build()
            .graceful_shutdown_signal(move || {
                let stopping = stopping.clone();
                async move { stopping.notified().await }
            })
            .keep_alive(limits::IDLE_TIMEOUT)
            .client_request_timeout(limits::REQUEST_HEAD_TIMEOUT)
            .client_disconnect_timeout(limits::FAREWELL_TIMEOUT)
            .on_connect_ext(move |connection: &Gathered, data| {
                data.insert(ConnectionId::next());
                identify(connection.tls().get_ref().1, data);
            })
            .finish(map_config(app, |()| AppConfig::default()));
        let acceptor = acceptor.clone().map_init_err(|_| ()).map_err(TlsError::into_service_error);
        acceptor
            .and_then(|tls: TlsStream<TcpStream>| async move { Ok(open(tls)) })
            .and_then(http.map_err(TlsError::Service))
    })?;
    Ok(builder.run())
}

/// What the HTTP service wants to know of a connection.
fn open(tls: TlsStream<TcpStream>) -> (Gathered, Protocol, Option<std::net::SocketAddr>) {
    let socket = tls.get_ref().0;
    // Answers are written in one piece; waiting for more would only delay them.
    let _ = socket.set_nodelay(true);
    let peer = socket.peer_addr().ok();
    let connection = Gathered::new(tls);
    let protocol = if connection.is_http2() { Protocol::Http2 } else { Protocol::Http1 };
    (connection, protocol, peer)
}
