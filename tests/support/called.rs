//! Runs the program under the name kube-apiserver or etcd, with certificates as other tools prepare them.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, PublicKeyData as _};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};

use super::client::{Answer, Connection};
use super::{PATIENCE, ports};

const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// A directory with the certificate authorities, certificates and keys that other tools prepare for an API server.
pub struct Prepared {
    directory: tempfile::TempDir,
    /// The port of the API server, and two ports of etcd.
    pub ports: Vec<SocketAddr>,
    clients: Issuer<'static, KeyPair>,
}

/// Makes a certificate authority, and writes its certificate to a file.
fn authority(directory: &Path, name: &str) -> Issuer<'static, KeyPair> {
    let key = KeyPair::generate().expect("a key");
    let mut params = CertificateParams::new(Vec::new()).expect("no names");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, name);
    let certificate = params.self_signed(&key).expect("a certificate");
    fs::write(directory.join(format!("{name}.crt")), certificate.pem()).expect("a file");
    Issuer::new(params, key)
}

fn params(name: &str, groups: &[&str]) -> CertificateParams {
    let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned(), "localhost".to_owned()]).expect("names");
    params.distinguished_name.push(DnType::CommonName, name);
    for group in groups {
        params.distinguished_name.push(DnType::OrganizationName, *group);
    }
    params
}

/// A file for `--egress-selector-config-file`, as hosted control planes have it.
const EGRESS: &str = "\
apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- name: cluster
  connection:
    proxyProtocol: GRPC
    transport:
      uds:
        udsName: /run/konnectivity/konnectivity-server.socket
";

impl Prepared {
    pub fn new() -> Prepared {
        let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
        let certs = directory.path().join("certs");
        fs::create_dir_all(&certs).expect("a directory");
        let clients = authority(&certs, "client-cert-auth-ca");
        let proxies = authority(&certs, "front-proxy-ca");
        let prepared = Prepared { directory, ports: ports::free(3), clients };
        prepared.issue("apiserver", &params("kube-apiserver", &[]), &prepared.clients);
        prepared.issue("admin", &params("admin", &["system:masters"]), &prepared.clients);
        prepared.issue("front-proxy-client", &params("front-proxy-client", &[]), &proxies);
        prepared.issue("front-proxy-other", &params("somebody", &[]), &proxies);
        let key = KeyPair::generate().expect("a key");
        let certificate = params("sa-signer", &[]).self_signed(&key).expect("a certificate");
        let body = STANDARD.encode(key.subject_public_key_info());
        let public = format!("-----BEGIN PUBLIC KEY-----\n{body}\n-----END PUBLIC KEY-----\n");
        for (name, pem) in
            [("sa-signer.key", key.serialize_pem()), ("sa-signer.crt", certificate.pem()), ("sa.pub", public)]
        {
            fs::write(certs.join(name), pem).expect("a file");
        }
        fs::write(certs.join("egress.yaml"), EGRESS).expect("a file");
        prepared
    }

    /// Returns the directory of the certificates.
    pub fn certs(&self) -> PathBuf {
        self.directory.path().join("certs")
    }

    /// Returns the data directory.
    pub fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    fn issue(&self, file: &str, params: &CertificateParams, issuer: &Issuer<'static, KeyPair>) {
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, issuer).expect("a certificate");
        fs::write(self.certs().join(format!("{file}.crt")), certificate.pem()).expect("a file");
        fs::write(self.certs().join(format!("{file}.key")), key.serialize_pem()).expect("a file");
    }

    /// Issues a client certificate for a user, into files of this name.
    pub fn admit(&self, file: &str, user: &str, groups: &[&str]) {
        self.issue(file, &params(user, groups), &self.clients);
    }

    /// Fills paths and ports into a recorded flag.
    fn filled(&self, flag: &str) -> String {
        let port = |index: usize| self.ports[index].port().to_string();
        let path = |path: PathBuf| path.display().to_string();
        flag.replace("$C", &path(self.certs()))
            .replace("$D", &path(self.data()))
            .replace("$S", &port(0))
            .replace("$P", &port(1))
            .replace("$Q", &port(2))
    }

    /// Returns a command that runs the program under another name.
    pub fn command(&self, name: &str, flags: &[&str]) -> Command {
        let link = self.directory.path().join(name);
        if !link.exists() {
            std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_flotilla"), &link).expect("a link");
        }
        let mut command = Command::new(link);
        command.args(flags.iter().map(|flag| self.filled(flag))).env_remove("FLOTILLA_DATA_DIR");
        command.env_remove("KUBECONFIG");
        command
    }

    /// Returns a command that runs another program.
    pub fn other(&self, program: &Path, flags: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(flags.iter().map(|flag| self.filled(flag))).stdin(Stdio::null());
        command
    }

    /// Starts another program.
    pub fn start_other(&self, program: &Path, flags: &[&str]) -> Called {
        let name = program.file_name().expect("a name").to_string_lossy();
        self.spawn(self.other(program, flags), &format!("other-{name}"))
    }

    /// Runs the program under another name until it ends. Returns its output and exit status.
    pub fn output(&self, name: &str, flags: &[&str]) -> Output {
        self.command(name, flags).stdin(Stdio::null()).output().expect("the program can be run")
    }

    /// Starts the program under another name.
    pub fn start(&self, name: &str, flags: &[&str]) -> Called {
        self.spawn(self.command(name, flags), name)
    }

    fn spawn(&self, mut command: Command, name: &str) -> Called {
        let messages = self.directory.path().join(format!("{name}.log"));
        let log = File::create(&messages).expect("a file for messages");
        let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        Called { child: command.spawn().expect("the program can be run"), messages }
    }

    /// Connects to the API server with the client certificate of this name, or with none.
    pub fn connect(&self, client: Option<&str>) -> std::io::Result<Connection> {
        let read = |name: String| fs::read(self.certs().join(name)).expect("a file");
        let mut roots = RootCertStore::empty();
        let root = CertificateDer::from_pem_slice(&read("client-cert-auth-ca.crt".into())).expect("a certificate");
        roots.add(root).expect("an authority");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let builder = builder.expect("protocol versions").with_root_certificates(roots);
        let config = match client {
            None => builder.with_no_client_auth(),
            Some(name) => {
                let certificate = CertificateDer::from_pem_slice(&read(format!("{name}.crt"))).expect("a certificate");
                let key = PrivateKeyDer::from_pem_slice(&read(format!("{name}.key"))).expect("a key");
                builder.with_client_auth_cert(vec![certificate], key).expect("a matching key")
            }
        };
        Connection::open(self.ports[0], &Arc::new(config))
    }

    /// Waits until the API server is ready, and connects with the client certificate of this name.
    pub fn ready(&self, called: &mut Called, client: &str) -> Connection {
        called.until(|| {
            let mut connection = self.connect(Some(client)).ok()?;
            let answer = connection.call("GET", "/readyz", &[], b"").ok()?;
            (answer.status == 200).then_some(connection)
        })
    }
}

/// A running process. It is killed when this value is dropped.
pub struct Called {
    child: Child,
    messages: PathBuf,
}

impl Called {
    /// Returns the standard error of the process so far.
    pub fn messages(&self) -> String {
        fs::read_to_string(&self.messages).unwrap_or_default()
    }

    /// Repeats an attempt until it returns a value. Panics if the process ends before that, or if that takes too long.
    pub fn until<T>(&mut self, mut attempt: impl FnMut() -> Option<T>) -> T {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(found) = attempt() {
                return found;
            }
            let ended = self.child.try_wait().expect("a child");
            assert!(ended.is_none(), "the process ended with {ended:?}: {}", self.messages());
            assert!(Instant::now() < deadline, "not in time: {}", self.messages());
            sleep(POLL_INTERVAL);
        }
    }

    /// Sends SIGTERM, waits for the end, and returns the exit status.
    pub fn terminate(mut self) -> ExitStatus {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().expect("kill").success());
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().expect("a child") {
                return status;
            }
            assert!(Instant::now() < deadline, "still running: {}", self.messages());
            sleep(POLL_INTERVAL);
        }
    }
}

impl Drop for Called {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a GET over plain HTTP and returns the whole answer. Returns `None` if no answer comes.
pub fn plain(address: SocketAddr, path: &str) -> Option<String> {
    use std::io::{Read as _, Write as _};
    let mut socket = std::net::TcpStream::connect_timeout(&address, PATIENCE).ok()?;
    socket.set_read_timeout(Some(PATIENCE)).ok()?;
    write!(socket, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").ok()?;
    let mut text = String::new();
    socket.read_to_string(&mut text).ok()?;
    Some(text)
}

/// Sends a JSON document with additional headers. A PATCH is a merge patch.
pub fn send(client: &mut Connection, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    let media = match method {
        "PATCH" => "application/merge-patch+json",
        _ => "application/json",
    };
    let mut all = vec![("Content-Type", media)];
    all.extend_from_slice(headers);
    client.call(method, path, &all, body.as_bytes()).expect("an answer")
}
