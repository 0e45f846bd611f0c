//! The HTTP client of scenarios. It sends each request on a new connection, to a random server.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use rand::seq::IndexedRandom as _;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};

use crate::support::PATIENCE;

/// How long the client waits for bytes of the server.
const SILENCE: Duration = PATIENCE;
const READ_BYTES: usize = 65_536;

/// The servers that the requests are sent to.
#[derive(Clone)]
pub struct Servers {
    pub addresses: Vec<SocketAddr>,
    pub administrator: Arc<ClientConfig>,
    pub anonymous: Arc<ClientConfig>,
}

/// A request.
pub struct Request<'a> {
    pub method: &'a str,
    pub path: &'a str,
    pub headers: &'a [(String, String)],
    pub body: Option<&'a [u8]>,
    pub is_anonymous: bool,
    /// For how long a stream is read. With `None`, a complete answer is read.
    pub stream: Option<Duration>,
    /// Where the client reports that the head of a stream's answer came.
    pub begun: Option<Sender<()>>,
}

/// An answer. Its status is 0 if none came.
#[derive(Default)]
pub struct Answer {
    pub status: i64,
    /// Names are in lower case. Values of the same name are joined.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|header| header.0.eq_ignore_ascii_case(name)).map(|header| &*header.1)
    }
}

impl Servers {
    /// Sends a request and reads its answer.
    pub fn call(&self, request: &Request<'_>) -> Answer {
        self.exchange(request).unwrap_or_else(|error| Answer {
            body: format!("{{\"connection\": {:?}}}", error.to_string()).into_bytes(),
            ..Answer::default()
        })
    }

    /// Sends a request with the administrator's credentials, with a JSON body if one is given.
    pub fn simple(&self, method: &str, path: &str, body: Option<&str>) -> Answer {
        let headers = ["Content-Type", "Accept"].map(|name| (name.to_owned(), "application/json".to_owned()));
        let body = body.map(str::as_bytes);
        self.call(&Request { method, path, headers: &headers, body, is_anonymous: false, stream: None, begun: None })
    }

    fn exchange(&self, request: &Request<'_>) -> io::Result<Answer> {
        let address = self.addresses.choose(&mut rand::rng()).copied().ok_or(io::ErrorKind::AddrNotAvailable)?;
        let socket = TcpStream::connect_timeout(&address, SILENCE)?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(SILENCE))?;
        socket.set_write_timeout(Some(SILENCE))?;
        let config = if request.is_anonymous { &self.anonymous } else { &self.administrator };
        let session = ClientConnection::new(Arc::clone(config), ServerName::from(address.ip()));
        let mut stream = Stream { tls: StreamOwned::new(session.map_err(io::Error::other)?, socket), came: Vec::new() };
        let sent = stream.send(&head(request, address)).and_then(|()| stream.send(request.body.unwrap_or_default()));
        // A server may answer and close the connection before it has read the whole body.
        stream.read(request).map_err(|error| sent.err().unwrap_or(error))
    }
}

fn head(request: &Request<'_>, address: SocketAddr) -> Vec<u8> {
    let has = |name: &str| request.headers.iter().any(|(own, _)| own.eq_ignore_ascii_case(name));
    let mut head = format!("{} {} HTTP/1.1\r\n", request.method, request.path);
    if !has("host") {
        head.push_str(&format!("Host: {address}\r\n"));
    }
    if !has("accept-encoding") {
        head.push_str("Accept-Encoding: identity\r\n");
    }
    if !has("content-length") && !has("transfer-encoding") {
        let length = match request.body {
            Some(body) => Some(body.len()),
            None => matches!(request.method, "PATCH" | "POST" | "PUT").then_some(0),
        };
        if let Some(length) = length {
            head.push_str(&format!("Content-Length: {length}\r\n"));
        }
    }
    for (name, value) in request.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    latin(&head)
}

/// Returns a byte for each character, as in headers. Characters above U+00FF become `?`.
pub fn latin(text: &str) -> Vec<u8> {
    text.chars().map(|each| u8::try_from(each).unwrap_or(b'?')).collect()
}

struct Stream {
    tls: StreamOwned<ClientConnection, TcpStream>,
    /// Bytes that were received and not used yet.
    came: Vec<u8>,
}

impl Stream {
    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.tls.write_all(bytes)?;
        self.tls.flush()
    }

    /// Reads more bytes. Returns `false` at the end of the connection.
    fn fill(&mut self) -> io::Result<bool> {
        let mut bytes = vec![0; READ_BYTES];
        let length = match self.tls.read(&mut bytes) {
            // Some servers close the connection without TLS's close_notify.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => 0,
            other => other?,
        };
        self.came.extend_from_slice(&bytes[..length]);
        Ok(length > 0)
    }

    fn read(&mut self, request: &Request<'_>) -> io::Result<Answer> {
        let mut answer = self.read_head()?;
        while answer.status == 100 {
            answer = self.read_head()?;
        }
        let is_chunked = answer.header("transfer-encoding").is_some_and(|coding| coding.contains("chunked"));
        let length = answer.header("content-length").and_then(|length| length.parse::<usize>().ok());
        if request.method == "HEAD" || matches!(answer.status, 100..=199 | 204 | 304) {
            return Ok(answer);
        }
        if let Some(begun) = &request.begun {
            let _ = begun.send(());
        }
        if let Some(wait) = request.stream {
            self.tls.sock.set_read_timeout(Some(wait))?;
            let end = Instant::now() + wait;
            let is_whole = |came: &[u8]| match (is_chunked, length) {
                (true, _) => chunks(came).1,
                (false, Some(length)) => came.len() >= length,
                (false, None) => false,
            };
            // A stream's answer consists of the bytes that came, whether it ends properly or breaks.
            while Instant::now() < end && !is_whole(&self.came) && self.fill().unwrap_or(false) {}
            answer.body = if is_chunked { chunks(&self.came).0 } else { std::mem::take(&mut self.came) };
            return Ok(answer);
        }
        loop {
            let (body, is_whole) = match (is_chunked, length) {
                (true, _) => chunks(&self.came),
                (false, Some(length)) if self.came.len() >= length => (self.came[..length].to_vec(), true),
                (false, _) => (Vec::new(), false),
            };
            if is_whole {
                answer.body = body;
                break;
            }
            if !self.fill()? {
                if is_chunked || length.is_some() {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                answer.body = std::mem::take(&mut self.came);
                break;
            }
        }
        if answer.header("content-encoding") == Some("gzip") {
            let mut plain = Vec::new();
            flate2::read::MultiGzDecoder::new(&*answer.body).read_to_end(&mut plain)?;
            answer.body = plain;
        }
        Ok(answer)
    }

    fn read_head(&mut self) -> io::Result<Answer> {
        let end = loop {
            if let Some(end) = self.came.windows(4).position(|four| four == b"\r\n\r\n") {
                break end;
            }
            if !self.fill()? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        };
        let rest = self.came.split_off(end + 4);
        let head = std::mem::replace(&mut self.came, rest);
        let head: String = head.iter().copied().map(char::from).collect();
        let mut lines = head.split("\r\n");
        let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok());
        let status = status.ok_or_else(|| io::Error::other("not a status line"))?;
        let mut headers: Vec<(String, String)> = Vec::new();
        for (name, value) in lines.filter_map(|line| line.split_once(':')) {
            let (name, value) = (name.to_ascii_lowercase(), value.trim());
            match headers.iter_mut().find(|header| header.0 == name) {
                Some((_, present)) => *present = format!("{present}, {value}"),
                None => headers.push((name, value.to_owned())),
            }
        }
        Ok(Answer { status, headers, body: Vec::new() })
    }
}

/// Returns the contents of the chunks that came, and whether the last chunk is among them.
fn chunks(came: &[u8]) -> (Vec<u8>, bool) {
    let (mut out, mut rest) = (Vec::new(), came);
    while let Some(end) = rest.windows(2).position(|two| two == b"\r\n") {
        let digits = rest[..end].split(|byte| *byte == b';').next().unwrap_or_default();
        let length = std::str::from_utf8(digits).ok().and_then(|text| usize::from_str_radix(text.trim(), 16).ok());
        let Some(length) = length else { break };
        if length == 0 {
            return (out, true);
        }
        let begin = end + 2;
        out.extend_from_slice(&rest[begin.min(rest.len())..(begin + length).min(rest.len())]);
        rest = rest.get(begin + length + 2..).unwrap_or_default();
    }
    (out, false)
}
