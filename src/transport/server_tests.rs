use std::convert::Infallible;
use std::io::{Read as _, Write as _};
use std::sync::Arc;

use actix_web::body::BodyStream;
use actix_web::{HttpRequest, HttpResponse, web};
use futures_util::StreamExt as _;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use super::super::ClientSide;
use super::*;

/// Answers with the path and body of the request, or upgrades and echoes all bytes.
async fn answer(request: HttpRequest) -> HttpResponse {
    // Answers after a turn, in which a pipelined request could overtake this one.
    tokio::task::yield_now().await;
    if request.path() != "/switch" {
        return HttpResponse::Ok().body(format!("{} {}", request.method(), request.path()));
    }
    let client = request.conn_data::<ClientSide>().unwrap().take_over();
    let mut response =
        HttpResponse::SwitchingProtocols().upgrade("x").body(BodyStream::new(client.map(Ok::<_, Infallible>)));
    response.head_mut().no_chunking(true);
    response
}

/// Sends all bytes at once. Returns the bytes that the client reads until the connection ends, or until `until` was
/// read.
async fn read(sent: String, until: &'static str) -> String {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions();
    let tls = builder.unwrap().with_no_client_auth().with_single_cert(vec![made.cert.der().clone()], key).unwrap();
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let client = builder.with_root_certificates(roots).with_no_client_auth();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, connections) = (listener.local_addr().unwrap(), Connections::of(&listener).unwrap());
    let configure = |config: &mut ServiceConfig| {
        config.default_service(web::to(answer));
    };
    let server = start(listener, tls, 1, &connections, configure, |_, _| ()).unwrap();
    let handle = server.handle();
    let serving = actix_web::rt::spawn(server);
    let reading = actix_web::rt::task::spawn_blocking(move || {
        let session = ClientConnection::new(Arc::new(client), "localhost".try_into().unwrap()).unwrap();
        let mut stream = StreamOwned::new(session, std::net::TcpStream::connect(address).unwrap());
        stream.write_all(sent.as_bytes()).unwrap();
        let (mut all, mut byte) = (Vec::new(), [0]);
        while (until.is_empty() || !all.ends_with(until.as_bytes())) && matches!(stream.read(&mut byte), Ok(1)) {
            all.extend(byte);
        }
        String::from_utf8(all).unwrap()
    });
    let read = reading.await.unwrap();
    handle.stop(false).await;
    serving.await.unwrap().unwrap();
    read
}

const EARLY: &str = "GET /early HTTP/1.1\r\nHost: a\r\n\r\n";

#[actix_web::test]
async fn what_is_sent_ahead_does_not_change_what_was_asked() {
    let last = "GET /c HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let text = read(format!("{EARLY}HEAD /b HTTP/1.1\r\nHost: a\r\n\r\n{EARLY}{last}"), "").await;
    assert_eq!((text.matches("HTTP/1.1 200").count(), text.matches("GET /early").count()), (4, 2), "{text}");
    assert!(!text.contains("HEAD /b") && text.ends_with("GET /c"), "{text}");
    assert_eq!(text.matches("connection: close").count(), 1, "{text}");
}

#[actix_web::test]
async fn bytes_after_an_upgrade_are_never_read_as_http() {
    for protocol in ["websocket", "SPDY/3.1"] {
        let upgrade = |path: &str| {
            format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: {protocol}\r\n\r\n{EARLY}")
        };
        let text = read(upgrade("/switch"), EARLY).await;
        assert!(text.starts_with("HTTP/1.1 101") && text.ends_with(EARLY), "{text}");
        assert!(!text.contains("content-length") && !text.contains("chunked"), "{text}");
        let text = read(upgrade("/other"), "").await;
        assert!(text.contains("connection: close") && text.ends_with("GET /other"), "{text}");
    }
}
