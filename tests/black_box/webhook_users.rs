//! The users as whom the server calls webhooks: they stand in kubeconfigs that `--admission-control-config-file` names.

use std::fs;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{CertificateParams, KeyPair};
use serde_json::json;

use crate::support::{Caller, DataDir, Webhook};
use crate::webhooks::{MAPS, MUTATING, VALIDATING, answer, but_probes, configure, hook, map};

/// Writes the file for the flag, with one kubeconfig for mutating webhooks and one for validating webhooks.
fn configuration(folder: &Path, mutating: &str, validating: &str) -> String {
    let mut text = "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n".to_owned();
    for (plugin, users) in [("MutatingAdmissionWebhook", mutating), ("ValidatingAdmissionWebhook", validating)] {
        let kubeconfig = folder.join(plugin);
        fs::write(&kubeconfig, format!("apiVersion: v1\nkind: Config\nusers: {users}\n")).expect("a file");
        let named = "apiVersion: apiserver.config.k8s.io/v1, kind: WebhookAdmissionConfiguration, kubeConfigFile: ";
        text.push_str(&format!("- name: {plugin}\n  configuration: {{{named}{}}}\n", kubeconfig.display()));
    }
    let path = folder.join("admission");
    fs::write(&path, text).expect("a file");
    path.display().to_string()
}

/// Returns the callers of a webhook at this path.
fn callers(webhook: &Webhook, path: &str) -> Vec<Caller> {
    let (asked, callers) = (webhook.asked(), webhook.callers());
    let both = asked.into_iter().zip(callers);
    both.filter(|((own, _), _)| own.starts_with(path)).map(|(_, caller)| caller).collect()
}

#[test]
fn credentials_are_sent_only_to_their_webhooks() {
    let start = || but_probes(|review| answer(review, true, json!({})));
    let (webhook, other) = (start(), start());
    let key = KeyPair::generate().expect("a key");
    let certificate = CertificateParams::new(vec!["client".into()]).expect("a name");
    let certificate = certificate.self_signed(&key).expect("a certificate");
    let data = DataDir::new();
    let folder = data.path().with_file_name("files");
    fs::create_dir_all(&folder).expect("a directory");
    fs::write(folder.join("token"), "secret\n").expect("a file");
    let mutating = json!([{"name": format!("127.0.0.1:{}", webhook.port()),
        "user": {"token": "older", "tokenFile": "token", "as": "jane", "as-groups": ["g", "h"]}}]);
    let (pem, key) = (STANDARD.encode(certificate.pem()), STANDARD.encode(key.serialize_pem()));
    let validating = json!([{"name": "*", "user": {"client-certificate-data": pem, "client-key-data": key}}]);
    let file = configuration(&folder, &mutating.to_string(), &validating.to_string());
    let server = data.start_with(&["--admission-control-config-file", &file]);
    let mut client = server.connect();
    configure(&mut client, MUTATING, "m", &[hook("m.example.com", &json!([]), json!({}))], &webhook);
    configure(&mut client, MUTATING, "o", &[hook("o.example.com", &json!([]), json!({}))], &other);
    configure(&mut client, VALIDATING, "v", &[hook("v.example.com", &json!([]), json!({}))], &webhook);
    client.post(MAPS, &map("a")).expect(201);
    for caller in callers(&webhook, "/m") {
        assert_eq!(caller.header("authorization"), ["Bearer secret"], "{caller:?}");
        assert_eq!(
            (caller.header("impersonate-user"), caller.header("impersonate-group")),
            (vec!["jane"], vec!["g", "h"])
        );
        assert_eq!(caller.certificate, None, "{caller:?}");
    }
    let shown = Some(certificate.der().to_vec());
    for caller in callers(&webhook, "/v") {
        assert_eq!((caller.header("authorization"), &caller.certificate), (vec![], &shown), "{}", caller.head);
        assert!(!caller.head.to_lowercase().contains("impersonate"), "{}", caller.head);
    }
    for caller in callers(&other, "/o") {
        assert_eq!((caller.header("authorization"), &caller.certificate), (vec![], &None), "{}", caller.head);
    }
    assert!(
        [callers(&webhook, "/m"), callers(&webhook, "/v"), callers(&other, "/o")].iter().all(|all| !all.is_empty())
    );
}

#[test]
fn unusable_users_prevent_the_start() {
    let data = DataDir::new();
    let folder = data.path().with_file_name("files");
    fs::create_dir_all(&folder).expect("a directory");
    for (user, expected) in [
        (
            json!({"exec": {"command": "x", "apiVersion": "client.authentication.k8s.io/v1"}}),
            "exec is not supported here",
        ),
        (json!({"auth-provider": {"name": "x"}}), "auth-provider is not supported here"),
        (json!({"tokenFile": "absent"}), "the kubeconfig cannot be read"),
        (json!({"client-certificate-data": "YQ=="}), "client-key is missing"),
    ] {
        let users = json!([{"name": "*", "user": user}]).to_string();
        let file = configuration(&folder, &users, "[]");
        let refusal = data.try_start_with(&["--admission-control-config-file", &file]).err().expect("a refusal");
        assert_eq!(refusal.code, Some(2), "{}", refusal.messages);
        assert!(refusal.messages.contains(expected), "{expected} is not in {}", refusal.messages);
        assert!(!refusal.messages.contains("--kubeconfig"), "{}", refusal.messages);
    }
}
