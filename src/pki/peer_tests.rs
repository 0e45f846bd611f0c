use std::io::{Read, Write};

use rustls::pki_types::ServerName;
use rustls::{ClientConnection, ServerConnection};

use super::super::{Pki, PkiOptions};
use super::*;
use crate::scratch::Scratch;

/// Connects two sides in memory. Fails unless each side gets a byte from the other.
fn connect(client: Arc<ClientConfig>, server: Arc<ServerConfig>) -> Result<(), String> {
    let name = ServerName::try_from(PeerTls::SERVER_NAME).unwrap();
    let mut client = ClientConnection::new(client, name).unwrap();
    let mut server = ServerConnection::new(server).unwrap();
    client.writer().write_all(b"a").unwrap();
    server.writer().write_all(b"b").unwrap();
    for _ in 0..10 {
        let mut wire = Vec::new();
        while client.wants_write() {
            client.write_tls(&mut wire).unwrap();
        }
        while !wire.is_empty() {
            let read = server.read_tls(&mut &wire[..]).unwrap();
            wire.drain(..read);
            server.process_new_packets().map_err(|error| format!("server: {error}"))?;
        }
        while server.wants_write() {
            server.write_tls(&mut wire).unwrap();
        }
        while !wire.is_empty() {
            let read = client.read_tls(&mut &wire[..]).unwrap();
            wire.drain(..read);
            client.process_new_packets().map_err(|error| format!("client: {error}"))?;
        }
    }
    let mut byte = [0];
    server.reader().read_exact(&mut byte).map_err(|error| error.to_string())?;
    client.reader().read_exact(&mut byte).map_err(|error| error.to_string())
}

#[test]
fn members_that_start_at_once_trust_each_other() {
    let dir = Scratch::new();
    let open = |number: usize| {
        let dir = dir.to_owned();
        std::thread::spawn(move || PeerPki::open(&dir, &format!("m{number}")).unwrap())
    };
    let members: Vec<_> = (0..6).map(open).collect();
    let members: Vec<_> = members.into_iter().map(|member| member.join().unwrap()).collect();
    let all: Vec<_> = members.iter().map(|member| member.tls().unwrap()).collect();
    for (from, to) in [(0, 1), (1, 0), (5, 2), (3, 3)] {
        connect(all[from].client.clone(), all[to].server.clone()).unwrap();
    }
    members[0].refresh().unwrap();
    connect(all[0].client.clone(), all[1].server.clone()).unwrap();
    connect(all[1].client.clone(), all[0].server.clone()).unwrap();
    let mode = |name: &str| {
        use std::os::unix::fs::PermissionsExt;
        std::fs::metadata(dir.join(name)).unwrap().permissions().mode() & 0o777
    };
    assert_eq!((mode("peer-ca.key"), mode("peer-ca.crt")), (0o600, 0o644));
}

#[test]
fn only_certificates_of_members_are_accepted() {
    let (dir, other) = (Scratch::new(), Scratch::new());
    let member = PeerPki::open(&dir, "a").unwrap();
    let stranger = PeerPki::open(&other, "a").unwrap();
    let (tls, strange) = (member.tls().unwrap(), stranger.tls().unwrap());
    assert_eq!((tls.name_of)(&member.certificate.current().cert[0]).as_deref(), Some("a"));
    let refused = connect(strange.client.clone(), tls.server.clone()).unwrap_err();
    // Both authorities have the same name, so that only the signature tells them apart.
    assert!(refused.starts_with("client: ") && refused.contains("BadSignature"), "{refused}");

    // A certificate of the authority of the API is refused, even from a client that trusts the members.
    let pki = Pki::open(PkiOptions::in_one(&dir, &[])).unwrap();
    pki.write_admin_kubeconfig(&dir.join("admin.kubeconfig"), "https://127.0.0.1:1").unwrap();
    let authority = Authority::open(&dir, "ca", "flotilla-ca").unwrap();
    let spec = LeafSpec { common_name: "a", organization: None, names: &[], usage: Usage::Client };
    let leaf = Leaf::open(&dir, "admin", &authority, &spec).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(member.authority.certificate().clone()).unwrap();
    let administrator = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])
        .unwrap()
        .with_root_certificates(roots.clone())
        .with_client_auth_cert(vec![leaf.certificate().clone()], leaf.private_key())
        .unwrap();
    let refused = connect(Arc::new(administrator), tls.server.clone()).unwrap_err();
    assert!(refused.starts_with("server: "), "{refused}");
    let nobody = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let refused = connect(Arc::new(nobody), tls.server).unwrap_err();
    assert!(refused.starts_with("server: "), "{refused}");
}
