//! Nodes and webhooks that the server can reach only through a proxy.

use std::fs;
use std::io::{Read as _, Write as _, copy};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::thread::spawn;

use serde_json::json;

use crate::cluster::until;
use crate::streams::SPDY;
use crate::support::{Backend, DataDir};

/// Starts an HTTP proxy that connects every client to this port, whatever address the client requests. Returns the port
/// of the proxy, and a channel of the requested addresses.
fn proxy(port: u16) -> (u16, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let own = listener.local_addr().expect("an address").port();
    let (asked, addresses) = channel();
    spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let asked = asked.clone();
            spawn(move || {
                let mut client = client;
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    let mut byte = [0];
                    client.read_exact(&mut byte).expect("a head");
                    head.extend(byte);
                }
                let head = String::from_utf8(head).expect("text");
                let address = head.strip_prefix("CONNECT ").and_then(|rest| rest.split(' ').next());
                asked.send(address.expect("a request to connect").to_owned()).expect("a test that listens");
                client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").expect("an answer");
                let server = TcpStream::connect(("127.0.0.1", port)).expect("the node");
                let (mut up, mut down) = (client.try_clone().expect("a socket"), server.try_clone().expect("a socket"));
                let upward = spawn(move || {
                    let _ = copy(&mut client, &mut down); // either side may close its connection
                    let _ = down.shutdown(Shutdown::Both);
                });
                let mut server = server;
                let _ = copy(&mut server, &mut up);
                let _ = up.shutdown(Shutdown::Both);
                upward.join().expect("no panic");
            });
        }
    });
    (own, addresses)
}

#[test]
fn nodes_are_reached_through_the_proxy_of_their_network_and_webhooks_by_url_directly() {
    let node = Backend::start(|exchange| match exchange.line().starts_with("GET /containerLogs/default/p/c") {
        true => exchange.answer("200 OK", "", "through the proxy"),
        false => {
            exchange.switch("Upgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: v4.channel.k8s.io\r\n")?;
            let bytes = exchange.read_some()?;
            exchange.send(&bytes)
        }
    });
    let (port, addresses) = proxy(node.port());
    let directory = DataDir::new();
    let file = directory.path().with_extension("egress.yaml");
    let settings = format!(
        "apiVersion: apiserver.k8s.io/v1beta1\nkind: EgressSelectorConfiguration\negressSelections:\n- name: cluster\n  \
         connection:\n    proxyProtocol: HTTPConnect\n    transport: {{tcp: {{url: 'http://127.0.0.1:{port}'}}}}\n"
    );
    fs::write(&file, settings).expect("a file");
    let server = directory.start_with(&["--egress-selector-config-file", file.to_str().expect("a path")]);
    let mut client = server.connect_for_pods();
    let status = json!({
        "addresses": [{"type": "Hostname", "address": "node.that.only.the.proxy.knows"}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 10_250}},
    });
    let made = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": status});
    client.post("/api/v1/nodes", &made).expect(201);
    let spec = json!({"nodeName": "n", "containers": [{"name": "c", "image": "i"}]});
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec});
    client.post("/api/v1/namespaces/default/pods", &pod).expect(201);

    let log = client.get("/api/v1/namespaces/default/pods/p/log");
    assert_eq!((log.status, &*log.text()), (200, "through the proxy"));
    assert_eq!(addresses.recv().expect("an address"), "node.that.only.the.proxy.knows:10250");

    let exec = "/api/v1/namespaces/default/pods/p/exec?command=sh&stdin=true&stdout=true";
    let mut stream = server.connect();
    assert_eq!(stream.upgrade("POST", exec, &SPDY).expect("an answer").status, 101);
    stream.send(b"both ways").expect("a stream");
    assert_eq!(stream.read_bytes(9).expect("the same"), b"both ways");
    assert_eq!(addresses.recv().expect("an address"), "node.that.only.the.proxy.knows:10250");

    // The network of webhooks by URL has no proxy.
    let webhook = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "w"},
        "webhooks": [{
            "name": "w.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "clientConfig": {"url": "https://127.0.0.1:1/"},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["secrets"]}],
        }],
    });
    let path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    client.post(path, &webhook).expect(201);
    let refusal = "dial tcp 127.0.0.1:1: connect: connection refused";
    let mut post = || client.post("/api/v1/namespaces/default/secrets?dryRun=All", &json!({"metadata": {"name": "s"}}));
    until("the webhook is called directly", || post().text().contains(refusal));
    assert!(addresses.try_recv().is_err(), "nothing else went through the proxy");
}

#[test]
fn a_file_with_an_error_ends_the_start() {
    let directory = DataDir::new();
    let file = directory.path().with_extension("egress.yaml");
    fs::write(
        &file,
        "apiVersion: apiserver.k8s.io/v1beta1\nkind: EgressSelectorConfiguration\negressSelections: [{name: a}]\n",
    )
    .expect("a file");
    let flags = ["--egress-selector-config-file", file.to_str().expect("a path")];
    let refusal = directory.try_start_with(&flags).err().expect("a refusal");
    assert!(refusal.messages.contains("service.connection.protocol: Unsupported value"), "{}", refusal.messages);
}
