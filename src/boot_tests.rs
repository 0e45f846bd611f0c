use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use actix_web::{HttpRequest, HttpResponse, web};
use clap::{CommandFactory, FromArgMatches, Parser};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, ClientConnection, HandshakeKind, RootCertStore, StreamOwned, SupportedProtocolVersion};

use super::*;
use crate::access::ConnectionIdentity;
use crate::drain::DrainBegin;
use crate::scratch::Scratch;
use flotilla_cluster::Standing;

#[derive(Parser)]
struct Flags {
    #[command(flatten)]
    config: Config,
}

fn config(dir: &Path) -> Config {
    // Requests of tests end within this grace period on any machine.
    let args =
        ["flotilla", "--listen", "127.0.0.1:0", "--workers", "1", "--shutdown-grace-seconds", "120", "--data-dir"];
    let args = args.map(std::ffi::OsString::from).into_iter().chain([dir.into()]);
    Flags::from_arg_matches(&Flags::command().try_get_matches_from(args).unwrap()).unwrap().config
}

/// Bytes of the answer at `/large`: more than a socket accepts at once.
const LARGE: usize = 8 << 20;

/// A server that answers with the identity of the connection, slowly at `/slow`, with a large body at `/large`.
struct Server {
    _directory: Scratch,
    url: String,
    pki: PathBuf,
    begin: DrainBegin,
    /// Receives a message when a request for `/slow` has begun.
    slow: mpsc::Receiver<()>,
    thread: std::thread::JoinHandle<Result<(), BootError>>,
}

async fn identity(request: HttpRequest) -> HttpResponse {
    if request.path() == "/slow" {
        request.app_data::<mpsc::Sender<()>>().unwrap().send(()).unwrap();
        actix_web::rt::time::sleep(Duration::from_millis(300)).await;
    }
    if request.path() == "/large" {
        return HttpResponse::Ok().body(vec![b'x'; LARGE]);
    }
    let identity = request.conn_data::<ConnectionIdentity>().cloned();
    HttpResponse::Ok().body(match identity {
        Some(ConnectionIdentity::User { user, .. }) => format!("{} {}", user.name, user.groups.join(",")),
        Some(other) => format!("{other:?}"),
        None => "nothing".to_owned(),
    })
}

impl Server {
    fn start() -> Self {
        let directory = Scratch::new();
        let config = config(&directory);
        let (begin, drain) = Drain::new();
        let pki = config.pki_dir();
        let (address, bound) = mpsc::channel();
        let (slow_begun, slow) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            actix_web::rt::System::new().block_on(async move {
                let boot = Boot::open(config, drain).await?;
                address.send(boot.address.to_string()).unwrap();
                let configure = move |services: &mut ServiceConfig| {
                    services.app_data(slow_begun.clone()).default_service(web::to(identity));
                };
                boot.serve(configure, || true).await
            })
        });
        Self { _directory: directory, url: bound.recv().unwrap(), pki, begin, slow, thread }
    }

    fn stop(self) {
        self.begin.begin();
        self.thread.join().unwrap().unwrap();
    }

    fn client(&self, who: Option<(&Path, &str)>, version: &'static SupportedProtocolVersion) -> Arc<ClientConfig> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(self.pki.join("ca.crt")).unwrap()).unwrap();
        let builder = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_protocol_versions(&[version])
            .unwrap()
            .with_root_certificates(roots);
        Arc::new(match who {
            None => builder.with_no_client_auth(),
            Some((dir, name)) => builder
                .with_client_auth_cert(
                    vec![CertificateDer::from_pem_file(dir.join(format!("{name}.crt"))).unwrap()],
                    PrivateKeyDer::from_pem_file(dir.join(format!("{name}.key"))).unwrap(),
                )
                .unwrap(),
        })
    }

    fn get(&self, path: &str, client: &Arc<ClientConfig>) -> (String, HandshakeKind) {
        get(&self.url, path, client)
    }
}

fn get(url: &str, path: &str, client: &Arc<ClientConfig>) -> (String, HandshakeKind) {
    let connection = ClientConnection::new(Arc::clone(client), "localhost".try_into().unwrap()).unwrap();
    let mut stream = StreamOwned::new(connection, TcpStream::connect(url).unwrap());
    write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    (answer.split_once("\r\n\r\n").unwrap().1.to_owned(), stream.conn.handshake_kind().unwrap())
}

#[test]
fn a_connection_has_the_user_of_its_client_certificate() {
    let server = Server::start();
    let other = Server::start();
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let anonymous = server.client(None, version);
        assert_eq!(server.get("/", &anonymous).0, "None");
        let admin = server.client(Some((&server.pki, "admin")), version);
        assert_eq!(server.get("/", &admin).0, "kubernetes-admin system:masters,system:authenticated");
        let (resumed, kind) = server.get("/", &admin);
        assert_eq!(kind, HandshakeKind::Resumed);
        assert_eq!(resumed, "kubernetes-admin system:masters,system:authenticated");
        // Signed by another authority, which the handshake accepts.
        let foreign = server.client(Some((&other.pki, "admin")), version);
        assert_eq!(server.get("/", &foreign).0, "Refused");
    }
    server.stop();
    other.stop();
}

/// Sends a body that the server does not read. Returns how many bytes of the large answer arrive.
fn read_large(server: &Server) -> usize {
    let client = server.client(None, &rustls::version::TLS13);
    let connection = ClientConnection::new(client, "localhost".try_into().unwrap()).unwrap();
    let mut stream = StreamOwned::new(connection, TcpStream::connect(&server.url).unwrap());
    write!(stream, "PUT /large HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n").unwrap();
    let (mut arrived, mut part) = (0, vec![0; 1 << 20]);
    while arrived < LARGE
        && let Ok(read @ 1..) = stream.read(&mut part)
    {
        arrived += read;
        // The body arrives while the answer is sent.
        if arrived > LARGE / 2 {
            let _ = stream.write_all(&[b'y'; 1000]);
        }
    }
    arrived
}

#[test]
fn an_answer_arrives_although_the_request_was_not_read() {
    let server = Server::start();
    let mut attempts = 1..=20;
    loop {
        let began = Instant::now();
        let arrived = read_large(&server);
        if arrived >= LARGE {
            break;
        }
        // The server closes the connection of a client that does not run for this long. Then the test begins again.
        let is_slow = began.elapsed() >= limits::CLOSE_TIMEOUT;
        assert!(is_slow && attempts.next().is_some(), "{arrived} bytes of the answer arrived");
    }
    server.stop();
}

#[test]
fn a_stopping_server_finishes_open_requests() {
    let server = Server::start();
    let client = server.client(None, &rustls::version::TLS13);
    std::thread::scope(|scope| {
        let (url, client) = (server.url.clone(), &client);
        let slow = scope.spawn(move || get(&url, "/slow", client).0);
        server.slow.recv().unwrap();
        server.begin.begin();
        assert_eq!(slow.join().unwrap(), "None");
    });
    server.stop();
}

#[test]
fn dropping_the_handle_begins_the_drain() {
    let (begin, drain) = Drain::new();
    assert!(!drain.is_announced());
    begin.announce();
    assert!(drain.is_announced() && !drain.has_begun());
    drop(begin);
    assert!(drain.has_begun());
}

#[actix_web::test]
async fn watches_of_a_server_that_is_alone_go_on() {
    let (begin, drain) = Drain::new();
    let (sender, standing) = tokio::sync::watch::channel(Standing::Member);
    let streams = drain.or_removed(standing);
    // A server that is alone drops the sender.
    drop(sender);
    let early = tokio::time::timeout(Duration::from_millis(50), streams.clone().begun()).await;
    assert!(early.is_err(), "nothing has begun to drain");
    begin.begin();
    streams.begun().await;
}

#[actix_web::test]
async fn watches_of_a_removed_member_end() {
    let (_begin, drain) = Drain::new();
    let (sender, standing) = tokio::sync::watch::channel(Standing::Member);
    let streams = drain.or_removed(standing);
    sender.send_replace(Standing::Removed);
    streams.begun().await;
}
