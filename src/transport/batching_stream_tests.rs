use std::future::poll_fn;
use std::io::{Read, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Wake;
use std::thread::JoinHandle;
use std::time::Duration;

use actix_service::{Service, ServiceFactory};
use actix_tls::accept::rustls_0_23::Acceptor;
use actix_web::rt::time::timeout;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, StreamOwned};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::super::frames::GO_AWAY;
use super::*;

/// The longest time that a client takes for its part on any machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// Connects a client that runs `read` on its side of the connection. Returns the server's side, and the state of the
/// connections.
async fn connected<T: Send + 'static>(
    protocol: &str,
    read: impl FnOnce(StreamOwned<ClientConnection, std::net::TcpStream>) -> T + Send + 'static,
) -> (BatchingStream, JoinHandle<T>, Connections) {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions();
    let mut server =
        builder.unwrap().with_no_client_auth().with_single_cert(vec![made.cert.der().clone()], key).unwrap();
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let mut client = builder.with_root_certificates(roots).with_no_client_auth();
    for protocols in [&mut server.alpn_protocols, &mut client.alpn_protocols] {
        protocols.push(protocol.as_bytes().to_vec());
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let thread = std::thread::spawn(move || {
        let mut connection = ClientConnection::new(Arc::new(client), "localhost".try_into().unwrap()).unwrap();
        let mut socket = std::net::TcpStream::connect(address).unwrap();
        while connection.is_handshaking() {
            connection.complete_io(&mut socket).unwrap();
        }
        read(StreamOwned::new(connection, socket))
    });
    let (socket, _) = listener.accept().unwrap();
    let connections = Connections::of(&listener).unwrap();
    socket.set_nonblocking(true).unwrap();
    let mut acceptor = Acceptor::new(server);
    acceptor.set_handshake_timeout(PATIENCE);
    let acceptor = ServiceFactory::<TcpStream>::new_service(&acceptor, ()).await.unwrap();
    let tls = acceptor.call(TcpStream::from_std(socket).unwrap()).await.unwrap();
    (BatchingStream::new(tls, &connections), thread, connections)
}

fn read_all(mut stream: StreamOwned<ClientConnection, std::net::TcpStream>) -> Vec<u8> {
    let mut all = Vec::new();
    // The connection ends without a `close_notify` of TLS.
    let _ = stream.read_to_end(&mut all);
    all
}

/// Reads long enough for the client to receive the bytes that were sent.
async fn turn(connection: &mut BatchingStream) {
    let _ = timeout(Duration::from_millis(20), connection.read_u8()).await;
}

/// Counts how often it is woken.
#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[actix_web::test]
async fn what_is_flushed_is_sent_with_the_next_turn_in_one_record() {
    let (mut connection, client, _) = connected("h2", |mut stream| {
        let mut first = [0; 64];
        let read = stream.read(&mut first).unwrap();
        first[..read].to_vec()
    })
    .await;
    assert!(connection.is_http2());
    for frame in ["a frame, ", "another one, ", "and the last"] {
        connection.write_all(frame.as_bytes()).await.unwrap();
        connection.flush().await.unwrap();
        assert!(connection.promised && connection.held == 0);
    }
    turn(&mut connection).await;
    assert!(!connection.promised && connection.tail.is_empty());
    assert_eq!(client.join().unwrap(), b"a frame, another one, and the last");
}

#[actix_web::test]
async fn a_flush_has_the_task_woken_once() {
    let (mut connection, client, _) = connected("h2", read_all).await;
    connection.write_all(b"frame").await.unwrap();
    let count = Arc::new(Count::default());
    let waker = Arc::clone(&count).into();
    let mut cx = Context::from_waker(&waker);
    for _ in 0..3 {
        assert!(Pin::new(&mut connection).poll_flush(&mut cx).is_ready());
    }
    assert_eq!(count.0.load(Ordering::Relaxed), 1);
    connection.shutdown().await.unwrap();
    drop(connection);
    assert_eq!(client.join().unwrap(), b"frame");
}

#[actix_web::test]
async fn everything_arrives_in_order_however_it_is_written() {
    let (mut connection, client, _) = connected("h2", |stream| {
        // Long enough for the socket to fill up.
        std::thread::sleep(Duration::from_millis(100));
        read_all(stream)
    })
    .await;
    let mut expected = Vec::new();
    for round in 0..400_usize {
        let length = [9, 100, RECORD - 1, RECORD, RECORD + 9, 3 * RECORD, 200_000][round % 7];
        let (head, body) = (vec![round as u8; 9], vec![(round >> 3) as u8; length]);
        let mut at = 0;
        while at < 9 + length {
            let slices =
                [IoSlice::new(&head[at.min(9)..]), IoSlice::new(&[]), IoSlice::new(&body[at.saturating_sub(9)..])];
            at += poll_fn(|cx| Pin::new(&mut connection).poll_write_vectored(cx, &slices)).await.unwrap();
            assert!(connection.held <= 2 * limits::CONNECTION_WRITE_BYTES && connection.tail.len() < RECORD);
        }
        expected.extend_from_slice(&head);
        expected.extend_from_slice(&body);
        if round % 3 == 0 {
            connection.flush().await.unwrap();
        }
        if round % 10 == 0 {
            turn(&mut connection).await;
        }
    }
    connection.shutdown().await.unwrap();
    drop(connection);
    assert!(client.join().unwrap() == expected);
}

#[actix_web::test]
async fn answers_of_http_1_are_sent_when_they_are_flushed() {
    let (mut connection, client, _) = connected("http/1.1", |mut stream| {
        let mut answer = [0; 6];
        stream.read_exact(&mut answer).unwrap();
        answer
    })
    .await;
    connection.write_all(b"answer").await.unwrap();
    connection.flush().await.unwrap();
    assert!(!connection.is_http2() && !connection.promised);
    assert_eq!(&client.join().unwrap(), b"answer");
}

/// An empty SETTINGS frame. Each side begins with one.
const SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];

#[actix_web::test]
async fn a_client_is_told_to_go_while_nothing_happens_and_its_connection_is_closed() {
    let (mut connection, client, connections) = connected("h2", |mut stream| {
        stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap();
        stream.write_all(&SETTINGS).unwrap();
        let mut frames = [0; 2 * 9 + 8];
        stream.read_exact(&mut frames).unwrap();
        // Bytes that the client still sends do not delay the end.
        stream.write_all(&SETTINGS).unwrap();
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).unwrap();
        (frames, rest)
    })
    .await;
    connection.write_all(&SETTINGS).await.unwrap();
    connection.flush().await.unwrap();
    let mut read = [0; 24 + 9];
    connection.read_exact(&mut read).await.unwrap();
    assert!(!connections.are_closed());
    connections.leave();
    // The stream gives the server a GOAWAY frame as if the client had sent it, in parts of any size.
    let mut read = [0; 9 + GO_AWAY.len()];
    for part in read.chunks_mut(4) {
        timeout(PATIENCE, connection.read_exact(part)).await.unwrap().unwrap();
    }
    assert_eq!(read, [&SETTINGS[..], &GO_AWAY].concat()[..]);
    connection.shutdown().await.unwrap();
    drop(connection);
    assert!(connections.are_closed());
    let (frames, rest) = client.join().unwrap();
    assert_eq!(frames, [&SETTINGS[..], &GO_AWAY].concat()[..]);
    assert_eq!(rest, b"", "closed, not broken off");
}

#[actix_web::test]
async fn a_client_is_told_to_go_behind_the_frame_that_is_being_written() {
    let (mut connection, client, connections) = connected("h2", read_all).await;
    connection.write_all(&SETTINGS).await.unwrap();
    connections.leave();
    let mut expected = SETTINGS.to_vec();
    // Long enough to be sent in parts, and to nearly fill the last record.
    let payload = vec![b'x'; 3 * RECORD - 2 * SETTINGS.len() - 1];
    let [_, high, middle, low] = (payload.len() as u32).to_be_bytes();
    let frame = [&[high, middle, low, 0, 0, 0, 0, 0, 1][..], &payload].concat();
    connection.write_all(&frame[..4]).await.unwrap();
    turn(&mut connection).await;
    for part in frame[4..].chunks(RECORD - 1) {
        connection.write_all(part).await.unwrap();
        turn(&mut connection).await;
    }
    connection.flush().await.unwrap();
    connection.write_all(&SETTINGS).await.unwrap();
    expected.extend([&frame[..], &GO_AWAY, &SETTINGS].concat());
    connection.flush().await.unwrap();
    turn(&mut connection).await;
    drop(connection);
    assert!(client.join().unwrap() == expected);
}

#[actix_web::test]
async fn a_client_of_http_1_gets_no_goaway() {
    let (mut connection, client, connections) = connected("http/1.1", read_all).await;
    assert!(connections.are_closed(), "it is not counted");
    connections.leave();
    connection.write_all(b"answer").await.unwrap();
    turn(&mut connection).await;
    connection.shutdown().await.unwrap();
    assert_eq!(client.join().unwrap(), b"answer");
}
