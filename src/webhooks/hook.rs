//! The address of a webhook, and calls to it.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use flotilla_golang::url::{Url, path_escape};
use flotilla_proto::json;
use flotilla_proto::value::Value;
use http::header::{ACCEPT, CONTENT_TYPE, HOST, RETRY_AFTER, USER_AGENT};
use http::{Request, Response};
use tokio::time::Instant;

use super::User;
use super::call_error::{CallError, refused};
use super::review::{document, is_success};
use crate::field::quote;
use crate::limits;
use crate::outbound::{self, Answer, Network, Outbound, Peer, Secure, Trust};
use crate::version;

/// The default port of Services.
const PORT: u16 = 443;
/// The default port without TLS.
const PLAIN_PORT: u16 = 80;

/// The address of a webhook, and the certificates to trust.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hook {
    destination: HookDestination,
    /// The path as requests have it.
    path: String,
    trust: Trust,
    /// The name for which the certificate must be valid, if it is not that of the host.
    server_name: Option<String>,
    /// The name of this server in the header `User-Agent`.
    agent: &'static str,
}

/// The name of this server for webhooks that objects of the API configure.
const ADMISSION_AGENT: &str = "kube-apiserver-admission";

#[derive(Debug, Clone, PartialEq, Eq)]
enum HookDestination {
    Service {
        namespace: String,
        name: String,
        port: u16,
    },
    /// `authority` is written as in the URL.
    Host {
        authority: String,
        host: String,
        port: u16,
        /// Whether there is no TLS.
        plain: bool,
    },
    /// The configuration names no address. Holds the reason.
    Nowhere(String),
}

impl Hook {
    /// Reads a `clientConfig`.
    pub fn of(config: &Value) -> Self {
        let bundle = STANDARD.decode(config.str_at(&["caBundle"])).unwrap_or_default();
        let trust = Trust::bundle(if bundle.trim_ascii().is_empty() { Vec::new() } else { bundle });
        let service = config.at(&["service"]);
        if !service.is_null() {
            let (namespace, name) = (service.str_at(&["namespace"]).into(), service.str_at(&["name"]).into());
            let port = service.int_at(&["port"]).and_then(|port| u16::try_from(port).ok()).unwrap_or(PORT);
            let path = clean(service.str_at(&["path"]));
            return Self::new(HookDestination::Service { namespace, name, port }, path, trust);
        }
        let text = config.str_at(&["url"]);
        match Url::parse(text) {
            Ok(url) if !text.is_empty() => Self::of_url(&url, trust),
            Ok(_) => {
                let why = "webhook configuration must have either service or URL".to_owned();
                Self::new(HookDestination::Nowhere(why), String::new(), trust)
            }
            Err(error) => Self::new(HookDestination::Nowhere(format!("Unparsable URL: {error}")), String::new(), trust),
        }
    }

    const fn new(destination: HookDestination, path: String, trust: Trust) -> Self {
        Self { destination, path, trust, server_name: None, agent: ADMISSION_AGENT }
    }

    fn of_url(url: &Url, trust: Trust) -> Self {
        let of_text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let plain = url.scheme == "http";
        let port = of_text(url.port()).parse().unwrap_or(if plain { PLAIN_PORT } else { PORT });
        let destination =
            HookDestination::Host { authority: of_text(&url.host), host: of_text(url.hostname()), port, plain };
        Self::new(destination, clean(&of_text(&url.path)), trust)
    }

    /// Returns the webhook that a kubeconfig names: its URL, the certificates to trust, the name for which its
    /// certificate must be valid unless that is its host, and the name that this server states.
    pub(super) fn at(url: &Url, trust: Trust, server_name: Option<String>, agent: &'static str) -> Self {
        Self { server_name, agent, ..Self::of_url(url, trust) }
    }

    /// Returns the URL for error messages.
    fn url(&self, timeout: Duration) -> String {
        let authority = match &self.destination {
            HookDestination::Service { namespace, name, port } => format!("{name}.{namespace}.svc:{port}"),
            HookDestination::Host { authority, .. } => authority.clone(),
            HookDestination::Nowhere(_) => String::new(),
        };
        let scheme = if self.is_plain() { "http" } else { "https" };
        format!("{scheme}://{authority}{}?timeout={}s", self.path, timeout.as_secs_f64().ceil())
    }

    /// Returns whether there is no TLS.
    pub(super) const fn is_plain(&self) -> bool {
        matches!(self.destination, HookDestination::Host { plain: true, .. })
    }

    /// Returns the server to connect with. `resolve` takes the namespace, name and port of a Service, and returns a
    /// host and a port.
    ///
    /// # Errors
    /// The Service has no address. The text is that of the reference.
    pub fn peer(&self, resolve: impl FnOnce(&str, &str, u16) -> Result<(String, u16), String>) -> Result<Peer, String> {
        let (host, port, server_name, http2) = match &self.destination {
            HookDestination::Service { namespace, name, port } => {
                let (host, port) = resolve(namespace, name, *port)?;
                (host, port, format!("{name}.{namespace}.svc"), false)
            }
            // As upstream: a URL may name several servers, and one shared connection would reach only one of them.
            HookDestination::Host { host, port, .. } => (host.clone(), *port, host.clone(), is_local(host)),
            HookDestination::Nowhere(why) => return Err(why.clone()),
        };
        let server_name = self.server_name.clone().unwrap_or(server_name);
        let secure = Secure { server_name, trust: self.trust.clone(), identity: None, http2 };
        let network = match self.destination {
            HookDestination::Service { .. } => Network::Cluster,
            _ => Network::ControlPlane,
        };
        Ok(Peer { host, port, network, guarded: false, secure: (!self.is_plain()).then_some(secure) })
    }

    /// Returns host and port, by which [`super::Users`] finds the user for the webhook. Returns `None` if it has no
    /// address.
    pub fn target(&self) -> Option<String> {
        match &self.destination {
            HookDestination::Service { namespace, name, port } => Some(format!("{name}.{namespace}.svc:{port}")),
            HookDestination::Host { authority, .. } if has_port(authority) => Some(authority.clone()),
            // Go joins host and port like this: an authority in brackets gets a second pair.
            HookDestination::Host { authority, .. } if authority.contains(':') => Some(format!("[{authority}]:{PORT}")),
            HookDestination::Host { authority, .. } => Some(format!("{authority}:{PORT}")),
            HookDestination::Nowhere(_) => None,
        }
    }

    /// Sends a review to the webhook and returns its answer. The URL states `timeout`. `user` is the user that this
    /// server presents. `bytes_max` bounds the answer. If the webhook answers with `Retry-After`, the call is repeated,
    /// as clients of Kubernetes do.
    ///
    /// # Errors
    /// The webhook cannot be reached within `timeout`, or its answer is not a review.
    pub async fn ask(
        &self,
        outbound: &Outbound,
        peer: Result<Peer, String>,
        user: Option<&User>,
        review: &Value,
        timeout: Duration,
        bytes_max: usize,
    ) -> Result<Value, CallError> {
        let mut body = json::to_vec(review);
        body.push(b'\n');
        let deadline = Instant::now() + timeout;
        let (code, answer) = self.call(outbound, peer, user, body.into(), (timeout, deadline)).await?;
        let media = media(&answer);
        let reading = tokio::time::timeout_at(deadline, outbound::read(answer.into_body(), bytes_max)).await;
        let body = reading.unwrap_or(Err(outbound::Error::Deadline)).map_err(|error| {
            let why = "unexpected error when reading response body. Please retry. Original error:";
            CallError::unreachable(format!("{why} {error}"))
        })?;
        document(code, &media, &body, review)
    }

    /// Sends a document to the webhook as [`Hook::ask`] does. The answer matters only if it is a refusal.
    ///
    /// # Errors
    /// The webhook cannot be reached within `timeout`, or refuses the document.
    pub async fn tell(
        &self,
        outbound: &Outbound,
        peer: Result<Peer, String>,
        user: Option<&User>,
        document: Bytes,
        timeout: Duration,
    ) -> Result<(), CallError> {
        let deadline = Instant::now() + timeout;
        let (code, answer) = self.call(outbound, peer, user, document, (timeout, deadline)).await?;
        let media = media(&answer);
        let reading = outbound::read_beginning(answer.into_body(), limits::WEBHOOK_TEXT_BYTES);
        let body = tokio::time::timeout_at(deadline, reading).await.ok().and_then(Result::ok).unwrap_or_default();
        if is_success(code) { Ok(()) } else { Err(refused(code, &media, &body)) }
    }

    /// Sends a document, and sends it again whenever the webhook asks clients to wait. Returns the code of the answer,
    /// and the answer.
    async fn call(
        &self,
        outbound: &Outbound,
        peer: Result<Peer, String>,
        user: Option<&User>,
        body: Bytes,
        (timeout, deadline): (Duration, Instant),
    ) -> Result<(u16, Response<Answer>), CallError> {
        let url = self.url(timeout);
        let failed = |why: String| CallError::unreachable(format!("Post {}: {why}", quote(&url)));
        let mut peer = peer.map_err(failed)?;
        if let Some(user) = user {
            user.identify(&mut peer);
        }
        let mut retries = 0..limits::WEBHOOK_RETRIES;
        loop {
            let answer = self.post(outbound, &peer, user, &url, body.clone(), deadline).await?;
            let patience = patience(&answer).filter(|_| retries.next().is_some());
            let Some(patience) = patience else { return Ok((answer.status().as_u16(), answer)) };
            drop(answer);
            let waiting = tokio::time::timeout_at(deadline, tokio::time::sleep(patience)).await;
            waiting.map_err(|_| failed(outbound::Error::Deadline.to_string()))?;
        }
    }

    async fn post(
        &self,
        outbound: &Outbound,
        peer: &Peer,
        user: Option<&User>,
        url: &str,
        body: Bytes,
        deadline: Instant,
    ) -> Result<Response<Answer>, CallError> {
        let failed = |why: String| CallError::unreachable(format!("Post {}: {why}", quote(url)));
        let authority = url.split("://").nth(1).and_then(|rest| rest.split('/').next()).unwrap_or_default();
        let mut request = Request::post(url)
            .header(HOST, authority)
            .header(ACCEPT, "application/json, */*")
            .header(CONTENT_TYPE, "application/json")
            .header(USER_AGENT, format!("{}/{}", self.agent, version::GIT_VERSION))
            .body(outbound::full(body))
            .map_err(|error| failed(error.to_string()))?;
        if let Some(user) = user {
            user.sign(request.headers_mut());
        }
        let asked = outbound.send(peer, request, deadline).await;
        asked.map_err(|error| CallError { is_of_nameless: error.is_of_nameless(), ..failed(error.to_string()) })
    }
}

/// Returns whether an authority states a port.
fn has_port(authority: &str) -> bool {
    authority.rsplit_once(':').is_some_and(|(_, port)| !port.is_empty() && !port.ends_with(']'))
}

/// Returns whether a host is this machine.
fn is_local(host: &str) -> bool {
    let is_loopback = |address: std::net::IpAddr| address.is_loopback();
    host.eq_ignore_ascii_case("localhost") || host.parse().is_ok_and(is_loopback)
}

/// Cleans a path as Go does: absolute, without empty or relative parts, and without a slash at the end.
fn clean(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    format!("/{}", parts.iter().map(|part| path_escape(part)).collect::<Vec<_>>().join("/"))
}

/// Returns the time for which the webhook asks clients to wait. Returns `None` if it does not ask.
fn patience(answer: &Response<Answer>) -> Option<Duration> {
    let code = answer.status().as_u16();
    let stated = answer.headers().get(RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    (code == 429 || code >= 500).then(|| Duration::from_secs(stated))
}

/// Returns the media type of an answer.
fn media(answer: &Response<Answer>) -> String {
    answer.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("").to_owned()
}

#[cfg(test)]
mod tests {
    use flotilla_proto::value;

    use super::*;

    #[test]
    fn urls_as_errors_show_them() {
        let shown = |config: Value| Hook::of(&config).url(Duration::from_millis(9_500));
        let service = value!({"service": {"name": "a", "namespace": "b"}});
        assert_eq!(shown(service), "https://a.b.svc:443/?timeout=10s");
        let service = value!({"service": {"name": "a", "namespace": "b", "port": 8443, "path": "/x//y/"}});
        assert_eq!(shown(service), "https://a.b.svc:8443/x/y?timeout=10s");
        assert_eq!(shown(value!({"url": "https://127.0.0.1:9/check"})), "https://127.0.0.1:9/check?timeout=10s");
        assert_eq!(shown(value!({"url": "https://a.example"})), "https://a.example/?timeout=10s");
    }

    #[test]
    fn hooks_have_a_host_and_a_port() {
        let target = |url: &str| Hook::of(&value!({"url": url})).target().unwrap();
        assert_eq!((target("https://a.example"), target("https://a:1/x")), ("a.example:443".into(), "a:1".into()));
        assert_eq!((target("https://[::1]:443"), target("https://[::1]/")), ("[::1]:443".into(), "[[::1]]:443".into()));
    }
}
