//! Reads the current context of a kubeconfig (Kubernetes documentation, "Organizing Cluster Access Using kubeconfig
//! Files"): the server, its trusted authorities, and the user's credentials.

use std::path::Path;

use flotilla_proto::value::Value;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use crate::pki::{KubeconfigError, KubeconfigFile};

/// The current context of a kubeconfig.
#[derive(Debug)]
pub struct Kubeconfig {
    /// URL of the server.
    pub server: String,
    /// Authorities that may have issued the server's certificate.
    pub authorities: Vec<CertificateDer<'static>>,
    /// The user's certificate with its intermediates, and its key in PEM.
    pub certificate: Option<(Vec<CertificateDer<'static>>, Vec<u8>)>,
    /// The user's token.
    pub token: Option<String>,
}

impl Kubeconfig {
    /// Reads a file.
    ///
    /// # Errors
    /// See [`KubeconfigError`].
    pub fn read(path: &Path) -> Result<Self, KubeconfigError> {
        Self::of(path).map_err(|error| match error {
            KubeconfigError::Read(why) => KubeconfigError::ReadByCommand(why),
            other => other,
        })
    }

    fn of(path: &Path) -> Result<Self, KubeconfigError> {
        let file = KubeconfigFile::read(path)?;
        let context = file.current_context()?;
        let (cluster, user) = (context.cluster()?, context.user()?);
        let server = cluster.str_at(&["server"]);
        if !server.starts_with("https://") {
            return Err(file.lacks("server: it must be an https URL"));
        }
        Ok(Self {
            server: server.trim_end_matches('/').to_owned(),
            authorities: certificates(&file, cluster, "certificate-authority")?,
            certificate: match file.pem(user, "client-certificate")? {
                Some(_) => {
                    let key = file.pem(user, "client-key")?.ok_or_else(|| file.lacks("client-key"))?;
                    Some((certificates(&file, user, "client-certificate")?, key))
                }
                None => None,
            },
            token: Some(user.str_at(&["token"])).filter(|token| !token.is_empty()).map(str::to_owned),
        })
    }
}

fn certificates(
    file: &KubeconfigFile<'_>,
    of: &Value,
    name: &str,
) -> Result<Vec<CertificateDer<'static>>, KubeconfigError> {
    let pem = file.pem(of, name)?.ok_or_else(|| file.lacks(name))?;
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    certificates.ok().filter(|found| !found.is_empty()).ok_or_else(|| file.lacks(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pki::{Pki, PkiOptions};
    use crate::scratch::Scratch;

    #[test]
    fn kubeconfigs_of_the_server_are_read() {
        let dir = Scratch::new();
        let path = dir.join("admin.kubeconfig");
        Pki::open(PkiOptions::in_one(&dir, &["localhost"]))
            .unwrap()
            .write_admin_kubeconfig(&path, "https://[::1]:6443")
            .unwrap();
        let read = Kubeconfig::read(&path).unwrap();
        assert_eq!((&*read.server, read.authorities.len(), read.token), ("https://[::1]:6443", 1, None));
        assert_eq!(read.certificate.unwrap().0.len(), 1);
    }

    #[test]
    fn only_the_current_context_counts_and_relative_paths_start_at_the_file() {
        let dir = Scratch::new();
        let text = "current-context: two\n\
            contexts:\n\
            - {name: one, context: {cluster: none, user: none}}\n\
            - {name: two, context: {cluster: c, user: u}}\n\
            clusters: [{name: c, cluster: {server: 'https://h:1/', certificate-authority: ca.crt}}]\n\
            users: [{name: u, user: {token: secret}}]\n";
        let path = dir.join("config");
        std::fs::write(&path, text).unwrap();
        assert!(
            Kubeconfig::read(&path).unwrap_err().to_string().starts_with("the kubeconfig cannot be read; --kubeconfig")
        );
        let authority = rcgen::generate_simple_self_signed(vec!["ca".into()]).unwrap();
        std::fs::write(dir.join("ca.crt"), authority.cert.pem()).unwrap();
        let read = Kubeconfig::read(&path).unwrap();
        assert_eq!((&*read.server, read.token.as_deref()), ("https://h:1", Some("secret")));
        assert!(read.certificate.is_none());
    }

    #[test]
    fn errors_name_the_missing_part() {
        let dir = Scratch::new();
        let path = dir.join("config");
        let cluster = "clusters: [{name: c, cluster: {server: 'https://h:1', certificate-authority-data: bm9uZQ==}}]";
        for (text, part) in [
            ("a: [", "is no YAML"),
            ("{}", "no usable context \"\""),
            ("{current-context: x, contexts: [{name: x, context: {cluster: c}}]}", "no usable cluster \"c\""),
            (
                &*format!(
                    "current-context: x\ncontexts: [{{name: x, context: {{cluster: c, user: u}}}}]\n\
                     users: [{{name: u, user: {{}}}}]\n{cluster}"
                ),
                "no usable certificate-authority",
            ),
        ] {
            std::fs::write(&path, text).unwrap();
            let error = Kubeconfig::read(&path).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
