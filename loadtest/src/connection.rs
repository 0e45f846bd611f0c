//! Connections to the server: TCP, TLS, HTTP/2 or HTTP/1.1, without a pool or retries in between.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper::header::{self, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio::net::TcpStream;

use crate::kubeconfig::Target;
use crate::limits;

/// Why a request got no answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The network failed.
    #[error("connection: {0}")]
    Io(#[from] std::io::Error),
    /// HTTP failed.
    #[error("http: {0}")]
    Http(#[from] hyper::Error),
    /// A request could not be made.
    #[error("request: {0}")]
    Request(#[from] hyper::http::Error),
    /// The kubeconfig's certificates cannot be used.
    #[error("credentials: {0}")]
    Credentials(String),
    /// A server, or what is there before a scenario, could not be started.
    #[error("cannot start: {0}")]
    Start(String),
    /// The answer took too long.
    #[error("no answer within {} s", limits::REQUEST_SECONDS_MAX)]
    Timeout,
    /// A long answer line of a watch.
    #[error("a line of a watch is longer than {} bytes", limits::WATCH_LINE_BYTES_MAX)]
    LongLine,
    /// The server refused something that the run depends on.
    #[error("{what}: {status} {body}")]
    Refused {
        /// What was asked.
        what: String,
        /// The answer's status.
        status: StatusCode,
        /// The beginning of the answer.
        body: String,
    },
}

/// The version of HTTP to speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1: one request at a time per connection.
    Http1,
    /// HTTP/2: requests share connections.
    Http2,
}

/// A request to make.
#[derive(Debug, Clone)]
pub struct Call {
    /// Verb.
    pub method: Method,
    /// Path and query.
    pub path: String,
    /// `Accept`; JSON when `None`.
    pub accept: Option<&'static str>,
    /// Media type and bytes of the body.
    pub body: Option<(&'static str, Bytes)>,
    /// Whether the answer's body is wanted, not only its length.
    pub keep_body: bool,
}

impl Call {
    /// A GET for JSON.
    pub fn get(path: impl Into<String>) -> Self {
        Self { method: Method::GET, path: path.into(), accept: None, body: None, keep_body: false }
    }

    /// A request with a JSON body.
    pub fn with_json(method: Method, path: impl Into<String>, body: impl Into<Bytes>) -> Self {
        Self { method, body: Some(("application/json", body.into())), ..Self::get(path) }
    }

    /// The same with another media type asked for.
    pub fn accepting(mut self, accept: &'static str) -> Self {
        self.accept = Some(accept);
        self
    }

    /// The same with the body kept.
    pub fn keeping_body(mut self) -> Self {
        self.keep_body = true;
        self
    }
}

/// What came back.
#[derive(Debug)]
pub struct Answer {
    /// Status.
    pub status: StatusCode,
    /// Length of the body.
    pub bytes: u64,
    /// The body, if it was to be kept or is an error's.
    pub body: Bytes,
    /// Time until the first bytes of the body, or until the head of an empty one.
    pub first_byte: Duration,
    /// Time until the end.
    pub total: Duration,
}

impl Answer {
    /// This answer to a call, if it is a success or one of the `allowed`; anything else is an error.
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
    /// How much the server may send on one HTTP/2 stream, and on one connection, before it waits.
    windows: (u32, u32),
}

impl Connector {
    /// Prepares TLS and credentials.
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

    /// The version of HTTP that connections speak.
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// The same server, which may send less on a connection before it waits for the harness.
    pub fn with_window(&self, bytes: u32) -> Self {
        Self { windows: (bytes, bytes), ..self.clone() }
    }

    /// Opens a connection.
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

    async fn handshake<T>(&self, io: T) -> Result<Sender, Error>
    where
        T: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
    {
        // A connection's task ends with its connection; requests on it see the error themselves.
        Ok(match self.protocol {
            Protocol::Http1 => {
                let (sender, connection) = http1::handshake(io).await?;
                tokio::spawn(connection);
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

/// One client: a connection of its own with HTTP/1.1, a share of one with HTTP/2.
pub struct Client {
    sender: Sender,
    connector: Arc<Connector>,
}

impl Client {
    /// Another client: on the same connection with HTTP/2, on a new one with HTTP/1.1.
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
            // What is kept of a longer body is its beginning, without a hole.
            keep &= kept.len() + data.len() <= limits::KEPT_BODY_BYTES_MAX;
            if keep {
                kept.extend_from_slice(&data);
            }
        }
        let total = start.elapsed();
        Ok(Answer { status, bytes, body: kept.freeze(), first_byte: first_byte.unwrap_or(total), total })
    }

    /// As [`Client::call`], for requests that a run depends on: any status but success and `allowed` is an error.
    pub async fn must(&mut self, call: &Call, allowed: &[u16]) -> Result<Answer, Error> {
        self.call(call).await?.expected(call, allowed)
    }
}
