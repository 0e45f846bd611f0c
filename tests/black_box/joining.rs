//! A node joins by a bootstrap token: it verifies the cluster by the signed ConfigMap, and gets a client certificate.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use serde_json::{Value, json};

use crate::cluster::until;
use crate::support::called::send;
use crate::support::{Connection, DataDir};

const MAP: &str = "/api/v1/namespaces/kube-public/configmaps";
const SECRETS: &str = "/api/v1/namespaces/kube-system/secrets";
const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
const BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
const TOKEN: [(&str, &str); 1] = [("Authorization", "Bearer abcdef.0123456789abcdef")];

fn create_token(client: &mut Connection) {
    let data = json!({
        "token-id": "abcdef", "token-secret": "0123456789abcdef", "usage-bootstrap-signing": "true",
        "usage-bootstrap-authentication": "true",
    });
    let secret = json!({
        "metadata": {"name": "bootstrap-token-abcdef"}, "type": "bootstrap.kubernetes.io/token", "stringData": data,
    });
    client.post(SECRETS, &secret).expect(201);
}

/// Returns a request for a certificate of a node.
fn request(name: &str, key: &KeyPair, signer: &str, alternatives: &[&str], usages: &[&str]) -> Value {
    let alternatives: Vec<String> = alternatives.iter().copied().map(String::from).collect();
    let mut params = CertificateParams::new(alternatives).expect("names");
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::OrganizationName, "system:nodes");
    params.distinguished_name.push(DnType::CommonName, "system:node:n1");
    let pem = params.serialize_request(key).expect("a request").pem().expect("PEM");
    json!({"metadata": {"name": name}, "spec": {
        "request": STANDARD.encode(pem), "signerName": format!("kubernetes.io/{signer}"), "usages": usages,
        "expirationSeconds": 3600,
    }})
}

fn condition(client: &mut Connection, name: &str) -> (Value, Value) {
    let request = client.get(&format!("{REQUESTS}/{name}")).expect(200);
    let last = request["status"]["conditions"].as_array().and_then(|all| all.last()).cloned().unwrap_or_default();
    (last, request["status"]["certificate"].clone())
}

#[test]
fn the_map_is_signed_by_each_token() {
    let data = DataDir::new();
    let server = data.start();
    let mut client = server.connect();
    client.post(MAP, &json!({"metadata": {"name": "cluster-info"}, "data": {"kubeconfig": "a"}})).expect(201);
    create_token(&mut client);
    let path = format!("{MAP}/cluster-info");
    let signature = |client: &mut Connection| client.get(&path).expect(200)["data"]["jws-kubeconfig-abcdef"].clone();
    let expected = "eyJhbGciOiJIUzI1NiIsImtpZCI6ImFiY2RlZiJ9..CoZmgliQrL6yXSqrrxsyRrBUY12-qGAT34CgalrvfUw";
    until("the map is signed", || signature(&mut client) == expected);
    send(&mut client, "PATCH", &path, &[], r#"{"data": {"kubeconfig": "b"}}"#).expect(200);
    until("a changed map is signed again", || signature(&mut client) != expected);
    client.delete(&format!("{SECRETS}/bootstrap-token-abcdef")).expect(200);
    until("the signature of a token that is gone is removed", || signature(&mut client).is_null());
}

#[test]
fn a_node_that_joins_gets_its_certificate() {
    let data = DataDir::new();
    let server = data.start_with(&["--enable-bootstrap-token-auth"]);
    let mut client = server.connect();
    create_token(&mut client);
    // Bindings take effect in their order. The node may send its request once the last one has.
    for role in ["system:certificates.k8s.io:certificatesigningrequests:nodeclient", "system:node-bootstrapper"] {
        let binding = json!({"metadata": {"name": role},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:bootstrappers"}]});
        client.post(BINDINGS, &binding).expect(201);
    }
    let key = KeyPair::generate().expect("a key");
    let asked = request("n1", &key, "kube-apiserver-client-kubelet", &[], &["client auth", "digital signature"]);
    let mut node = server.connect_anonymously();
    until("the bindings have taken effect", || {
        send(&mut node, "POST", REQUESTS, &TOKEN, &asked.to_string()).status == 201
    });
    until("the certificate is issued", || condition(&mut client, "n1").1.is_string());
    let (approved, certificate) = condition(&mut client, "n1");
    assert_eq!((&approved["type"], &approved["reason"]), (&json!("Approved"), &json!("AutoApproved")));
    let certificate = STANDARD.decode(certificate.as_str().expect("text")).expect("base64");
    let credentials = server.credentials();
    let shown = credentials.with_certificate(&certificate, &key.serialize_pem());
    let mut node = Connection::open(credentials.address, &shown).expect("a connection");
    let review = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let user = node.post(review, &json!({})).expect(201)["status"]["userInfo"].clone();
    assert_eq!(user["username"], "system:node:n1");
    assert_eq!(user["groups"], json!(["system:nodes", "system:authenticated"]));
}

#[test]
fn requests_that_a_signer_refuses_fail_and_others_are_issued() {
    let data = DataDir::new();
    let server = data.start();
    let mut client = server.connect();
    let key = KeyPair::generate().expect("a key");
    let serving = ["server auth", "digital signature"];
    client.post(REQUESTS, &request("bad", &key, "kubelet-serving", &[], &serving)).expect(201);
    client.post(REQUESTS, &request("good", &key, "kubelet-serving", &["n1.example"], &serving)).expect(201);
    for name in ["bad", "good"] {
        let mut approved = client.get(&format!("{REQUESTS}/{name}")).expect(200);
        assert!(approved["status"]["conditions"].is_null(), "serving certificates are approved by administrators");
        approved["status"]["conditions"] = json!([{"type": "Approved", "status": "True", "reason": "r"}]);
        client.put(&format!("{REQUESTS}/{name}/approval"), &approved).expect(200);
    }
    until("the certificate is issued", || condition(&mut client, "good").1.is_string());
    until("the other request has failed", || condition(&mut client, "bad").0["type"] == "Failed");
    let (failed, certificate) = condition(&mut client, "bad");
    assert_eq!(failed["reason"], "SignerValidationFailure");
    assert_eq!(failed["message"], "DNS or IP subjectAltName is required");
    assert!(certificate.is_null());
}
