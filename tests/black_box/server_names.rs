//! The server shows the certificate for the name that a client asks for.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;

use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::support::DataDir;

/// Gets the version from a server by this host name. Trusts this certificate alone.
fn version(address: std::net::SocketAddr, trusted: &CertificateDer<'static>, host: &str) -> std::io::Result<String> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).expect("a certificate");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().expect("versions");
    let config = Arc::new(config.with_root_certificates(roots).with_no_client_auth());
    let session = ClientConnection::new(config, host.to_owned().try_into().expect("a name")).expect("a session");
    let mut stream = StreamOwned::new(session, TcpStream::connect(address)?);
    write!(stream, "GET /version HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

#[test]
fn clients_see_the_certificate_for_the_name_that_they_ask_for() {
    let directory = DataDir::new();
    let folder = directory.path().with_extension("names");
    fs::create_dir_all(&folder).expect("a directory");
    let made = ["api.example", "*.wild.example"].map(|host| {
        let key = KeyPair::generate().expect("a key");
        let certificate = CertificateParams::new([host.to_owned()]).expect("a name").self_signed(&key);
        let certificate = certificate.expect("a certificate");
        let file = |kind: &str| folder.join(format!("{}.{kind}", host.trim_start_matches("*."))).display().to_string();
        fs::write(file("crt"), certificate.pem()).expect("a file");
        fs::write(file("key"), key.serialize_pem()).expect("a file");
        (format!("{},{}", file("crt"), file("key")), certificate.der().clone())
    });
    let flags = made.each_ref().map(|(files, _)| format!("--tls-sni-cert-key={files}"));
    let server = directory.start_with(&flags.each_ref().map(String::as_str));
    let address = server.credentials().address;
    let [api, wild] = made.each_ref().map(|(_, certificate)| certificate);
    for (trusted, host) in [(api, "api.example"), (wild, "a.wild.example")] {
        let answer = version(address, trusted, host).expect("an answer");
        assert!(answer.contains("\"gitVersion\""), "{answer}");
    }
    let error = version(address, api, "a.wild.example").expect_err("another certificate");
    assert!(error.to_string().contains("certificate"), "{error}");
    // Clients that ask for another name, or for none, see the certificate of the server.
    server.connect().get("/version").expect(200);
}
