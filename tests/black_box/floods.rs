//! Clients that flood the server with requests.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};

use crate::support::{CONFIG_MAPS, DataDir, Server, config_map, config_map_path, noticed};

/// How much the resident memory may grow, in bytes, once the server has been busy.
const GROWTH_BYTES_MAX: u64 = 64 << 20;

/// A connection with just enough of HTTP/2 (RFC 9113) for a flood.
pub struct Http2(StreamOwned<ClientConnection, TcpStream>);

pub const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
const END_STREAM_AND_HEADERS: u8 = 5;

pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(payload.len() as u32).to_be_bytes()[1..]);
    out.extend_from_slice(&[kind, flags]);
    out.extend_from_slice(&stream.to_be_bytes());
    out.extend_from_slice(payload);
}

/// Returns the header block of `GET path`, without compression (RFC 7541: indexed fields, and literals without
/// indexing).
pub fn get(path: &str) -> Vec<u8> {
    let mut block = vec![0x82, 0x87];
    for (index, text) in [(0x01, "localhost"), (0x04, path)] {
        block.extend_from_slice(&[index, text.len() as u8]);
        block.extend_from_slice(text.as_bytes());
    }
    block
}

impl Http2 {
    pub fn open(server: &Server) -> Http2 {
        let credentials = server.credentials();
        let mut config = rustls::ClientConfig::clone(&credentials.administrator);
        config.alpn_protocols = vec![b"h2".to_vec()];
        let socket = TcpStream::connect(credentials.address).expect("a connection");
        socket.set_nodelay(true).expect("a socket");
        let name = ServerName::from(credentials.address.ip());
        let session = ClientConnection::new(Arc::new(config), name).expect("a session");
        let mut stream = StreamOwned::new(session, socket);
        let mut hello = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        frame(SETTINGS, 0, 0, &[], &mut hello);
        stream.write_all(&hello).expect("a handshake");
        stream.sock.set_read_timeout(Some(Duration::from_millis(1))).expect("a socket");
        Http2(stream)
    }

    /// Sends bytes, and reads nothing.
    pub fn send(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).and_then(|()| self.0.flush()).expect("the server reads");
    }

    /// Sends bytes, and reads the answers. Returns `false` once the server has closed the connection.
    fn exchange(&mut self, bytes: &[u8]) -> bool {
        if self.0.write_all(bytes).and_then(|()| self.0.flush()).is_err() {
            return false;
        }
        let mut taken = [0; 65_536];
        loop {
            match self.0.read(&mut taken) {
                Ok(0) => return false,
                Ok(_) => {}
                Err(error) => return matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
            }
        }
    }
}

/// Sends requests until `stop` is set. Returns the longest time that an answer took.
fn watch_answers(server: &Server, stop: &AtomicBool) -> Duration {
    let mut longest = Duration::ZERO;
    let mut connection = server.connect();
    while !stop.load(Ordering::Relaxed) {
        let begun = Instant::now();
        connection.get(&config_map_path("there")).expect(200);
        longest = longest.max(begun.elapsed());
        thread::sleep(Duration::from_millis(20));
    }
    longest
}

/// CVE-2023-44487: a client opens streams and resets them at once, and so avoids the bound on open streams.
#[test]
fn streams_that_are_reset_at_once_do_no_harm() {
    const STREAMS: usize = 50_000;
    // Many streams at a time, and so few that the server starts to process them before they are reset.
    const BATCHES: [usize; 2] = [100, 10];
    let directory = DataDir::new();
    let server = directory.start();
    server.connect().post(CONFIG_MAPS, &config_map("there", "1")).expect(201);
    let request = get("/api/v1/namespaces/default/configmaps");
    let stop = AtomicBool::new(false);
    let (longest, before, after, connections) = thread::scope(|scope| {
        let answers = scope.spawn(|| watch_answers(&server, &stop));
        let (mut before, mut sent, mut connections) = (0, 0, 0);
        while sent < STREAMS {
            let mut attacker = Http2::open(&server);
            connections += 1;
            let mut stream = 1;
            loop {
                let mut bytes = Vec::new();
                let batch = BATCHES[connections % 2];
                for _ in 0..batch {
                    frame(HEADERS, END_STREAM_AND_HEADERS, stream, &request, &mut bytes);
                    frame(RST_STREAM, 0, stream, &8_u32.to_be_bytes(), &mut bytes);
                    stream += 2;
                }
                sent += batch;
                if before == 0 && sent >= STREAMS / 5 {
                    before = server.resident_bytes();
                }
                if !attacker.exchange(&bytes) || sent >= STREAMS {
                    break;
                }
            }
        }
        stop.store(true, Ordering::Relaxed);
        (answers.join().expect("answers"), before, server.resident_bytes(), connections)
    });
    eprintln!(
        "{STREAMS} streams over {connections} connections: {before} to {after} bytes, longest answer {longest:?}"
    );
    assert!(longest < noticed(Duration::from_secs(5)), "{longest:?}");
    assert!(after < before + GROWTH_BYTES_MAX, "{before} to {after} bytes");
}

#[test]
fn requests_that_all_differ_take_no_lasting_memory() {
    const REQUESTS: usize = 100_000;
    const BATCH: usize = 200;
    const CLIENTS: usize = 2;
    let directory = DataDir::new();
    let server = directory.start();
    let flood = |client: usize, batches: std::ops::Range<usize>| {
        let mut connection = server.connect();
        for batch in batches {
            let mut text = String::new();
            for number in batch * BATCH..(batch + 1) * BATCH {
                let path = match number % 4 {
                    0 => format!("/api/v1/namespaces/n{client}-{number}/configmaps/x"),
                    1 => format!("/api/v1/namespaces/default/configmaps/x{client}-{number}?labelSelector=l{number}"),
                    2 => format!("/apis/g{client}-{number}/v1/things"),
                    _ => format!("/x{client}-{number}"),
                };
                text.push_str(&format!(
                    "GET {path} HTTP/1.1\r\nHost: h{number}\r\nUser-Agent: a{client}-{number}\r\nX-{client}-{number}: \
                     v{number}\r\nAccept: application/json;v=v{number}, application/json\r\n\r\n"
                ));
            }
            connection.send(text.as_bytes()).expect("requests");
            for _ in 0..BATCH {
                let status = connection.read_answer().expect("an answer").status;
                assert!(matches!(status, 404 | 406), "{status}");
            }
        }
    };
    let each = REQUESTS / CLIENTS / BATCH;
    let run = |batches: std::ops::Range<usize>| {
        thread::scope(|scope| {
            for client in 0..CLIENTS {
                let (batches, flood) = (batches.clone(), &flood);
                scope.spawn(move || flood(client, batches));
            }
        });
    };
    run(0..each / 10);
    let before = server.resident_bytes();
    run(each / 10..each);
    let after = server.resident_bytes();
    eprintln!("{REQUESTS} requests: {before} to {after} bytes");
    assert!(after < before + GROWTH_BYTES_MAX / 4, "{before} to {after} bytes");
}
