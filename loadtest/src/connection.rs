//! Connections to the server: TCP, TLS, and HTTP/2 or HTTP/1.1, without a pool and without retries.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper::header::{self, HeaderValue};
use hyper::upgrade::Upgraded;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio::net::TcpStream;

use crate::kubeconfig::Target;
use crate::limits;

/// The reason why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The network failed.
    #[error("connection: {0}")]
    Io(#[from] std::io::Error),
    /// HTTP failed.
    #[error("http: {0}")]
    Http(#[from] hyper::Error),
    /// The request is not valid HTTP.
    #[error("request: {0}")]
    Request(#[from] hyper::http::Error),
    /// The certificates of the kubeconfig cannot be used.
    #[error("credentials: {0}")]
    Credentials(String),
    /// A server could not be started, or the objects that a scenario needs could not be created.
    #[error("cannot start: {0}")]
    Start(String),
    /// The answer took too long.
    #[error("no answer within {} s", limits::REQUEST_SECONDS_MAX)]
    Timeout,
    /// A watch sent a line that is too long.
    #[error("a line of a watch is longer than {} bytes", limits::WATCH_LINE_BYTES_MAX)]
    LongLine,
    /// The server refused a request that the run depends on.
    #[error("{what}: {status} {body}")]
    Refused {
        /// The request.
        what: String,
        /// The answer's status.
        status: StatusCode,
        /// The beginning of the answer's body.
        body: String,
    },
}

/// The version of HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1: one request at a time per connection.
    Http1,
    /// HTTP/2: requests share connections.
    Http2,
}

/// A request.
#[derive(Debug, Clone)]
pub struct Call {
    /// The HTTP method.
    pub method: Method,
    /// Path and query.
    pub path: String,
    /// The header `Accept`. `None` requests JSON.
    pub accept: Option<&'static str>,
    /// The media type and the bytes of the body.
    pub body: Option<(&'static str, Bytes)>,
    /// Whether the answer keeps its body, and not only the length of it.
    pub keep_body: bool,
}

impl Call {
    /// A GET that accepts JSON.
    pub fn get(path: impl Into<String>) -> Self {
        Self { method: Method::GET, path: path.into(), accept: None, body: None, keep_body: false }
    }

    /// A request with a JSON body.
    pub fn with_json(method: Method, path: impl Into<String>, body: impl Into<Bytes>) -> Self {
        Self { method, body: Some(("application/json", body.into())), ..Self::get(path) }
    }

    /// The same request with another header `Accept`.
    pub fn accepting(mut self, accept: &'static str) -> Self {
        self.accept = Some(accept);
        self
    }

    /// The same request, whose answer keeps its body.
    pub fn keeping_body(mut self) -> Self {
        self.keep_body = true;
        self
    }
}

/// An answer.
#[derive(Debug)]
pub struct Answer {
    /// The HTTP status.
    pub status: StatusCode,
    /// The length of the body in bytes.
    pub bytes: u64,
    /// The body, if the call keeps it or the status is an error.
    pub body: Bytes,
    /// The time until the first bytes of the body, or until the head if the body is empty.
    pub first_byte: Duration,
    /// The time until the end of the body.
    pub total: Duration,
}

impl Answer {
    /// Returns this answer if its status is a success or one of `allowed`.
    ///
    /// # Errors
    /// [`Error::Refused`] for any other status.
    pub fn expected(self, call: &Call, allowed: &[u16]) -> Result<Self, Error> {
        if self.status.is_success() || allowed.contains(&self.status.as_u16()) {
            return Ok(self);
        }
        Err(Error::Refused {
            what: format!("{} {}", call.method, call.path),
            status: self.status,
            body: String::from_utf8_lossy(&self.body[..self.body.len().min(500)]).into_owned(),
        })
    }
}

/// Opens connections to one server.
#[derive(Clone)]
pub struct Connector {
    target: Target,
    tls: Option<tokio_rustls::TlsConnector>,
    protocol: Protocol,
    authorization: Option<HeaderValue>,
    authority: String,
    /// How many bytes the server may send on one HTTP/2 stream, and on one connection, before the harness has read
    /// them.
    windows: (u32, u32),
}

impl Connector {
    /// Prepares TLS and credentials.
    ///
    /// # Errors
    /// Fails if the certificates of the kubeconfig cannot be used.
    pub fn new(target: Target, protocol: Protocol) -> Result<Self, Error> {
        let tls = if target.tls { Some(tokio_rustls::TlsConnector::from(tls(&target, protocol)?)) } else { None };
        let authorization = match &target.token {
            Some(token) => Some(
                HeaderValue::try_from(format!("Bearer {token}"))
                    .map_err(|error| Error::Credentials(error.to_string()))?,
            ),
            None => None,
        };
        let authority = if target.host.contains(':') {
            format!("[{}]:{}", target.host, target.port)
        } else {
            format!("{}:{}", target.host, target.port)
        };
        let windows = (limits::STREAM_WINDOW_BYTES, limits::CONNECTION_WINDOW_BYTES);
        Ok(Self { target, tls, protocol, authorization, authority, windows })
    }

    /// The version of HTTP of all connections.
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Returns a connector to the same server with smaller HTTP/2 windows.
    pub fn with_window(&self, bytes: u32) -> Self {
        Self { windows: (bytes, bytes), ..self.clone() }
    }

    /// Returns a connector to the same server with another version of HTTP.
    ///
    /// # Errors
    /// As for [`Connector::new`].
    pub fn with_protocol(&self, protocol: Protocol) -> Result<Self, Error> {
        Self::new(self.target.clone(), protocol)
    }

    /// Opens a connection.
    ///
    /// # Errors
    /// Fails if the server does not accept the connection.
    pub async fn open(self: &Arc<Self>) -> Result<Client, Error> {
        let stream = TcpStream::connect((self.target.host.as_str(), self.target.port)).await?;
        stream.set_nodelay(true)?;
        let sender = match &self.tls {
            Some(tls) => {
                let name = ServerName::try_from(self.target.host.clone())
                    .map_err(|error| Error::Credentials(error.to_string()))?;
                self.handshake(TokioIo::new(tls.connect(name, stream).await?)).await?
            }
            None => self.handshake(TokioIo::new(stream)).await?,
        };
        Ok(Client { sender, connector: self.clone() })
    }

    /// Opens a connection and changes its protocol by a POST. The connector must use HTTP/1.1.
    ///
    /// # Errors
    /// Fails if the server does not change to this protocol.
    pub async fn upgrade(self: &Arc<Self>, path: &str, protocol: &'static str) -> Result<TokioIo<Upgraded>, Error> {
        let call = Call { method: Method::POST, ..Call::get(path) };
        let mut client = self.open().await?;
        let mut request = self.request(&call)?;
        request.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
        request.headers_mut().insert(header::UPGRADE, HeaderValue::from_static(protocol));
        let response = client.send_request(request).await?;
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            let status = response.status();
            let body = response.into_body().collect().await?.to_bytes();
            let body = String::from_utf8_lossy(&body[..body.len().min(500)]).into_owned();
            return Err(Error::Refused { what: format!("POST {path}"), status, body });
        }
        Ok(TokioIo::new(hyper::upgrade::on(response).await?))
    }

    async fn handshake<T>(&self, io: T) -> Result<Sender, Error>
    where
        T: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
    {
        // The task of a connection ends together with it. Requests report the error themselves.
        Ok(match self.protocol {
            Protocol::Http1 => {
                let (sender, connection) = http1::handshake(io).await?;
                tokio::spawn(connection.with_upgrades());
                Sender::Http1(sender)
            }
            Protocol::Http2 => {
                let (sender, connection) = http2::Builder::new(TokioExecutor::new())
                    .initial_stream_window_size(self.windows.0)
                    .initial_connection_window_size(self.windows.1)
                    .handshake(io)
                    .await?;
                tokio::spawn(connection);
                Sender::Http2(sender)
            }
        })
    }

    fn request(&self, call: &Call) -> Result<Request<Full<Bytes>>, Error> {
        let mut request = Request::builder().method(call.method.clone());
        request = match self.protocol {
            Protocol::Http1 => request.uri(&call.path).header(header::HOST, &self.authority),
            Protocol::Http2 => {
                let scheme = if self.target.tls { "https" } else { "http" };
                request.uri(format!("{scheme}://{}{}", self.authority, call.path))
            }
        };
        request = request
            .header(header::USER_AGENT, "loadtest/1")
            .header(header::ACCEPT, call.accept.unwrap_or("application/json"));
        if let Some(authorization) = &self.authorization {
            request = request.header(header::AUTHORIZATION, authorization);
        }
        let body = match &call.body {
            Some((media_type, bytes)) => {
                request = request.header(header::CONTENT_TYPE, *media_type);
                Full::new(bytes.clone())
            }
            None => Full::default(),
        };
        Ok(request.body(body)?)
    }
}

fn tls(target: &Target, protocol: Protocol) -> Result<Arc<rustls::ClientConfig>, Error> {
    let bad = |error: &dyn std::fmt::Display| Error::Credentials(error.to_string());
    let mut roots = rustls::RootCertStore::empty();
    let ca = target.ca.as_deref().ok_or_else(|| bad(&"the kubeconfig names no certificate authority"))?;
    for certificate in CertificateDer::pem_slice_iter(ca) {
        roots.add(certificate.map_err(|error| bad(&error))?).map_err(|error| bad(&error))?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| bad(&error))?
        .with_root_certificates(roots);
    let mut config = match &target.identity {
        Some((chain, key)) => {
            let chain: Vec<_> =
                CertificateDer::pem_slice_iter(chain).collect::<Result<_, _>>().map_err(|error| bad(&error))?;
            let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| bad(&error))?;
            builder.with_client_auth_cert(chain, key).map_err(|error| bad(&error))?
        }
        None => builder.with_no_client_auth(),
    };
    config.alpn_protocols = vec![match protocol {
        Protocol::Http1 => b"http/1.1".to_vec(),
        Protocol::Http2 => b"h2".to_vec(),
    }];
    Ok(Arc::new(config))
}

enum Sender {
    Http1(http1::SendRequest<Full<Bytes>>),
    Http2(http2::SendRequest<Full<Bytes>>),
}

/// A client. With HTTP/1.1 it has its own connection, with HTTP/2 it shares one.
pub struct Client {
    sender: Sender,
    connector: Arc<Connector>,
}

impl Client {
    /// Returns another client: on the same connection with HTTP/2, on a new one with HTTP/1.1.
    pub async fn another(&self) -> Result<Self, Error> {
        match &self.sender {
            Sender::Http2(sender) => {
                Ok(Self { sender: Sender::Http2(sender.clone()), connector: self.connector.clone() })
            }
            Sender::Http1(_) => self.connector.open().await,
        }
    }

    /// Sends a request and waits for the head of the answer.
    pub async fn send(&mut self, call: &Call) -> Result<Response<Incoming>, Error> {
        let request = self.connector.request(call)?;
        self.send_request(request).await
    }

    async fn send_request(&mut self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, Error> {
        Ok(match &mut self.sender {
            Sender::Http1(sender) => {
                sender.ready().await?;
                sender.send_request(request).await?
            }
            Sender::Http2(sender) => {
                sender.ready().await?;
                sender.send_request(request).await?
            }
        })
    }

    /// Sends a request and reads the whole answer.
    ///
    /// # Errors
    /// Fails if no complete answer comes in time. Any status is an answer.
    pub async fn call(&mut self, call: &Call) -> Result<Answer, Error> {
        let limit = Duration::from_secs(limits::REQUEST_SECONDS_MAX);
        tokio::time::timeout(limit, self.exchange(call)).await.map_err(|_| Error::Timeout)?
    }

    async fn exchange(&mut self, call: &Call) -> Result<Answer, Error> {
        let start = Instant::now();
        let response = self.send(call).await?;
        let status = response.status();
        let mut keep = call.keep_body || !status.is_success();
        let mut body = response.into_body();
        let (mut first_byte, mut bytes, mut kept) = (None, 0, BytesMut::new());
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame?.into_data() else { continue };
            first_byte.get_or_insert_with(|| start.elapsed());
            bytes += data.len() as u64;
            // Keeps only the beginning of a longer body, without gaps.
            keep &= kept.len() + data.len() <= limits::KEPT_BODY_BYTES_MAX;
            if keep {
                kept.extend_from_slice(&data);
            }
        }
        let total = start.elapsed();
        Ok(Answer { status, bytes, body: kept.freeze(), first_byte: first_byte.unwrap_or(total), total })
    }

    /// Like [`Client::call`], for a request that the run depends on.
    ///
    /// # Errors
    /// Fails also if the status is neither a success nor one of `allowed`.
    pub async fn must(&mut self, call: &Call, allowed: &[u16]) -> Result<Answer, Error> {
        self.call(call).await?.expected(call, allowed)
    }
}
