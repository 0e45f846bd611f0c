//! The servers that an API server asks while it is measured: a webhook and a kubelet, within the harness.
//!
//! One HTTPS server is both. It answers at once, so that the time and the memory of a row are those of the API server.

use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::{CONNECTION, CONTENT_TYPE, UPGRADE};
use hyper::upgrade::OnUpgrade;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

use crate::connection::Error;
use crate::limits;

/// The protocol of exec and port-forward, which an API server passes on byte by byte.
pub const SPDY: &str = "SPDY/3.1";

/// The JSON patch of the mutating webhook: it adds a label.
const PATCH: &str = r#"[{"op":"add","path":"/metadata/labels/loadtest","value":"seen"}]"#;

type Body = UnsyncBoxBody<Bytes, Infallible>;

/// A running server. It stops when this is dropped.
pub struct Backend {
    /// Where it listens.
    pub address: SocketAddr,
    /// Its certificate in PEM, which is its own authority.
    pub certificate: String,
    accepting: JoinHandle<()>,
}

impl Backend {
    /// Starts a server on an address of this machine that other machines can reach, since API servers do not proxy
    /// requests to loopback addresses. Without a network, it listens on the loopback address.
    ///
    /// # Errors
    /// Fails if no certificate can be made or no port is free.
    pub async fn start() -> Result<Self, Error> {
        let failed = |error: &dyn std::fmt::Display| Error::Start(format!("a webhook and kubelet: {error}"));
        let listener = TcpListener::bind((own_address(), 0)).await?;
        let address = listener.local_addr()?;
        let names = [address.ip().to_string()];
        let CertifiedKey { cert, signing_key } = generate_simple_self_signed(names).map_err(|error| failed(&error))?;
        let key = PrivateKeyDer::try_from(signing_key.serialize_der()).map_err(|error| failed(&error))?;
        let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| failed(&error))?
            .with_no_client_auth()
            .with_single_cert(vec![cert.der().clone()], key)
            .map_err(|error| failed(&error))?;
        let accepting = tokio::spawn(accept(listener, TlsAcceptor::from(Arc::new(config))));
        Ok(Self { address, certificate: cert.pem(), accepting })
    }
}

/// Returns the address from which this machine would reach another network.
fn own_address() -> IpAddr {
    // A datagram socket sends nothing when it is connected. The network is reserved for documentation (RFC 5737).
    let socket = UdpSocket::bind("0.0.0.0:0").and_then(|socket| socket.connect("192.0.2.1:9").map(|()| socket));
    let address = socket.and_then(|socket| socket.local_addr());
    address.map_or(IpAddr::V4(Ipv4Addr::LOCALHOST), |address| address.ip())
}

impl Drop for Backend {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, tls: TlsAcceptor) {
    while let Ok((connection, _)) = listener.accept().await {
        tokio::spawn(serve(connection, tls.clone()));
    }
}

/// Serves one connection until it ends. A failure is seen by the API server, which reports it to the client.
async fn serve(connection: TcpStream, tls: TlsAcceptor) {
    let _ = connection.set_nodelay(true);
    let Ok(connection) = tls.accept(connection).await else { return };
    let service = hyper::service::service_fn(answer);
    let serving = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(connection), service);
    let _ = serving.with_upgrades().await;
}

async fn answer(mut request: Request<Incoming>) -> Result<Response<Body>, hyper::Error> {
    let upgrade = hyper::upgrade::on(&mut request);
    let path = request.uri().path().to_owned();
    Ok(match path.split('/').nth(1).unwrap_or_default() {
        "mutate" => review(request, json!({"patchType": "JSONPatch", "patch": base64(PATCH)})).await?,
        "validate" => review(request, json!({})).await?,
        "containerLogs" => Response::new(log()),
        "portForward" => switch(upgrade, limits::STREAMED_BYTES),
        "exec" => switch(upgrade, 0),
        _ => Response::new(text("ok")),
    })
}

fn text(text: impl Into<Bytes>) -> Body {
    Full::new(text.into()).boxed_unsync()
}

pub fn base64(text: &str) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(text)
}

/// Allows the request in a review. `more` is added to the response.
async fn review(request: Request<Incoming>, more: Value) -> Result<Response<Body>, hyper::Error> {
    let body = request.into_body().collect().await?.to_bytes();
    let asked: Value = serde_json::from_slice(&body).unwrap_or_default();
    let mut response = json!({"uid": asked["request"]["uid"], "allowed": true});
    if let (Some(response), Value::Object(mut more)) = (response.as_object_mut(), more) {
        response.append(&mut more);
    }
    let answer = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response});
    let mut answer = Response::new(text(answer.to_string()));
    answer.headers_mut().insert(CONTENT_TYPE, hyper::header::HeaderValue::from_static("application/json"));
    Ok(answer)
}

/// Returns lines of text, in chunks.
fn log() -> Body {
    let line = format!("{}\n", "x".repeat(limits::LOG_LINE_BYTES - 1));
    let chunk = Bytes::from(line.repeat(limits::STREAMED_CHUNK_BYTES / line.len()));
    let chunks = limits::STREAMED_BYTES / chunk.len();
    let frames = (0..chunks).map(move |_| Ok(Frame::data(chunk.clone())));
    StreamBody::new(stream::iter(frames)).boxed_unsync()
}

/// Changes the protocol of a connection, sends this many bytes, and keeps the connection until the other side ends it.
fn switch(upgrade: OnUpgrade, bytes: usize) -> Response<Body> {
    tokio::spawn(async move {
        let Ok(connection) = upgrade.await else { return };
        let mut connection = TokioIo::new(connection);
        let chunk = vec![b'x'; limits::STREAMED_CHUNK_BYTES];
        for _ in 0..bytes / chunk.len() {
            if connection.write_all(&chunk).await.is_err() {
                return;
            }
        }
        let _ = connection.flush().await;
        while connection.read(&mut [0; 256]).await.is_ok_and(|length| length > 0) {}
    });
    let mut answer = Response::new(text(Bytes::new()));
    *answer.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    answer.headers_mut().insert(CONNECTION, hyper::header::HeaderValue::from_static("Upgrade"));
    answer.headers_mut().insert(UPGRADE, hyper::header::HeaderValue::from_static(SPDY));
    answer
}
