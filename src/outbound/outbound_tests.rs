use std::sync::Arc;
use std::time::Duration;

use http::Request;
use rcgen::{CertificateParams, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;

use super::*;
use crate::pki::provider;

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(120)
}

fn get() -> Request<Body> {
    Request::get("https://a.example/x?y=z").body(empty()).unwrap()
}

/// Listens with a certificate for a name. `protocol` is the HTTP version that it offers.
async fn listen(name: &str, protocol: &[u8]) -> (TlsAcceptor, TcpListener, Peer) {
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(vec![name.to_owned()]).unwrap().self_signed(&key).unwrap();
    let config = ServerConfig::builder_with_provider(provider()).with_safe_default_protocol_versions().unwrap();
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let mut config = config.with_no_client_auth().with_single_cert(vec![certificate.der().clone()], key).unwrap();
    config.alpn_protocols = vec![protocol.to_vec()];
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let trust = Trust::bundle(certificate.pem());
    let secure = Secure { server_name: "a.example".into(), trust, identity: None, http2: true };
    let peer = Peer { host: "127.0.0.1".into(), port, network: Network::Direct, guarded: false, secure: Some(secure) };
    (TlsAcceptor::from(Arc::new(config)), listener, peer)
}

/// Serves connections. Each gives `answers` answers and then closes.
async fn serve(name: &str, answers: usize) -> Peer {
    let (acceptor, listener, peer) = listen(name, b"http/1.1").await;
    tokio::spawn(async move {
        while let Ok((tcp, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(mut stream) = acceptor.accept(tcp).await else { return };
                let mut buffer = [0; 4_096];
                for _ in 0..answers {
                    if stream.read(&mut buffer).await.unwrap_or(0) == 0 {
                        return;
                    }
                    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
                }
                let _ = stream.shutdown().await;
            });
        }
    });
    peer
}

/// Serves HTTP/2. Answers with the number of connections and the requested URI.
async fn serve_streams() -> Peer {
    let (acceptor, listener, peer) = listen("a.example", b"h2").await;
    tokio::spawn(async move {
        for number in 1.. {
            let Ok((tcp, _)) = listener.accept().await else { return };
            let Ok(stream) = acceptor.accept(tcp).await else { return };
            tokio::spawn(async move {
                let mut connection = h2::server::handshake(stream).await.unwrap();
                while let Some(Ok((request, mut respond))) = connection.accept().await {
                    let text = format!("{number} {}", request.uri());
                    let mut body = respond.send_response(Response::new(()), false).unwrap();
                    body.send_data(text.into(), true).unwrap();
                }
            });
        }
    });
    peer
}

async fn ask(outbound: &Outbound, peer: &Peer) -> Result<Vec<u8>, Error> {
    let answer = outbound.send(peer, get(), soon()).await?;
    read(answer.into_body(), 100).await.map(|body| body.to_vec())
}

#[tokio::test]
async fn closed_connections_are_not_used_again() {
    let (outbound, peer) = (Outbound::default(), serve("a.example", 2).await);
    for _ in 0..7 {
        assert_eq!(ask(&outbound, &peer).await.unwrap(), b"ok");
    }
}

#[tokio::test]
async fn a_server_must_prove_the_name_that_was_dialed() {
    let outbound = Outbound::default();
    let mut peer = serve("b.example", 9).await;
    let error = ask(&outbound, &peer).await.unwrap_err().to_string();
    let wrong = "tls: failed to verify certificate: x509: certificate is valid for b.example, not a.example";
    assert_eq!(error, wrong);
    let other = serve("a.example", 9).await;
    peer.secure = other.secure;
    let error = ask(&outbound, &peer).await.unwrap_err().to_string();
    assert_eq!(error, "tls: failed to verify certificate: x509: certificate signed by unknown authority");
}

#[tokio::test]
async fn errors_have_the_words_of_go() {
    let (outbound, peer) = (Outbound::default(), serve("a.example", 0).await);
    assert_eq!(ask(&outbound, &peer).await.unwrap_err().to_string(), "EOF");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let silent = Peer { port: listener.local_addr().unwrap().port(), ..peer };
    let began = Instant::now();
    let late = outbound.send(&silent, get(), began + Duration::from_millis(50)).await.unwrap_err();
    assert_eq!(late, Error::Deadline);
}

#[tokio::test]
async fn an_answer_that_is_too_large_is_not_read() {
    let (outbound, peer) = (Outbound::default(), serve("a.example", 1).await);
    let answer = outbound.send(&peer, get(), soon()).await.unwrap();
    assert_eq!(read(answer.into_body(), 1).await.unwrap_err(), Error::TooLarge(1));
}

#[tokio::test]
async fn an_unpooled_request_has_its_own_connection() {
    let (outbound, peer) = (Outbound::default(), serve("a.example", 1).await);
    let mut stream = outbound.connect(&peer, soon()).await.unwrap();
    assert!(!stream.is_http2);
    stream.io.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    let mut head = [0; 12];
    stream.io.read_exact(&mut head).await.unwrap();
    assert_eq!(&head, b"HTTP/1.1 200");
}

#[tokio::test]
async fn streams_share_a_connection() {
    let (outbound, peer) = (Outbound::default(), serve_streams().await);
    let asked = "1 https://a.example/x?y=z";
    assert_eq!(String::from_utf8(ask(&outbound, &peer).await.unwrap()).unwrap(), asked);
    let several = (0..20).map(|_| ask(&outbound, &peer));
    for answer in futures_util::future::join_all(several).await {
        assert_eq!(String::from_utf8(answer.unwrap()).unwrap(), asked);
    }
}
