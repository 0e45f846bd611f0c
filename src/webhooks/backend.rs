//! A webhook that the current context of a kubeconfig names, with the credentials for it.

use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use flotilla_golang::url::Url;
use flotilla_proto::value::Value;

use super::{CallError, Hook, User};
use crate::outbound::{Outbound, Peer, Trust};
use crate::pki::{KubeconfigError, KubeconfigFile};

/// The name of this server in the header `User-Agent` of requests to these webhooks.
const AGENT: &str = "kube-apiserver";

/// A webhook, and the user whose credentials this server presents to it.
#[derive(Debug)]
pub struct Backend {
    hook: Hook,
    user: User,
}

impl Backend {
    /// Reads a kubeconfig. The files that it names must exist.
    ///
    /// # Errors
    /// The kubeconfig or a file that it names cannot be read, is incomplete, or has an entry that is not supported.
    pub fn read(path: &Path) -> Result<Self, KubeconfigError> {
        let file = KubeconfigFile::read(path)?;
        let context = file.current_context()?;
        let hook = hook(&file, context.cluster()?)?;
        let user = match context.user_entry()? {
            // As in the reference, credentials are not sent without TLS.
            Some(entry) if !hook.is_plain() => User::of(&file, entry)?,
            _ => User::default(),
        };
        Ok(Self { hook, user })
    }

    /// Sends a review and returns the answer: see [`Hook::ask`].
    ///
    /// # Errors
    /// As for [`Hook::ask`].
    pub async fn ask(
        &self,
        outbound: &Outbound,
        review: &Value,
        timeout: Duration,
        bytes_max: usize,
    ) -> Result<Value, CallError> {
        self.hook.ask(outbound, self.peer(), Some(&self.user), review, timeout, bytes_max).await
    }

    /// Sends a document: see [`Hook::tell`].
    ///
    /// # Errors
    /// As for [`Hook::tell`].
    pub async fn tell(&self, outbound: &Outbound, document: Bytes, timeout: Duration) -> Result<(), CallError> {
        self.hook.tell(outbound, self.peer(), Some(&self.user), document, timeout).await
    }

    fn peer(&self) -> Result<Peer, String> {
        self.hook.peer(|_, _, _| Err("a kubeconfig names no Service".to_owned()))
    }
}

fn hook(file: &KubeconfigFile<'_>, cluster: &Value) -> Result<Hook, KubeconfigError> {
    let text = cluster.str_at(&["server"]);
    let url = Url::parse(text).ok().filter(|url| matches!(&*url.scheme, "https" | "http") && !url.host.is_empty());
    let url = url.ok_or_else(|| file.lacks("server: it must be an http or https URL"))?;
    if !cluster.at(&["proxy-url"]).is_null() {
        return Err(file.lacks("cluster: proxy-url is not supported here"));
    }
    let authorities = file.pem(cluster, "certificate-authority")?;
    let trust = match (cluster.at(&["insecure-skip-tls-verify"]).as_bool(), authorities) {
        (Some(true), Some(_)) => {
            return Err(file.lacks("certificate-authority: insecure-skip-tls-verify excludes it"));
        }
        (Some(true), None) => Trust::Anybody,
        (_, authorities) => Trust::bundle(authorities.unwrap_or_default()),
    };
    let server_name = Some(cluster.str_at(&["tls-server-name"])).filter(|name| !name.is_empty()).map(str::to_owned);
    Ok(Hook::at(&url, trust, server_name, AGENT))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    fn read(cluster: &str, user: &str) -> Result<Backend, String> {
        let dir = Scratch::new();
        let path = dir.join("config");
        let text = format!(
            "{{current-context: x, contexts: [{{name: x, context: {{cluster: c, user: u}}}}], \
             clusters: [{{name: c, cluster: {{{cluster}}}}}], users: [{{name: u, user: {{{user}}}}}]}}"
        );
        std::fs::write(&path, text).unwrap();
        Backend::read(&path).map_err(|error| error.to_string())
    }

    fn peer(backend: &Backend) -> crate::outbound::Peer {
        backend.hook.peer(|_, _, _| Err(String::new())).unwrap()
    }

    #[test]
    fn the_current_context_names_the_webhook() {
        let secure = read("server: 'https://h/policy', tls-server-name: other", "token: t").unwrap();
        let to = peer(&secure);
        assert_eq!((to.address().as_str(), to.secure.unwrap().server_name.as_str()), ("h:443", "other"));
        let anybody = read("server: 'https://h:1', insecure-skip-tls-verify: true", "").unwrap();
        assert_eq!(peer(&anybody).secure.unwrap().trust, Trust::Anybody);
        assert!(peer(&read("server: 'http://h', ", "").unwrap()).secure.is_none());
    }

    #[test]
    fn credentials_need_tls() {
        let headers = |server: &str| {
            let mut headers = http::HeaderMap::new();
            read(&format!("server: '{server}'"), "token: t").unwrap().user.sign(&mut headers);
            headers
        };
        assert_eq!((headers("https://h").len(), headers("http://h").len()), (1, 0));
    }

    #[test]
    fn unusable_kubeconfigs_name_the_mistake() {
        for (cluster, user, part) in [
            ("server: h", "", "server: it must be an http or https URL"),
            ("server: 'https://h', proxy-url: x", "", "proxy-url is not supported"),
            ("server: 'https://h', certificate-authority: none", "", "cannot be read"),
            (
                "server: 'https://h', certificate-authority-data: eA==, insecure-skip-tls-verify: true",
                "",
                "excludes it",
            ),
            ("server: 'https://h'", "exec: {}", "exec is not supported"),
        ] {
            let error = read(cluster, user).unwrap_err();
            assert!(error.contains(part), "{cluster}: {error}");
        }
    }
}
