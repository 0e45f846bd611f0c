//! The file of `--egress-selector-config-file`: `EgressSelectorConfiguration` of `apiserver.k8s.io/v1beta1`.

use std::path::Path;
use std::sync::Arc;

use flotilla_proto::value::Value;
use flotilla_proto::yaml;

use super::{Egress, Network, Protocol, Proxy, ProxyEndpoint};
use crate::field::quote;
use crate::outbound::{Error, Identity, Secure, Trust, tls};
use crate::pki::{PkiError, read_credential};

const VERSIONS: [&str; 2] = ["apiserver.k8s.io/v1beta1", "apiserver.k8s.io/v1alpha1"];
const KIND: &str = "EgressSelectorConfiguration";

/// The reason why the configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum EgressError {
    /// The file, or one that it names, cannot be read.
    #[error(transparent)]
    Read(#[from] PkiError),
    /// The file is not valid YAML.
    #[error("it is not valid YAML")]
    Yaml(#[from] yaml::Error),
    /// The TLS settings are not valid.
    #[error(transparent)]
    Tls(#[from] Error),
    /// The configuration is not valid.
    #[error("{0}")]
    Wrong(String),
}

impl Egress {
    /// Reads a configuration.
    ///
    /// # Errors
    /// The file cannot be read, or is not valid. Wordings are those of kube-apiserver.
    pub fn read(path: &Path) -> Result<Self, EgressError> {
        Self::of(&yaml::parse(read_credential(path)?.as_bytes())?.value)
    }

    fn of(value: &Value) -> Result<Self, EgressError> {
        let (version, kind) = (value.str_at(&["apiVersion"]), value.str_at(&["kind"]));
        if !VERSIONS.contains(&version) || kind != KIND {
            let why = format!("no kind {} is registered for version {}", quote(kind), quote(version));
            return Err(EgressError::Wrong(why));
        }
        only(value, "", &["apiVersion", "kind", "egressSelections"])?;
        let mut egress = Self::default();
        let mut seen = Vec::new();
        for selection in value.list_at(&["egressSelections"]) {
            only(selection, "egressSelections.", &["name", "connection"])?;
            let name = selection.str_at(&["name"]).to_lowercase();
            if seen.contains(&name) {
                return wrong(format!("service.connection: Duplicate value: {}", quote(&name)));
            }
            let proxy = proxy(selection.at(&["connection"]))?.map(Arc::new);
            match Network::named(&name) {
                Some(network) => egress.proxies.push((network, proxy)),
                None if name == "etcd" => {} // this server uses no etcd
                None => {
                    return wrong(format!(
                        "service.connection: Unsupported value: {}: supported values: \"cluster\", \"controlplane\", \
                         \"etcd\"",
                        quote(&name)
                    ));
                }
            }
            seen.push(name);
        }
        Ok(egress)
    }
}

fn wrong<T>(why: impl Into<String>) -> Result<T, EgressError> {
    Err(EgressError::Wrong(why.into()))
}

/// Refuses fields that the configuration does not have.
fn only(value: &Value, path: &str, known: &[&str]) -> Result<(), EgressError> {
    let mut fields = value.as_object().into_iter().flat_map(|object| object.iter());
    match fields.find(|(name, _)| !known.contains(&&**name)) {
        Some((name, _)) => wrong(format!("strict decoding error: unknown field {}", quote(&format!("{path}{name}")))),
        None => Ok(()),
    }
}

/// Returns the proxy of a connection. `None` if the connection is direct.
fn proxy(connection: &Value) -> Result<Option<Proxy>, EgressError> {
    only(connection, "egressSelections.connection.", &["proxyProtocol", "transport"])?;
    let transport = connection.at(&["transport"]);
    only(transport, "egressSelections.connection.transport.", &["tcp", "uds"])?;
    let protocol = match connection.str_at(&["proxyProtocol"]) {
        "Direct" if transport.is_null() => return Ok(None),
        "Direct" => {
            return wrong(
                "service.connection.transport: Invalid value: \"direct\": config must be absent for direct connect",
            );
        }
        "HTTPConnect" => Protocol::HttpConnect,
        "GRPC" => Protocol::Grpc,
        other => {
            return wrong(format!(
                "service.connection.protocol: Unsupported value: {}: supported values: \"Direct\", \"GRPC\", \
                 \"HTTPConnect\"",
                quote(other)
            ));
        }
    };
    let name = if protocol == Protocol::Grpc { "GRPC" } else { "HTTPConnect" };
    if transport.is_null() {
        return wrong(format!("service.connection.transport: Required value: transport must be set for {name}"));
    }
    let (tcp, uds) = (transport.at(&["tcp"]), transport.at(&["uds"]));
    let endpoint = match (protocol, tcp.is_null(), uds.is_null()) {
        (Protocol::Grpc, _, true) => return wrong("service.connection.uds: Required value: UDS must be set with GRPC"),
        (Protocol::HttpConnect, false, false) => {
            return wrong("service.connection.tcp: Invalid value: TCP and UDS cannot both be set");
        }
        (Protocol::HttpConnect, true, true) => {
            return wrong("service.connection.tcp: Required value: One of TCP or UDS must be set");
        }
        (_, _, false) => socket(uds)?,
        (_, _, true) => address(tcp)?,
    };
    Ok(Some(Proxy { protocol, endpoint }))
}

fn socket(uds: &Value) -> Result<ProxyEndpoint, EgressError> {
    only(uds, "egressSelections.connection.transport.uds.", &["udsName"])?;
    match uds.str_at(&["udsName"]) {
        "" => wrong("service.connection.udsName: Invalid value: \"nil\": must be present for UDS connections"),
        path => Ok(ProxyEndpoint::Socket(path.into())),
    }
}

fn address(tcp: &Value) -> Result<ProxyEndpoint, EgressError> {
    only(tcp, "egressSelections.connection.transport.tcp.", &["url", "tlsConfig"])?;
    let (url, settings) = (tcp.str_at(&["url"]), tcp.at(&["tlsConfig"]));
    let (rest, is_secure) = match (url.strip_prefix("http://"), url.strip_prefix("https://")) {
        (Some(rest), _) => (rest, false),
        (_, Some(rest)) => (rest, true),
        _ => {
            return wrong(format!(
                "service.connection.url: Invalid value: {}: supported connection protocols are http:// and https://",
                quote(url)
            ));
        }
    };
    if !is_secure && !settings.is_null() {
        return wrong(
            "service.connection.tlsConfig: Invalid value: \"nil\": config must not be present when using HTTP",
        );
    }
    let authority = rest.split('/').next().unwrap_or_default();
    let parsed = authority.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse::<u16>().ok()?)));
    let Some((host, port)) = parsed.filter(|(host, _)| !host.is_empty()) else {
        return wrong(format!("service.connection.url: Invalid value: {}: must have a host and a port", quote(url)));
    };
    let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    let tls = if is_secure { Some(tls::config(&secure(settings, &host)?, false)?) } else { None };
    Ok(ProxyEndpoint::Address { host, port, tls })
}

/// Reads the TLS settings of a proxy, and the files that they name.
fn secure(settings: &Value, host: &str) -> Result<Secure, EgressError> {
    const FIELDS: [&str; 4] = ["caBundle", "clientKey", "clientCert", "tlsServerName"];
    if settings.is_null() {
        return wrong("service.connection.tlsConfig: Required value: TLSConfig must be present when using HTTPS");
    }
    only(settings, "egressSelections.connection.transport.tcp.tlsConfig.", &FIELDS)?;
    for (field, why) in
        [("clientCert", "Using TLS requires clientCert"), ("clientKey", "Using TLS requires requires clientKey")]
    {
        if settings.str_at(&[field]).is_empty() {
            return wrong(format!("service.connection.tlsConfig.{field}: Invalid value: \"nil\": {why}"));
        }
    }
    let read = |field: &str| read_credential(Path::new(settings.str_at(&[field])));
    let trust =
        if settings.str_at(&["caBundle"]).is_empty() { Trust::System } else { Trust::bundle(read("caBundle")?) };
    let identity = Identity { certificates: read("clientCert")?.into(), key: read("clientKey")?.into() };
    let server_name = Some(settings.str_at(&["tlsServerName"])).filter(|name| !name.is_empty()).unwrap_or(host);
    Ok(Secure { server_name: server_name.to_owned(), trust, identity: Some(identity), http2: false })
}
