//! A blocking client for HTTP/1.1 over TLS. Tests can also carry out each step of a request themselves.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use serde_json::Value;

/// How long a read may take, even on a busy machine.
const READ_TIMEOUT: Duration = Duration::from_secs(180);
const READ_BYTES: usize = 16_384;
/// How long a server waits for the end of a TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
const HANDSHAKES_MAX: usize = 5;

/// One connection, which sends one request after the other.
pub struct Connection {
    address: SocketAddr,
    config: Arc<ClientConfig>,
    timeout: Duration,
    stream: StreamOwned<ClientConnection, TcpStream>,
    /// Bytes that were received and not used yet.
    buffered: Vec<u8>,
}

/// A complete answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    /// Names are in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error} in {}", self.text()))
    }

    /// Checks the status, and returns the body as JSON.
    pub fn expect(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.text());
        self.json()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|header| header.0 == name).map(|header| &*header.1)
    }
}

/// Repeats a request while the answer is 503 or 504, and returns the last answer. In a cluster of several members, a
/// group may have no leader for a moment. The request must be safe to repeat, since its outcome may be unknown.
pub fn patiently(mut request: impl FnMut() -> Answer) -> Answer {
    let began = Instant::now();
    loop {
        let answer = request();
        if !matches!(answer.status, 503 | 504) || began.elapsed() > READ_TIMEOUT {
            return answer;
        }
        thread::sleep(Duration::from_millis(50));
    }
}

impl Connection {
    /// Connects, including the TLS handshake. A busy machine may take longer for it than the server waits. Only then
    /// another one is tried.
    pub fn open(address: SocketAddr, config: &Arc<ClientConfig>) -> io::Result<Connection> {
        use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
        let mut handshakes = 1;
        loop {
            let began = Instant::now();
            let opened = Connection::open_within(address, config, READ_TIMEOUT);
            let is_cut = opened.as_ref().err().is_some_and(|error| {
                matches!(error.kind(), UnexpectedEof | ConnectionReset | ConnectionAborted | BrokenPipe)
            });
            if !is_cut || began.elapsed() < HANDSHAKE_TIMEOUT || handshakes == HANDSHAKES_MAX {
                return opened;
            }
            handshakes += 1;
        }
    }

    /// Connects, including the TLS handshake. `timeout` bounds the connection attempt and each later read.
    pub fn open_within(address: SocketAddr, config: &Arc<ClientConfig>, timeout: Duration) -> io::Result<Connection> {
        let socket = TcpStream::connect_timeout(&address, timeout)?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(timeout))?;
        let session = ClientConnection::new(Arc::clone(config), ServerName::from(address.ip()));
        let mut stream = StreamOwned::new(session.map_err(io::Error::other)?, socket);
        while stream.conn.is_handshaking() {
            stream.conn.complete_io(&mut stream.sock)?;
        }
        Ok(Connection { address, config: Arc::clone(config), timeout, stream, buffered: Vec::new() })
    }

    /// Sends a request and reads its answer. If the answer closes the connection, tries to open a new one.
    pub fn call(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> io::Result<Answer> {
        let length = body.len();
        let mut head = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n");
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        // A server may answer and close the connection before it has read the whole body.
        let sent = self.send(format!("{head}\r\n").as_bytes()).and_then(|()| self.send(body));
        let answer = self.read_answer().map_err(|error| sent.err().unwrap_or(error))?;
        if answer.header("connection") == Some("close")
            && let Ok(next) = Connection::open_within(self.address, &self.config, self.timeout)
        {
            *self = next;
        }
        Ok(answer)
    }

    /// Returns the protocol that the handshake chose by ALPN.
    pub fn protocol(&self) -> Option<&[u8]> {
        self.stream.conn.alpn_protocol()
    }

    /// Sets how long a write may block before it fails. TLS may also read during a write, so reads get the same bound.
    pub fn limit_writes(&self, timeout: Duration) {
        self.stream.sock.set_write_timeout(Some(timeout)).expect("a socket");
        self.stream.sock.set_read_timeout(Some(timeout)).expect("a socket");
    }

    /// Resets the connection, and discards bytes that were not sent yet.
    pub fn abort(self) {
        socket2::SockRef::from(&self.stream.sock).set_linger(Some(Duration::ZERO)).expect("a socket");
    }

    /// Sends bytes unchanged.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)?;
        self.stream.flush()
    }

    /// Sends a request for another protocol. Bytes after the head of the answer stay in the buffer.
    pub fn upgrade(&mut self, method: &str, path: &str, headers: &[(&str, &str)]) -> io::Result<Answer> {
        let mut head = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n");
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        self.send(format!("{head}\r\n").as_bytes())?;
        self.read_head()
    }

    /// Reads exactly `length` bytes.
    pub fn read_bytes(&mut self, length: usize) -> io::Result<Vec<u8>> {
        self.take(length)
    }

    /// Reads a complete answer.
    pub fn read_answer(&mut self) -> io::Result<Answer> {
        let mut answer = self.read_head()?;
        if answer.header("transfer-encoding") == Some("chunked") {
            while let Some(chunk) = self.read_chunk()? {
                answer.body.extend(chunk);
            }
        } else if let Some(length) = answer.header("content-length") {
            let length = length.parse().map_err(io::Error::other)?;
            answer.body = self.take(length)?;
        }
        Ok(answer)
    }

    fn read_head(&mut self) -> io::Result<Answer> {
        let status_line = self.read_line()?;
        let status = status_line.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.ok_or_else(|| io::Error::other(format!("not a status line: {status_line}")))?;
        let mut headers = Vec::new();
        loop {
            let line = self.read_line()?;
            let Some((name, value)) = line.split_once(':') else { break };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        Ok(Answer { status, headers, body: Vec::new() })
    }

    /// Reads one chunk. If a timeout interrupts the call, the next call continues without loss.
    fn read_chunk(&mut self) -> io::Result<Option<Vec<u8>>> {
        let line = self.await_line()?;
        let length = usize::from_str_radix(&String::from_utf8_lossy(&self.buffered[..line]), 16);
        let (begin, length) = (line + 2, length.map_err(io::Error::other)?);
        while self.buffered.len() < begin + length + 2 {
            self.fill()?;
        }
        let chunk = self.take(begin + length + 2)?;
        Ok(Some(chunk[begin..begin + length].to_vec()).filter(|chunk| !chunk.is_empty()))
    }

    /// Waits until a whole line is in the buffer, and returns its length.
    fn await_line(&mut self) -> io::Result<usize> {
        loop {
            if let Some(end) = self.buffered.windows(2).position(|two| two == b"\r\n") {
                return Ok(end);
            }
            self.fill()?;
        }
    }

    fn read_line(&mut self) -> io::Result<String> {
        let end = self.await_line()?;
        let line = self.take(end + 2)?;
        Ok(String::from_utf8_lossy(&line[..end]).into_owned())
    }

    fn take(&mut self, length: usize) -> io::Result<Vec<u8>> {
        while self.buffered.len() < length {
            self.fill()?;
        }
        let rest = self.buffered.split_off(length);
        Ok(std::mem::replace(&mut self.buffered, rest))
    }

    fn fill(&mut self) -> io::Result<()> {
        let mut bytes = [0; READ_BYTES];
        let length = self.stream.read(&mut bytes)?;
        if length == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.buffered.extend_from_slice(&bytes[..length]);
        Ok(())
    }

    /// Sends a GET. Panics if no answer comes.
    pub fn get(&mut self, path: &str) -> Answer {
        self.request("GET", path, "", b"")
    }

    /// Sends a DELETE. Panics if no answer comes.
    pub fn delete(&mut self, path: &str) -> Answer {
        self.request("DELETE", path, "", b"")
    }

    /// Sends a POST with JSON. Panics if no answer comes.
    pub fn post(&mut self, path: &str, object: &Value) -> Answer {
        self.request("POST", path, "application/json", object.to_string().as_bytes())
    }

    /// Creates an object in a cluster of several members, and returns it. On a busy machine a group may have no leader
    /// for a moment. A request that was refused for that reason, or whose outcome is unknown, is repeated.
    pub fn create(&mut self, collection: &str, object: &Value) -> Value {
        let mut requests = 0;
        let answer = patiently(|| {
            requests += 1;
            self.post(collection, object)
        });
        // The object exists already, or has what only one object can have.
        if matches!(answer.status, 409 | 422) && requests > 1 {
            let name = object["metadata"]["name"].as_str().expect("a name");
            return self.read(&format!("{collection}/{name}"));
        }
        answer.expect(201)
    }

    /// Reads an object or a list in a cluster of several members. Repeats the request while no member can answer it.
    pub fn read(&mut self, path: &str) -> Value {
        patiently(|| self.get(path)).expect(200)
    }

    /// Updates an object in a cluster of several members, and returns it. Repeats the request while no member can
    /// answer it. After an attempt whose outcome is unknown, a conflict means that it has succeeded. The same content
    /// with the present revision changes nothing then, and its answer is the object.
    pub fn update(&mut self, path: &str, object: &Value) -> Value {
        let (mut object, mut is_unknown) = (object.clone(), false);
        let answer = patiently(|| {
            let mut answer = self.put(path, &object);
            if answer.status == 409 && is_unknown {
                object["metadata"]["resourceVersion"] = self.read(path)["metadata"]["resourceVersion"].clone();
                answer = self.put(path, &object);
            }
            is_unknown |= matches!(answer.status, 503 | 504);
            answer
        });
        answer.expect(200)
    }

    /// Deletes an object in a cluster of several members. Repeats the request while no member can answer it. Only
    /// after an attempt whose outcome is unknown, the object may be gone already.
    pub fn remove(&mut self, path: &str) {
        let mut requests = 0;
        let answer = patiently(|| {
            requests += 1;
            self.delete(path)
        });
        assert!(answer.status == 200 || answer.status == 404 && requests > 1, "{}: {}", answer.status, answer.text());
    }

    /// Sends a PUT with JSON. Panics if no answer comes.
    pub fn put(&mut self, path: &str, object: &Value) -> Answer {
        self.request("PUT", path, "application/json", object.to_string().as_bytes())
    }

    /// Sends a request with a body of this content type. Panics if no answer comes.
    pub fn request(&mut self, method: &str, path: &str, content_type: &str, body: &[u8]) -> Answer {
        let headers: &[_] = if content_type.is_empty() { &[] } else { &[("Content-Type", content_type)] };
        self.call(method, path, headers, body).unwrap_or_else(|error| panic!("{method} {path}: {error}"))
    }

    /// Starts a watch, which takes the connection over. The inner `Err` contains an answer that refuses the watch.
    pub fn watch(mut self, path: &str) -> io::Result<Result<Watch, Answer>> {
        self.send(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes())?;
        let head = self.read_head()?;
        if head.status == 200 {
            return Ok(Ok(Watch { connection: self, text: Vec::new() }));
        }
        let length = head.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
        let body = self.take(length)?;
        Ok(Err(Answer { body, ..head }))
    }
}

/// The events of a watch.
pub struct Watch {
    connection: Connection,
    text: Vec<u8>,
}

impl Watch {
    /// Reads until the stream ends properly.
    ///
    /// # Errors
    /// Fails if the connection breaks before that.
    pub fn end(&mut self) -> io::Result<()> {
        while self.connection.read_chunk()?.is_some() {}
        Ok(())
    }

    /// Returns the next event.
    ///
    /// # Errors
    /// Fails once the connection or the watch has ended.
    pub fn next(&mut self) -> io::Result<Value> {
        loop {
            if let Some(end) = self.text.iter().position(|byte| *byte == b'\n') {
                let rest = self.text.split_off(end + 1);
                let line = std::mem::replace(&mut self.text, rest);
                return serde_json::from_slice(&line).map_err(io::Error::other);
            }
            let chunk = self.connection.read_chunk()?.ok_or(io::ErrorKind::UnexpectedEof)?;
            self.text.extend(chunk);
        }
    }
}
