//! Writes kubeconfig files.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::Leaf;

/// Returns a kubeconfig of one cluster and one user with a client certificate.
///
/// `trusted` are the authorities to trust, in PEM. Texts are written as JSON strings, which are valid YAML.
pub fn kubeconfig(cluster: &str, server: &str, trusted: &str, user: &str, leaf: &Leaf) -> String {
    let text = |value: &str| serde_json::Value::from(value).to_string();
    let data = |value: &str| STANDARD.encode(value);
    let context = format!("{user}@{cluster}");
    format!(
        "apiVersion: v1\n\
         kind: Config\n\
         clusters:\n\
         - name: {cluster}\n  \
           cluster:\n    \
             certificate-authority-data: {trusted}\n    \
             server: {server}\n\
         contexts:\n\
         - name: {context}\n  \
           context:\n    \
             cluster: {cluster}\n    \
             user: {user}\n\
         current-context: {context}\n\
         users:\n\
         - name: {user}\n  \
           user:\n    \
             client-certificate-data: {certificate}\n    \
             client-key-data: {key}\n",
        cluster = text(cluster),
        server = text(server),
        context = text(&context),
        user = text(user),
        trusted = data(trusted),
        certificate = data(leaf.pem()),
        key = data(&leaf.key_pem()),
    )
}
