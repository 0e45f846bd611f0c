//! An HTTPS server that Flotilla connects to. The test decides its answers.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

type Tls = StreamOwned<ServerConnection, TcpStream>;

/// A request, and its connection.
pub struct Exchange {
    /// The first line and the headers.
    pub head: String,
    stream: Tls,
    /// Bytes after the head that have not been read yet.
    rest: Vec<u8>,
}

impl Exchange {
    /// Returns the method and target of the request.
    pub fn line(&self) -> &str {
        self.head.lines().next().unwrap_or_default().trim_end_matches(" HTTP/1.1")
    }

    /// Returns the value of a header, by its name in any case. Returns `None` if the request does not have it.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut pairs = self.head.lines().filter_map(|line| line.split_once(':'));
        pairs.find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }

    /// Sends bytes.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)?;
        self.stream.flush()
    }

    /// Sends a complete answer.
    pub fn answer(&mut self, status: &str, headers: &str, body: &str) -> io::Result<()> {
        let length = body.len();
        self.send(format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\n{headers}\r\n{body}").as_bytes())
    }

    /// Agrees to switch to another protocol.
    pub fn switch(&mut self, headers: &str) -> io::Result<()> {
        self.send(format!("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n{headers}\r\n").as_bytes())
    }

    /// Reads the bytes that have arrived, and waits for some if none have.
    pub fn read_some(&mut self) -> io::Result<Vec<u8>> {
        if !self.rest.is_empty() {
            return Ok(std::mem::take(&mut self.rest));
        }
        let mut buffer = [0; 16_384];
        let length = self.stream.read(&mut buffer)?;
        if length == 0 { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(buffer[..length].to_vec()) }
    }

    /// Reads exactly `length` bytes.
    pub fn read(&mut self, length: usize) -> io::Result<Vec<u8>> {
        let mut read = Vec::new();
        while read.len() < length {
            read.extend(self.read_some()?);
        }
        self.rest = read.split_off(length);
        Ok(read)
    }

    /// Reads the body of the request, whether it has a length or is chunked.
    pub fn read_body(&mut self) -> io::Result<Vec<u8>> {
        if self.header("transfer-encoding") != Some("chunked") {
            let length = self.header("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
            return self.read(length);
        }
        let mut body = Vec::new();
        loop {
            let mut line = Vec::new();
            while !line.ends_with(b"\r\n") {
                line.extend(self.read(1)?);
            }
            let length = std::str::from_utf8(&line).ok().and_then(|text| usize::from_str_radix(text.trim(), 16).ok());
            let length = length.ok_or(io::ErrorKind::InvalidData)?;
            let chunk = self.read(length + 2)?;
            body.extend_from_slice(&chunk[..length]);
            if length == 0 {
                return Ok(body);
            }
        }
    }

    /// Reads the head of the connection's next request.
    fn next(&mut self) -> io::Result<()> {
        let mut read = Vec::new();
        loop {
            if let Some(end) = read.windows(4).position(|four| four == b"\r\n\r\n") {
                self.rest = read.split_off(end + 4);
                self.head = String::from_utf8_lossy(&read).into_owned();
                return Ok(());
            }
            read.extend(self.read_some()?);
        }
    }
}

/// A running server. It ends with the test program.
pub struct Backend {
    address: SocketAddr,
    certificate: String,
    open: Arc<AtomicUsize>,
}

impl Backend {
    /// Starts a server for 127.0.0.1. `answer` is called for each request of a connection, until it fails.
    pub fn start(answer: impl Fn(&mut Exchange) -> io::Result<()> + Send + Sync + 'static) -> Self {
        Self::start_as("127.0.0.1", answer)
    }

    /// Starts a server whose certificate is for this name.
    pub fn start_as(name: &str, answer: impl Fn(&mut Exchange) -> io::Result<()> + Send + Sync + 'static) -> Self {
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new(vec![name.to_owned()]).expect("a name");
        let certificate = params.self_signed(&key).expect("a certificate");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
        let config = config.expect("TLS").with_no_client_auth();
        let config = Arc::new(config.with_single_cert(vec![certificate.der().clone()], key).expect("TLS"));
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let (answer, open) = (Arc::new(answer), Arc::<AtomicUsize>::default());
        let counted = Arc::clone(&open);
        thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                let (config, answer, counted) = (Arc::clone(&config), Arc::clone(&answer), Arc::clone(&counted));
                thread::spawn(move || {
                    counted.fetch_add(1, Ordering::SeqCst);
                    let _ = serve(socket, config, &*answer);
                    counted.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        Self { address, certificate: certificate.pem(), open }
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Returns the server's certificate in PEM.
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    /// Returns the server's certificate as `caBundle` contains it: PEM in base64.
    pub fn bundle(&self) -> String {
        STANDARD.encode(&self.certificate)
    }

    /// Returns the number of open connections.
    pub fn open(&self) -> usize {
        self.open.load(Ordering::SeqCst)
    }
}

fn serve(
    socket: TcpStream,
    config: Arc<ServerConfig>,
    answer: &(dyn Fn(&mut Exchange) -> io::Result<()> + Send + Sync),
) -> io::Result<()> {
    let session = ServerConnection::new(config).map_err(io::Error::other)?;
    let mut exchange = Exchange { head: String::new(), stream: StreamOwned::new(session, socket), rest: Vec::new() };
    loop {
        exchange.next()?;
        answer(&mut exchange)?;
    }
}
