//! HTTP/2 clients that send requests on open connections while the server stops.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::future::Future;
use std::io::ErrorKind;
use std::net::TcpStream;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use h2::client::{SendRequest, handshake};
use http::{Method, Request};
use tokio::task::LocalSet;
use tokio_rustls::TlsConnector;

use crate::drain::{END_MAX, GRACE};
use crate::support::{CONFIG_MAPS, Credentials, DataDir, PATIENCE, config_map};

/// The number of connections, and the number of open streams on each.
const CONNECTIONS: usize = 6;
const STREAMS: usize = 4;

/// The names of created objects, and of refused ones.
#[derive(Default)]
struct Written {
    made: BTreeSet<String>,
    refused: BTreeSet<String>,
}

/// Runs a future that stays on its thread.
fn run<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    LocalSet::new().block_on(&runtime, work)
}

/// Opens a connection. Returns its sender, and a future that ends with the connection.
async fn connect(credentials: &Credentials) -> (SendRequest<Bytes>, impl Future<Output = Result<(), h2::Error>>) {
    let mut config = (*credentials.administrator).clone();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let socket = tokio::net::TcpStream::connect(credentials.address).await.expect("a connection");
    let name = credentials.address.ip().into();
    let tls = TlsConnector::from(Arc::new(config)).connect(name, socket).await.expect("TLS");
    let (sender, connection) = handshake(tls).await.expect("HTTP/2");
    let ended = tokio::task::spawn_local(connection);
    (sender, async move { ended.await.expect("no panic") })
}

/// Returns whether the server closed the connection with NO_ERROR, which means that it did not process the request.
fn is_refused(error: &h2::Error) -> bool {
    error.is_go_away() && error.is_remote() && error.reason() == Some(h2::Reason::NO_ERROR)
}

/// Creates one object. Returns `Err` if the request got no answer.
async fn write(sender: &mut SendRequest<Bytes>, name: &str) -> Result<(), h2::Error> {
    let request = Request::builder().method(Method::POST).uri(format!("https://x{CONFIG_MAPS}"));
    let request = request.header("content-type", "application/json").body(()).expect("a request");
    let (answer, mut body) = sender.send_request(request, false)?;
    body.send_data(config_map(name, "1").to_string().into(), true)?;
    let answer = answer.await?;
    assert_eq!(answer.status(), 201, "{name}");
    let (mut bytes, mut answer) = (Vec::new(), answer.into_body());
    while let Some(part) = answer.data().await {
        let part = part?;
        answer.flow_control().release_capacity(part.len())?;
        bytes.extend_from_slice(&part);
    }
    let made: serde_json::Value = serde_json::from_slice(&bytes).expect("a whole answer");
    assert_eq!(made["metadata"]["name"], name);
    Ok(())
}

/// The numbers of the connections on which an object has been created.
type Begun = Rc<RefCell<BTreeSet<usize>>>;

/// Creates objects on a connection, until the server accepts no more.
async fn write_all_the_time(credentials: Credentials, connection: usize, begun: Begun) -> Written {
    let (sender, ended) = connect(&credentials).await;
    let streams = (0..STREAMS).map(|stream| {
        let (sender, begun) = (sender.clone(), Rc::clone(&begun));
        tokio::task::spawn_local(async move {
            let (mut sender, mut written) = (sender, Written::default());
            for number in 0.. {
                sender = match sender.ready().await {
                    Ok(ready) => ready,
                    Err(error) => {
                        assert!(is_refused(&error), "{error:?}");
                        break;
                    }
                };
                let name = format!("made-{connection}-{stream}-{number}");
                match write(&mut sender, &name).await {
                    Ok(()) => {
                        begun.borrow_mut().insert(connection);
                        written.made.insert(name)
                    }
                    Err(error) => {
                        assert!(is_refused(&error), "it is unknown whether {name} was created: {error:?}");
                        written.refused.insert(name)
                    }
                };
            }
            written
        })
    });
    let (streams, mut all) = (streams.collect::<Vec<_>>(), Written::default());
    drop(sender);
    for stream in streams {
        let mut written = stream.await.expect("no request is interrupted");
        all.made.append(&mut written.made);
        all.refused.append(&mut written.refused);
    }
    if let Err(error) = ended.await {
        assert!(is_refused(&error), "the connection is closed properly: {error:?}");
    }
    all
}

#[test]
fn busy_clients_see_no_interrupted_request() {
    let directory = DataDir::new();
    let server = directory.start_with(&GRACE);
    let credentials = server.credentials();
    let (written, took) = run(async {
        let begun = Begun::default();
        let clients: Vec<_> = (0..CONNECTIONS)
            .map(|number| tokio::task::spawn_local(write_all_the_time(credentials.clone(), number, Rc::clone(&begun))))
            .collect();
        tokio::time::sleep(Duration::from_millis(700)).await;
        let deadline = Instant::now() + PATIENCE;
        while begun.borrow().len() < CONNECTIONS && Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        server.send_sigterm();
        let (began, mut all) = (Instant::now(), Written::default());
        for client in clients {
            let mut written = client.await.expect("a client");
            assert!(!written.made.is_empty(), "no object was created before the end");
            all.made.append(&mut written.made);
            all.refused.append(&mut written.refused);
        }
        (all, began.elapsed())
    });
    assert!(took < END_MAX, "{took:?} until all connections were closed");
    let refused = TcpStream::connect(credentials.address).err().map(|error| error.kind());
    assert_eq!(refused, Some(ErrorKind::ConnectionRefused), "new connections are refused");
    assert_eq!(server.wait().code(), Some(0));

    let server = directory.start();
    let list = server.connect().get(&format!("{CONFIG_MAPS}?resourceVersion=0")).expect(200);
    let items = list["items"].as_array().expect("items");
    let names: BTreeSet<String> =
        items.iter().filter_map(|item| item["metadata"]["name"].as_str().map(str::to_owned)).collect();
    assert!(written.made.is_subset(&names), "{:?} are lost", written.made.difference(&names));
    assert!(written.refused.is_disjoint(&names), "{:?} were made", written.refused.intersection(&names));
}

#[test]
fn idle_connections_are_closed_at_once() {
    let directory = DataDir::new();
    let server = directory.start_with(&GRACE);
    let credentials = server.credentials();
    run(async {
        // One client has never sent a request. The other one has sent its last.
        let (_silent, silent_ended) = connect(&credentials).await;
        let (sender, ended) = connect(&credentials).await;
        let mut sender = sender.ready().await.expect("a connection");
        write(&mut sender, "before").await.expect("an answer");
        server.send_sigterm();
        for end in [silent_ended.await, ended.await] {
            assert!(end.err().is_none_or(|error| is_refused(&error)));
        }
        assert!(is_refused(&sender.ready().await.expect_err("no more requests")));
    });
    let began = Instant::now();
    assert_eq!(server.wait().code(), Some(0));
    assert!(began.elapsed() < END_MAX, "idle connections do not delay the end");
}

#[test]
fn some_requests_send_their_connection_away_and_are_answered() {
    let directory = DataDir::new();
    let server = directory.start_with(&["--goaway-chance=0.02"]);
    let credentials = server.credentials();
    // The writes end when the server sends the client away, after some fifty requests.
    let written = run(async { write_all_the_time(credentials, 0, Begun::default()).await });
    assert!(!written.made.is_empty());
    let list = server.connect().get(&format!("{CONFIG_MAPS}?resourceVersion=0")).expect(200);
    let items = list["items"].as_array().expect("items");
    let stored =
        items.iter().filter(|item| item["metadata"]["name"].as_str().is_some_and(|it| it.starts_with("made-")));
    assert_eq!(stored.count(), written.made.len(), "the server goes on, and has stored what it acknowledged");
}
