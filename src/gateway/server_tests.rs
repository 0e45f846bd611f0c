use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use clap::{CommandFactory, FromArgMatches, Parser};
use flotilla_proto::value;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use super::*;
use crate::access::{Attributes, User};
use crate::boot::BootError;
use crate::config::Config;
use crate::drain::DrainBegin;
use crate::registry::Incoming;
use crate::request::{Caller, WriteOptions};
use crate::scratch::Scratch;
use crate::tables::Target;

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[derive(Parser)]
struct Flags {
    #[command(flatten)]
    config: Config,
}

/// Allows `ann` everything.
async fn admit_ann(registry: &Registry) {
    let bindings = registry.tables.resources.of_resource(rbac::GROUP, "clusterrolebindings").unwrap();
    let value = value!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "ann"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "ann"}],
    });
    let target = Target::resource(&bindings, "");
    let master = User { groups: vec!["system:masters".into()], ..User::default() };
    let (incoming, options) = (Incoming { value, ..Incoming::default() }, WriteOptions::default());
    registry.create(target, incoming, &options, &mut Caller::new(Arc::new(master), "test")).await.unwrap();
    let ann = User { name: "ann".into(), ..User::default() };
    while !registry.tables.authorizer.allows_at_once(&ann, &Attributes::Path { verb: "get", path: "/metrics" }) {
        actix_web::rt::time::sleep(Duration::from_millis(1)).await;
    }
}

/// A server for `ann`, who is no administrator.
struct Server {
    directory: Scratch,
    address: SocketAddr,
    /// Whether strangers could ask for the version as soon as the server had begun: a role that it creates allows it.
    knew_roles: bool,
    begin: DrainBegin,
    thread: JoinHandle<Result<(), BootError>>,
}

impl Server {
    fn start(flags: &[&str]) -> Self {
        let directory = Scratch::new();
        let tokens = directory.join("tokens.csv");
        std::fs::write(&tokens, "token-of-ann,ann,1\n").unwrap();
        let (data, tokens) = (directory.join("data").display().to_string(), tokens.display().to_string());
        let fixed = ["flotilla", "--listen", "127.0.0.1:0", "--workers", "1", "--data-dir", &data];
        let args = [&fixed[..], &["--token-auth-file", &tokens], flags].concat();
        let config = Flags::from_arg_matches(&Flags::command().try_get_matches_from(args).unwrap()).unwrap().config;
        let (begin, drain) = Drain::new();
        let (begun, receiver) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            actix_web::rt::System::new().block_on(async move {
                let boot = Boot::open(config, drain).await?;
                let gateway = Gateway::start(&boot).await?;
                let stranger = User { groups: vec!["system:unauthenticated".into()], ..User::default() };
                let version = Attributes::Path { verb: "get", path: "/version" };
                let knew_roles = gateway.registry.tables.authorizer.allows_at_once(&stranger, &version);
                admit_ann(&gateway.registry).await;
                begun.send((boot.address, knew_roles)).unwrap();
                let routes = gateway.routes();
                boot.serve(routes, move || gateway.is_idle()).await
            })
        });
        let (address, knew_roles) = receiver.recv().unwrap();
        Self { directory, address, knew_roles, begin, thread }
    }

    fn connect(&self) -> StreamOwned<ClientConnection, TcpStream> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(self.directory.join("data/pki/ca.crt")).unwrap()).unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let session = ClientConnection::new(Arc::new(config), "localhost".try_into().unwrap()).unwrap();
        StreamOwned::new(session, TcpStream::connect(self.address).unwrap())
    }

    fn call(&self, method: &str, path: &str, body: &str) -> String {
        let mut stream = self.connect();
        stream.write_all((head(method, path, body.len()) + body).as_bytes()).unwrap();
        answer(stream)
    }

    fn stop(self) {
        self.begin.begin();
        self.thread.join().unwrap().unwrap();
    }
}

fn head(method: &str, path: &str, length: usize) -> String {
    format!(
        "{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer token-of-ann\r\n\
         Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
    )
}

fn answer(mut stream: StreamOwned<ClientConnection, TcpStream>) -> String {
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

/// Registers two webhooks for config maps: one without a server for those with the label `probe`, and one that never
/// answers for those with the label `slow`.
fn ask_about_config_maps(server: &Server, silent: SocketAddr) {
    let hook = |label: &str, url: &str, policy: &str| {
        value!({
            "name": (format!("{label}.example.com")), "clientConfig": {"url": url}, "failurePolicy": policy,
            "sideEffects": "None", "admissionReviewVersions": ["v1"], "timeoutSeconds": 30,
            "objectSelector": {"matchLabels": {(label): "1"}},
            "rules": [{
                "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"],
            }],
        })
    };
    let hooks =
        vec![hook("probe", "https://127.0.0.1:1", "Fail"), hook("slow", &format!("https://{silent}"), "Ignore")];
    let configuration = value!({"metadata": {"name": "hooks"}, "webhooks": (hooks)});
    let text = String::from_utf8(flotilla_proto::json::to_vec(&configuration)).unwrap();
    let path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    let created = server.call("POST", path, &text);
    assert!(created.starts_with("HTTP/1.1 201"), "{created}");
    let probe = r#"{"metadata":{"name":"probe","labels":{"probe":"1"}}}"#;
    while server.call("POST", &format!("{CONFIG_MAPS}?dryRun=All"), probe).starts_with("HTTP/1.1 201") {}
}

#[test]
fn a_server_that_has_begun_knows_the_roles_that_it_has_created() {
    let server = Server::start(&[]);
    assert!(server.knew_roles);
    server.stop();
}

#[test]
fn requests_above_the_bound_are_refused_with_429() {
    let server = Server::start(&["--enable-priority-and-fairness=false", "--max-mutating-requests-inflight", "1"]);
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    ask_about_config_maps(&server, silent.local_addr().unwrap());
    let body = |name: &str| format!("{{\"metadata\":{{\"name\":\"{name}\"}}}}");
    let refused_beside = |name: String| {
        let first = format!("{{\"metadata\":{{\"name\":\"{name}\",\"labels\":{{\"slow\":\"1\"}}}}}}");
        let mut slow = server.connect();
        slow.write_all((head("POST", CONFIG_MAPS, first.len()) + &first).as_bytes()).unwrap();
        slow.flush().unwrap();
        let began = Instant::now();
        while began.elapsed() < limits::OUTBOUND_HANDSHAKE_TIMEOUT {
            let answered = server.call("POST", &format!("{CONFIG_MAPS}?dryRun=All"), &body("b"));
            // The server may not have seen the first request yet.
            if !answered.starts_with("HTTP/1.1 201") {
                return Some((slow, answered));
            }
        }
        // The server waits no longer for the webhook, for instance because this thread did not run for a while.
        assert!(answer(slow).starts_with("HTTP/1.1 201"));
        None
    };
    let (slow, refused) = (0..20).find_map(|at| refused_beside(format!("a{at}"))).expect("a request is refused");
    assert!(refused.starts_with("HTTP/1.1 429"), "{refused}");
    assert!(refused.contains("retry-after: 1\r\n"), "{refused}");
    assert!(refused.contains("content-type: text/plain; charset=utf-8\r\n"), "{refused}");
    assert!(refused.ends_with("\r\n\r\nToo many requests, please try again later.\n"), "{refused}");
    let read = server.call("GET", CONFIG_MAPS, "");
    assert!(read.starts_with("HTTP/1.1 200"), "reads have a bound of their own: {read}");
    let metrics = server.call("GET", "/metrics", "");
    let labels = "group=\"\",resource=\"configmaps\",scope=\"resource\",subresource=\"\",verb=\"POST\",version=\"v1\"";
    let counted = format!("apiserver_request_terminations_total{{code=\"429\",component=\"apiserver\",{labels}}} 1");
    assert!(metrics.contains(&counted), "{metrics}");

    drop(silent);
    let created = answer(slow);
    assert!(created.starts_with("HTTP/1.1 201"), "{created}");
    let created = server.call("POST", CONFIG_MAPS, &body("b"));
    assert!(created.starts_with("HTTP/1.1 201"), "{created}");
    server.stop();
}
