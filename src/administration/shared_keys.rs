//! The command `flotilla pki`: authorities and keys that the servers of a cluster share, made before the first of them
//! starts.

use std::net::{IpAddr, Ipv6Addr};
use std::path::PathBuf;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flotilla_proto::value;
use flotilla_proto::value::{Map, Value};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use super::{Client, ClientError, Kubeconfig};
use crate::access::tokens::{KeyError, SpareKey};
use crate::pki::{self, PkiError, read_credential};
use crate::terminal::report;

/// The directory in which a pod finds its credentials and the CA to trust (Kubernetes documentation, "Accessing the
/// Kubernetes API from a Pod").
const ACCOUNT_DIR: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// Make the authorities and keys that the servers of a cluster share.
#[derive(Debug, clap::Args)]
pub struct SharedKeys {
    /// Directory of the authorities and keys. Existing files stay, and missing ones are made.
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
    /// URL under which clients reach the cluster, for the kubeconfig.
    #[arg(long, value_name = "URL", default_value = "https://127.0.0.1:6443")]
    server: String,
    /// File for a kubeconfig with all rights [default: `admin.kubeconfig` in the directory].
    #[arg(long, value_name = "FILE")]
    admin_kubeconfig: Option<PathBuf>,
    /// In a pod: store the files and the kubeconfig in this Secret of the pod's namespace. An existing Secret stays.
    #[arg(long, value_name = "NAME")]
    to_secret: Option<String>,
}

/// The reasons why the keys could not be created or stored.
#[derive(Debug, thiserror::Error)]
pub enum SharedKeysError {
    /// A file cannot be read or written, or is damaged.
    #[error(transparent)]
    Pki(#[from] PkiError),
    /// The key of service accounts cannot be made.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The process does not run in a pod with a service account.
    #[error("--to-secret needs a pod with a service account: {0}")]
    NoPod(String),
    /// The cluster that runs the pod refuses the request, or does not answer.
    #[error("cannot store the Secret {name}")]
    Secret {
        /// Its name.
        name: String,
        /// The cause.
        source: ClientError,
    },
}

impl SharedKeys {
    /// Creates the missing files, and stores all of them in the Secret if one is named. Prints where they are.
    ///
    /// # Errors
    /// See [`SharedKeysError`]. Files that were created before the error stay.
    pub fn run(&self) -> Result<(), SharedKeysError> {
        // The pod is looked up first: without a pod, no keys are made.
        let pod = self.to_secret.as_deref().map(|name| Ok::<_, SharedKeysError>((name, Pod::this()?))).transpose()?;
        let kubeconfig = self.admin_kubeconfig.clone().unwrap_or_else(|| self.dir.join("admin.kubeconfig"));
        pki::make_shared(&self.dir, &kubeconfig, &self.server)?;
        SpareKey::prepare(&self.dir).open(&self.dir)?;
        let Some((name, pod)) = pod else {
            report(format_args!(
                "{} holds the keys that the servers share; {} has all rights",
                self.dir.display(),
                kubeconfig.display()
            ));
            return Ok(());
        };
        // One Secret holds all keys. A crash of this process therefore leaves no part of them behind, and keys of two
        // runs are never mixed.
        let mut files = Map::new();
        files.insert("admin.kubeconfig", STANDARD.encode(read_credential(&kubeconfig)?));
        for file in pki::SHARED_FILES.iter().chain(&[crate::access::tokens::KEY_FILE]) {
            files.insert(*file, STANDARD.encode(read_credential(&self.dir.join(file))?));
        }
        pod.keep(name, files)
    }
}

/// The pod that this process runs in, with its credentials.
struct Pod {
    client: Client,
    namespace: String,
}

impl Pod {
    fn this() -> Result<Self, SharedKeysError> {
        let unset = |name: &str| SharedKeysError::NoPod(format!("the environment variable {name} is not set"));
        let variable = |name: &str| std::env::var(name).map_err(|_| unset(name));
        let (host, port) = (variable("KUBERNETES_SERVICE_HOST")?, variable("KUBERNETES_SERVICE_PORT")?);
        let file = |name: &str| {
            let path = PathBuf::from(ACCOUNT_DIR).join(name);
            read_credential(&path).map_err(|error| SharedKeysError::NoPod(error.to_string()))
        };
        let ca = file("ca.crt")?;
        let authorities = CertificateDer::pem_slice_iter(ca.as_bytes()).filter_map(Result::ok).collect();
        let kubeconfig =
            Kubeconfig { server: url(&host, &port), authorities, certificate: None, token: Some(file("token")?) };
        let client = Client::new(kubeconfig).map_err(|error| SharedKeysError::NoPod(error.to_string()))?;
        Ok(Self { client, namespace: file("namespace")?.trim().to_owned() })
    }

    /// Stores files in a Secret, unless one of this name exists.
    fn keep(&self, name: &str, files: Map) -> Result<(), SharedKeysError> {
        let labels = value!({"app.kubernetes.io/name": "flotilla"});
        let secret = value!({
            "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
            "metadata": {"name": name, "labels": labels}, "data": (Value::from(files)),
        });
        let path = format!("/api/v1/namespaces/{}/secrets", self.namespace);
        let made = self.client.create(&path, &secret);
        let made = made.map_err(|source| SharedKeysError::Secret { name: name.into(), source })?;
        report(format_args!("Secret {}/{name} {}", self.namespace, if made { "made" } else { "is there already" }));
        Ok(())
    }
}

/// Returns the URL of a server; the host may be an IPv6 address.
fn url(host: &str, port: &str) -> String {
    match host.parse::<Ipv6Addr>() {
        Ok(address) => format!("https://[{}]:{port}", IpAddr::from(address)),
        Err(_) => format!("https://{host}:{port}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn shared_keys_are_made_once() {
        let dir = Scratch::new();
        let command = SharedKeys {
            dir: dir.join("pki"),
            server: "https://api.example:6443".into(),
            admin_kubeconfig: None,
            to_secret: None,
        };
        command.run().unwrap();
        let read = |name: &str| std::fs::read_to_string(dir.join("pki").join(name)).unwrap();
        let names = pki::SHARED_FILES.iter().chain(&[crate::access::tokens::KEY_FILE]);
        let first: Vec<String> = names.clone().map(|name| read(name)).collect();
        command.run().unwrap();
        assert!(names.map(|name| read(name)).eq(first), "a second run changes nothing");
        assert!(read("admin.kubeconfig").contains("https://api.example:6443"));
    }

    #[test]
    fn addresses_of_both_families_are_urls() {
        assert_eq!(url("10.96.0.1", "443"), "https://10.96.0.1:443");
        assert_eq!(url("fd00::1", "443"), "https://[fd00::1]:443");
    }
}
