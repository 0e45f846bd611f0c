//! Finds the kubelets, nodes, pods and services that requests are passed to.

use flotilla_golang::url::Url;
use flotilla_proto::value::Value;

use super::core;
use crate::config::{ADDRESS_TYPES, Config};
use crate::outbound::{CredentialFiles, Network, Peer, Secure, Trust};
use crate::prometheus::families;
use crate::registry::Registry;
use crate::request::query::Query;
use crate::status::{ApiError, ApiResult};
use crate::tables::stored_value;

/// Port of kubelets whose node states none.
const KUBELET_PORT: i64 = 10_250;
/// The feature that a node declares if its kubelet accepts WebSockets.
const BY_WEBSOCKET: &str = "ExtendWebSocketsToKubelet";

/// The connection settings for kubelets.
#[derive(Debug)]
pub struct Kubelets {
    /// Types of node addresses, in the order in which they are tried.
    pub address_types: Vec<String>,
    /// The server's client certificate, and the authority that it trusts.
    pub files: CredentialFiles,
}

impl Kubelets {
    /// Reads the settings from the configuration.
    pub fn of(config: &Config) -> Self {
        let files = CredentialFiles::new(config.kubelet_files(), config.kubelet_certificate_authority.as_deref());
        Self { address_types: config.kubelet_preferred_address_types.clone(), files }
    }
}

impl Default for Kubelets {
    fn default() -> Self {
        Self { address_types: ADDRESS_TYPES.map(String::from).into(), files: CredentialFiles::default() }
    }
}

/// Counts a request for a stream with a node, by whether its kubelet understands WebSockets.
pub(super) fn count(registry: &Registry, subresource: &str, by_websocket: bool) {
    let who = if by_websocket { "proxied_to_kubelet" } else { "translated_at_apiserver" };
    let labels = [("proxy_type", who), ("subresource", subresource)];
    registry.tables.metrics.meter().counter(families::STREAMS_ROUTED, &labels).increment(1);
}

/// The address at which the kubelet of a node listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kubelet {
    /// Name or address of the node.
    pub host: String,
    /// Port.
    pub port: u16,
    /// Whether the kubelet accepts WebSockets.
    pub by_websocket: bool,
}

impl Kubelet {
    /// Returns the peer to connect to; `guarded` is that of [`Peer`].
    pub fn peer(&self, kubelets: &Kubelets, guarded: bool) -> Peer {
        let (trust, identity) = (kubelets.files.trust(), kubelets.files.identity());
        let secure = Secure { server_name: self.host.clone(), trust, identity, http2: true };
        Peer { host: self.host.clone(), port: self.port, network: Network::Cluster, guarded, secure: Some(secure) }
    }
}

/// Finds a node's kubelet. `resource` is the resource of the request. The reference's errors name it instead of
/// `nodes`.
pub fn kubelet(registry: &Registry, node: &str, resource: &str) -> ApiResult<Kubelet> {
    let object = registry.tables.current(&*core(registry, "nodes")?, "", node);
    let object = object.ok_or_else(|| ApiError::not_found("", resource, node))?;
    kubelet_of(&stored_value(&object)?, &registry.kubelets.address_types)
}

fn kubelet_of(node: &Value, address_types: &[String]) -> ApiResult<Kubelet> {
    let addresses = node.list_at(&["status", "addresses"]);
    let of_type = |kind: &String| addresses.iter().find(|address| address.str_at(&["type"]) == kind);
    let Some(address) = address_types.iter().find_map(of_type) else {
        let known: Vec<String> = addresses
            .iter()
            .map(|address| format!("{{{} {}}}", address.str_at(&["type"]), address.str_at(&["address"])))
            .collect();
        let why = format!("no preferred addresses found; known addresses: [{}]", known.join(" "));
        return Err(ApiError::unknown(why));
    };
    let stated = node.int_at(&["status", "daemonEndpoints", "kubeletEndpoint", "Port"]).filter(|port| *port > 0);
    let port = u16::try_from(stated.unwrap_or(KUBELET_PORT)).unwrap_or_default();
    let by_websocket = node.list_at(&["status", "declaredFeatures"]).iter().any(|it| it.as_str() == Some(BY_WEBSOCKET));
    Ok(Kubelet { host: address.str_at(&["address"]).to_owned(), port, by_websocket })
}

/// Returns a server behind a node, pod or service, with the scheme that the client asks for. Its certificate is not
/// verified, as in the reference.
pub fn proxied(scheme: &str, host: String, port: u16) -> Peer {
    let secure = || Secure { server_name: host.clone(), trust: Trust::Anybody, identity: None, http2: true };
    let secure = (scheme == "https").then(secure);
    Peer { host, port, network: Network::Cluster, guarded: true, secure }
}

/// Returns the path behind a proxy, escaped; empty if there is none.
pub fn proxied_path(rest: Option<&str>, query: &Query<'_>) -> String {
    let rest = rest.unwrap_or_else(|| query.text("path"));
    if rest.is_empty() {
        return String::new();
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in rest.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    let slash = if rest.ends_with('/') && !parts.is_empty() { "/" } else { "" };
    let mut url = Url::default();
    url.path = format!("/{}{slash}", parts.join("/")).into_bytes();
    url.escaped_path()
}

/// Returns a path at a kubelet with its query; parameters are sorted by name.
pub fn kubelet_path(parts: &[&str], mut parameters: Vec<(&str, String)>) -> String {
    use flotilla_golang::url::query_escape;
    parameters.sort_by_key(|(name, _)| *name);
    let mut url = Url::default();
    url.path = format!("/{}", parts.join("/")).into_bytes();
    let query: Vec<String> = parameters.iter().map(|(name, value)| format!("{name}={}", query_escape(value))).collect();
    let mark = if query.is_empty() { "" } else { "?" };
    format!("{}{mark}{}", url.escaped_path(), query.join("&"))
}

/// Splits `[scheme:]name[:port]` into scheme, name and port. Returns `None` for any other form.
pub fn split_name(text: &str) -> Option<(&str, &str, &str)> {
    let parts: Vec<&str> = text.split(':').collect();
    let (scheme, name, port) = match parts.as_slice() {
        [name] => ("", *name, ""),
        [name, port] => ("", *name, *port),
        [scheme, name, port] => (*scheme, *name, *port),
        _ => return None,
    };
    (!name.is_empty() && matches!(scheme, "" | "http" | "https")).then_some((scheme, name, port))
}

#[cfg(test)]
mod tests {
    use flotilla_proto::value;

    use super::*;

    #[test]
    fn names_with_scheme_and_port() {
        assert_eq!(split_name("a"), Some(("", "a", "")));
        assert_eq!(split_name("a:1"), Some(("", "a", "1")));
        assert_eq!(split_name("https:a:x"), Some(("https", "a", "x")));
        for bad in ["", "x:a:1", "a:b:c:d", ":1"] {
            assert_eq!(split_name(bad), None, "{bad}");
        }
    }

    #[test]
    fn kubelets() {
        let node = value!({"status": {
            "addresses": [{"type": "ExternalIP", "address": "1.1.1.1"}, {"type": "InternalIP", "address": "1.1.1.2"}]
        }});
        let usual = Kubelets::default().address_types;
        let found = |types: &[String]| kubelet_of(&node, types).unwrap();
        assert_eq!(found(&usual), Kubelet { host: "1.1.1.2".into(), port: 10_250, by_websocket: false });
        assert_eq!(found(&["ExternalIP".into()]).host, "1.1.1.1");
        let error = kubelet_of(&value!({"status": {}}), &usual).unwrap_err();
        assert_eq!((error.code, &*error.message), (500, "no preferred addresses found; known addresses: []"));
    }

    #[test]
    fn paths_behind_proxies() {
        let path = |rest: Option<&str>| proxied_path(rest, &Query::parse("path=q"));
        assert_eq!(path(Some("/a/../b c/")), "/b%20c/");
        assert_eq!((&*path(None), &*path(Some(""))), ("/q", ""));
        assert_eq!(path(Some("/")), "/");
        let asked = kubelet_path(&["exec", "ns", "p", "c"], vec![("input", "1".into()), ("command", "a b".into())]);
        assert_eq!(asked, "/exec/ns/p/c?command=a+b&input=1");
    }
}
