//! Helpers for tests of the transport: certificates, a service, and a network that can be cut.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use x509_parser::prelude::{FromDer, X509Certificate};

use super::{Hello, Refusal, Reply, Service, TlsNetwork, Transport, TransportOptions};
use crate::PeerTls;
use crate::clock::HybridClock;

/// A certificate authority.
pub(crate) struct Authority {
    certificate: CertificateDer<'static>,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    pub(crate) fn new() -> Authority {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.self_signed(&key).expect("a certificate").der().clone();
        Authority { certificate, issuer: Issuer::new(params, key) }
    }

    /// Returns the TLS configuration of a member, with a certificate of this authority, which trusts only this
    /// authority.
    pub(crate) fn issue(&self, name: &str) -> PeerTls {
        let mut params = CertificateParams::new(vec![PeerTls::SERVER_NAME.into()]).expect("a name");
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().expect("a key");
        let chain = vec![params.signed_by(&key, &self.issuer).expect("a certificate").der().clone()];
        let private = || PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.clone()).expect("an authority");
        let roots = Arc::new(roots);
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(roots.clone(), provider.clone()).build();
        let server = ServerConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .expect("TLS 1.3")
            .with_client_cert_verifier(verifier.expect("a verifier"))
            .with_single_cert(chain.clone(), private());
        let client = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .expect("TLS 1.3")
            .with_root_certificates(roots)
            .with_client_auth_cert(chain, private());
        PeerTls { client: Arc::new(client.expect("a client")), server: Arc::new(server.expect("a server")), name_of }
    }
}

/// Returns the common name of a certificate.
fn name_of(certificate: &CertificateDer<'_>) -> Option<String> {
    let (_, parsed) = X509Certificate::from_der(certificate).ok()?;
    let name = parsed.subject().iter_common_name().last()?.as_str().ok()?.to_owned();
    Some(name)
}

/// The payload is sent back.
pub(super) const ECHO: u32 = 1;
/// The request is held until [`Recorder::release`].
pub(super) const HOLD: u32 = 2;
/// The request is refused.
pub(super) const REFUSE: u32 = 3;
/// The request is dropped.
pub(super) const DROP: u32 = 4;
/// The answer is as many zeros as the payload says.
pub(super) const ZEROS: u32 = 5;

/// Records the requests that it gets.
#[derive(Default)]
pub(super) struct Recorder {
    pub(super) requests: Mutex<Vec<(Hello, u32, Bytes)>>,
    held: Mutex<Vec<(Bytes, Reply)>>,
}

impl Recorder {
    /// Answers the held requests, the last one first. Returns their number.
    pub(super) fn release(&self) -> usize {
        let held = std::mem::take(&mut *self.held.lock());
        let count = held.len();
        held.into_iter().rev().for_each(|(payload, reply)| reply.send(Ok(payload)));
        count
    }

    pub(super) fn held(&self) -> usize {
        self.held.lock().len()
    }
}

impl Service for Recorder {
    fn serve(&self, from: &Hello, method: u32, payload: Bytes, reply: Reply) {
        self.requests.lock().push((from.clone(), method, payload.clone()));
        match method {
            ECHO => reply.send(Ok(payload)),
            HOLD => self.held.lock().push((payload, reply)),
            REFUSE => reply.send(Err(Refusal("not today".into()))),
            ZEROS => {
                let count = payload.first_chunk().map_or(0, |count| u64::from_be_bytes(*count) as usize);
                reply.send(Ok(vec![0; count].into()));
            }
            _ => drop(reply),
        }
    }
}

/// A replica that can call and be called.
pub(super) struct Replica {
    pub(super) transport: Arc<Transport>,
    pub(super) service: Arc<Recorder>,
    pub(super) hello: watch::Sender<Hello>,
}

impl Replica {
    pub(super) fn start(tls: PeerTls, member: u64) -> Replica {
        Replica::start_at(tls, member, SocketAddr::from(([127, 0, 0, 1], 0)))
    }

    pub(super) fn start_at(tls: PeerTls, member: u64, listen: SocketAddr) -> Replica {
        let said = Hello { cluster: "c".into(), member, name: format!("m{member}"), version: 1, ..Hello::default() };
        let (hello, receiver) = watch::channel(said);
        let service = Arc::<Recorder>::default();
        let clock = HybridClock::default();
        let options = TransportOptions { network: Arc::new(TlsNetwork), listen, tls, hello: receiver, clock };
        let transport = Transport::start(options, service.clone()).expect("an address to listen on");
        Replica { transport, service, hello }
    }

    pub(super) fn address(&self) -> String {
        self.transport.address().to_string()
    }
}

/// The behaviour of a proxy towards connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProxyBehavior {
    Up,
    /// Nothing passes any more, and the ends do not notice.
    Frozen,
    /// As `Frozen`, but only the connection with this number.
    Stuck(usize),
    /// Connections break, and new ones too.
    Cut,
}

/// Forwards connections to an address.
pub(super) struct Proxy {
    pub(super) address: String,
    pub(super) network: watch::Sender<ProxyBehavior>,
}

impl Proxy {
    pub(super) async fn start(to: String) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let (network, state) = watch::channel(ProxyBehavior::Up);
        tokio::spawn(async move {
            for number in 0.. {
                let Ok((inward, _)) = listener.accept().await else { return };
                tokio::spawn(pass(number, inward, to.clone(), state.clone()));
            }
        });
        Proxy { address, network }
    }
}

async fn pass(number: usize, inward: TcpStream, to: String, mut state: watch::Receiver<ProxyBehavior>) {
    let Ok(outward) = TcpStream::connect(to).await else { return };
    let (mut near_in, mut near_out) = inward.into_split();
    let (mut far_in, mut far_out) = outward.into_split();
    let there = copy(number, &mut near_in, &mut far_out, state.clone());
    let back = copy(number, &mut far_in, &mut near_out, state.clone());
    tokio::select! {
        () = there => {}
        () = back => {}
        _ = state.wait_for(|network| *network == ProxyBehavior::Cut) => {}
    }
}

async fn copy(
    number: usize,
    from: &mut tokio::net::tcp::OwnedReadHalf,
    to: &mut tokio::net::tcp::OwnedWriteHalf,
    mut state: watch::Receiver<ProxyBehavior>,
) {
    let mut buffer = vec![0; 64 << 10];
    while let Ok(count @ 1..) = tokio::io::AsyncReadExt::read(from, &mut buffer).await {
        if state
            .wait_for(|network| ![ProxyBehavior::Frozen, ProxyBehavior::Stuck(number)].contains(network))
            .await
            .is_err()
        {
            return;
        }
        if to.write_all(&buffer[..count]).await.is_err() {
            return;
        }
    }
}

/// Waits until a condition holds. Panics after two minutes.
pub(super) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..12_000 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{what}: not within two minutes");
}

/// How often a test tries what must succeed on a quiet machine. A machine that stands still for some seconds can make
/// any attempt fail, since members take each other for dead then and elect other leaders.
const ATTEMPTS: usize = 10;

/// Repeats an attempt until it succeeds, and panics when none of [`ATTEMPTS`] does.
pub(crate) async fn undisturbed(what: &str, mut succeeds: impl AsyncFnMut() -> bool) {
    for _ in 0..ATTEMPTS {
        if succeeds().await {
            return;
        }
    }
    panic!("{what}: in none of {ATTEMPTS} attempts");
}
