//! A webhook: an HTTPS server that answers as the test decides, and records its requests.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{CertificateParams, KeyPair};
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, ServerConfig, ServerConnection, SignatureScheme, StreamOwned};
use serde_json::{Value, json};

/// How long a webhook that hangs does not answer: longer than any test waits for it.
const HANG: Duration = Duration::from_secs(600);

/// A webhook's answer to a request.
pub enum Reply {
    /// 200 with this document.
    Document(Value),
    /// These bytes, which contain head and body.
    Bytes(Vec<u8>),
    /// No answer for [`HANG`].
    Hang,
    /// Closes the connection without an answer.
    Close,
    /// A body of about this many bytes, without a stated length. The connection stays open: the body has no end.
    Endless(usize),
}

impl Reply {
    /// Returns a complete answer.
    pub fn of(status: &str, headers: &str, body: &str) -> Self {
        let length = body.len();
        Self::Bytes(format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\n{headers}\r\n{body}").into_bytes())
    }
}

/// A request that a webhook received: the path with its query, and the review.
pub type Asked = (String, Value);

/// The head of a request that a webhook received, and the caller's certificate.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The first line and the headers.
    pub head: String,
    /// The client certificate in DER, if the caller showed one.
    pub certificate: Option<Vec<u8>>,
}

impl Caller {
    /// Returns all values of a header.
    pub fn header(&self, name: &str) -> Vec<&str> {
        let pairs = self.head.lines().filter_map(|line| line.split_once(':'));
        pairs.filter(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim()).collect()
    }
}

/// A running webhook. It ends with the test program.
pub struct Webhook {
    address: SocketAddr,
    bundle: String,
    seen: Arc<Seen>,
}

/// The requests that a webhook has received.
#[derive(Default)]
struct Seen {
    asked: Mutex<Vec<Asked>>,
    callers: Mutex<Vec<Caller>>,
}

/// Requests a client certificate, and accepts any or none.
#[derive(Debug)]
struct AnyClient(WebPkiSupportedAlgorithms);

impl ClientCertVerifier for AnyClient {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.0)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.0)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }
}

impl Webhook {
    /// Starts a webhook whose certificate is for 127.0.0.1.
    pub fn start(answer: impl Fn(&Value) -> Reply + Send + Sync + 'static) -> Self {
        Self::start_as("127.0.0.1", |_| {}, answer)
    }

    /// Starts a webhook whose certificate is for this name. `change` may adapt the certificate.
    pub fn start_as(
        name: &str,
        change: impl FnOnce(&mut CertificateParams),
        answer: impl Fn(&Value) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(vec![name.to_owned()]).expect("a name");
        change(&mut params);
        let certificate = params.self_signed(&key).expect("a certificate");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let clients = AnyClient(provider.signature_verification_algorithms);
        let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
        let config = config.expect("TLS").with_client_cert_verifier(Arc::new(clients));
        let config = Arc::new(config.with_single_cert(vec![certificate.der().clone()], key).expect("TLS"));
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let (remembered, answer) = (Arc::<Seen>::default(), Arc::new(answer));
        let seen = Arc::clone(&remembered);
        thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                let (config, seen, answer) = (Arc::clone(&config), Arc::clone(&seen), Arc::clone(&answer));
                thread::spawn(move || serve(socket, config, &seen, &*answer));
            }
        });
        Self { address, bundle: STANDARD.encode(certificate.pem()), seen: remembered }
    }

    /// Returns the `clientConfig` that leads to this webhook.
    pub fn config(&self, path: &str) -> Value {
        json!({"url": format!("https://127.0.0.1:{}{path}", self.port()), "caBundle": self.bundle})
    }

    /// Returns the webhook's certificate, as `caBundle` contains it.
    pub fn bundle(&self) -> &str {
        &self.bundle
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Returns the reviews received so far, in order.
    pub fn asked(&self) -> Vec<Asked> {
        self.seen.asked.lock().expect("no test panics while it holds this").clone()
    }

    /// Returns the heads of the requests received so far, in the same order.
    pub fn callers(&self) -> Vec<Caller> {
        self.seen.callers.lock().expect("no test panics while it holds this").clone()
    }
}

fn serve(socket: TcpStream, config: Arc<ServerConfig>, seen: &Seen, answer: &(dyn Fn(&Value) -> Reply + Send + Sync)) {
    let Ok(session) = ServerConnection::new(config) else { return };
    let mut stream = StreamOwned::new(session, socket);
    while let Some((head, path, body)) = read_request(&mut stream) {
        let review = serde_json::from_slice(&body).unwrap_or(Value::Null);
        let certificate = stream.conn.peer_certificates().and_then(|chain| chain.first()).map(|first| first.to_vec());
        seen.callers.lock().expect("no test panics while it holds this").push(Caller { head, certificate });
        seen.asked.lock().expect("no test panics while it holds this").push((path, review.clone()));
        let written = match answer(&review) {
            Reply::Document(document) => {
                let body = document.to_string();
                let head =
                    format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}", body.len());
                stream.write_all(format!("{head}\r\n\r\n{body}").as_bytes())
            }
            Reply::Bytes(bytes) => stream.write_all(&bytes),
            Reply::Hang => {
                thread::sleep(HANG);
                return;
            }
            Reply::Close => {
                let _ = stream.sock.shutdown(Shutdown::Both);
                return;
            }
            Reply::Endless(bytes) => {
                let chunk = [b' '; 65_536];
                let head = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n");
                (0..bytes / chunk.len()).try_fold((), |(), _| stream.write_all(&chunk)).and(head)
            }
        };
        if written.and_then(|()| stream.flush()).is_err() {
            return;
        }
    }
}

/// Reads the next request: its head, path and body. Returns `None` if no request comes.
fn read_request(stream: &mut StreamOwned<ServerConnection, TcpStream>) -> Option<(String, String, Vec<u8>)> {
    let (mut bytes, mut buffer) = (Vec::new(), [0; 16_384]);
    let head_end = loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return None,
            Ok(length) => bytes.extend_from_slice(&buffer[..length]),
        }
    };
    let head = String::from_utf8_lossy(&bytes[..head_end]).into_owned();
    let path = head.split(' ').nth(1)?.to_owned();
    let mut lengths = head.lines().filter_map(|line| line.split_once(':'));
    let length = lengths.find(|(name, _)| name.eq_ignore_ascii_case("content-length"))?.1.trim().parse().ok()?;
    let mut body = bytes.split_off(head_end);
    while body.len() < length {
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return None,
            Ok(read) => body.extend_from_slice(&buffer[..read]),
        }
    }
    Some((head, path, body))
}
