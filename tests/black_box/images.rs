//! The webhook for images (ImagePolicyWebhook).

use std::fs;

use serde_json::{Value, json};

use crate::plugins::await_account;
use crate::support::{DataDir, Reply, Webhook};

const PODS: &str = "/api/v1/namespaces/default/pods";
const ENABLED: &str = "--enable-admission-plugins=ImagePolicyWebhook";

/// Starts a webhook that refuses the images `bad` and `worse`, and fails for `broken`.
fn webhook() -> Webhook {
    Webhook::start(|review| {
        let images: Vec<&str> =
            review["spec"]["containers"].as_array().unwrap().iter().filter_map(|one| one["image"].as_str()).collect();
        let status = match () {
            () if images.contains(&"broken") => return Reply::of("404 Not Found", "", "no"),
            () if images.contains(&"bad") => json!({"allowed": false, "reason": "it is bad"}),
            () if images.contains(&"worse") => json!({"allowed": false}),
            () => json!({"allowed": true}),
        };
        Reply::Document(json!({"apiVersion": review["apiVersion"], "kind": "ImageReview", "status": status}))
    })
}

/// Writes a kubeconfig for a webhook, and a file of admission that names the kubeconfig. Returns the flag for that
/// file.
fn configured(data: &DataDir, server: &str, bundle: &str, more: &str) -> String {
    let folder = data.path().with_file_name("files");
    fs::create_dir_all(&folder).expect("a directory");
    let kubeconfig = folder.join("kubeconfig");
    let cluster = json!({"server": server, "certificate-authority-data": bundle});
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": cluster}], "users": [{"name": "u", "user": {"token": "secret"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    });
    fs::write(&kubeconfig, config.to_string()).expect("a file");
    let settings = format!("{{imagePolicy: {{kubeConfigFile: {}, retryBackoff: 1{more}}}}}", kubeconfig.display());
    let head = "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n";
    let file = folder.join("admission");
    fs::write(&file, format!("{head}- name: ImagePolicyWebhook\n  configuration: {settings}\n")).expect("a file");
    format!("--admission-control-config-file={}", file.display())
}

fn pod(name: &str, image: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": image}]}})
}

#[test]
fn pods_may_have_only_images_that_the_webhook_allows() {
    let (data, webhook) = (DataDir::new(), webhook());
    let url = format!("https://127.0.0.1:{}/policy/", webhook.port());
    let file = configured(&data, &url, webhook.bundle(), "");
    let server = data.start_with(&[ENABLED, &file]);
    let mut client = server.connect();
    await_account(&mut client, "default");
    client.post(PODS, &pod("a", "good")).expect(201);
    client.post(PODS, &pod("b", "good")).expect(201);
    let asked = webhook.asked();
    assert_eq!(asked.len(), 1, "the answer is kept: {asked:?}");
    let review = json!({
        "kind": "ImageReview", "apiVersion": "imagepolicy.k8s.io/v1alpha1", "metadata": {},
        "spec": {"containers": [{"image": "good"}], "namespace": "default"}, "status": {"allowed": false},
    });
    assert_eq!(asked[0], ("/policy?timeout=30s".to_owned(), review));
    assert_eq!(webhook.callers()[0].header("authorization"), ["Bearer secret"]);

    let refused = client.post(PODS, &pod("c", "bad")).expect(403);
    let why = "pods \"c\" is forbidden: image policy webhook backend denied one or more images: it is bad";
    assert_eq!(refused["message"], why);
    let refused = client.post(PODS, &pod("c", "worse")).expect(403);
    assert_eq!(refused["message"], "pods \"c\" is forbidden: one or more images rejected by webhook backend");
    let refused = client.post(PODS, &pod("c", "broken")).expect(403);
    assert_eq!(refused["message"], "pods \"c\" is forbidden: the server could not find the requested resource");

    let change = json!({"spec": {"ephemeralContainers": [{"name": "e", "image": "bad"}]}});
    let headers = [("Content-Type", "application/strategic-merge-patch+json")];
    let path = format!("{PODS}/a/ephemeralcontainers");
    let refused = client.call("PATCH", &path, &headers, change.to_string().as_bytes()).unwrap();
    assert_eq!(refused.status, 403, "{refused:?}");
}

#[test]
fn a_failing_webhook_refuses_pods_unless_the_configuration_allows_them() {
    let data = DataDir::new();
    let refusal = data.try_start_with(&[ENABLED]).err().expect("a refusal");
    assert!(refusal.messages.contains("ImagePolicyWebhook has no webhook"), "{}", refusal.messages);
    let url = "https://127.0.0.1:1/policy";
    let file = configured(&data, url, "", ", allowTTL: 3000, denyTTL: soon");
    let refusal = data.try_start_with(&[ENABLED, &file]).err().expect("a refusal");
    assert_eq!(refusal.code, Some(2), "{}", refusal.messages);
    for part in ["imagePolicy.allowTTL", "between 1s and 30m0s, got 50m0s", "imagePolicy.denyTTL"] {
        assert!(refusal.messages.contains(part), "{}", refusal.messages);
    }
    let unreachable =
        "Post \"https://127.0.0.1:1/policy?timeout=30s\": dial tcp 127.0.0.1:1: connect: connection refused";
    for (more, code) in [("", 403), (", defaultAllow: true", 201)] {
        let file = configured(&data, url, "", more);
        let server = data.start_with(&[ENABLED, &file]);
        let mut client = server.connect();
        await_account(&mut client, "default");
        let answer = client.post(PODS, &pod("a", "i")).expect(code);
        if code == 403 {
            assert_eq!(answer["message"], format!("pods \"a\" is forbidden: {unreachable}"));
        }
    }
}
