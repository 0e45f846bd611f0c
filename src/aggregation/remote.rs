//! The aggregated server that an APIService names.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flotilla_proto::value::Value;

use super::availability;
use crate::outbound::{Identity, Network, Peer, Secure, Trust};
use crate::registry::Registry;
use crate::tables::services;

/// The default port of the Service.
const PORT: u16 = 443;

/// A server that serves a version of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remote {
    /// The name of its APIService.
    pub name: String,
    /// API group.
    pub group: String,
    /// API version.
    pub version: String,
    /// The namespace of its Service.
    pub namespace: String,
    /// The name of its Service.
    pub service: String,
    /// The port of its Service.
    pub port: u16,
    /// The priority of the group in discovery.
    pub group_priority: i64,
    /// The priority of the version within its group.
    pub version_priority: i64,
    /// Whether the last check found it available.
    pub is_available: bool,
    trust: Trust,
}

/// Returns group and version from the name of an APIService. `None` if the name has no dot.
pub fn split_name(name: &str) -> Option<(String, String)> {
    let (version, group) = name.split_once('.')?;
    Some((group.to_owned(), version.to_owned()))
}

impl Remote {
    /// Reads an APIService. `None` if this server serves the group version itself.
    pub fn of(object: &Value) -> Option<Self> {
        let spec = object.at(&["spec"]);
        let service = spec.at(&["service"]);
        if service.is_null() || spec.str_at(&["group"]).is_empty() {
            return None;
        }
        let bundle = STANDARD.decode(spec.str_at(&["caBundle"])).unwrap_or_default();
        let trust = if spec.is_true_at(&["insecureSkipTLSVerify"]) { Trust::Anybody } else { Trust::bundle(bundle) };
        Some(Self {
            name: object.str_at(&["metadata", "name"]).to_owned(),
            group: spec.str_at(&["group"]).to_owned(),
            version: spec.str_at(&["version"]).to_owned(),
            namespace: service.str_at(&["namespace"]).to_owned(),
            service: service.str_at(&["name"]).to_owned(),
            port: service.int_at(&["port"]).and_then(|port| u16::try_from(port).ok()).unwrap_or(PORT),
            group_priority: spec.int_at(&["groupPriorityMinimum"]).unwrap_or(0),
            version_priority: spec.int_at(&["versionPriority"]).unwrap_or(0),
            is_available: availability::is_available(object),
            trust,
        })
    }

    /// Returns the address and TLS settings of the server, by the present state of its Service.
    ///
    /// # Errors
    /// The Service has no address. The text is that of the reference.
    pub fn peer(&self, registry: &Registry, identity: Option<Identity>) -> Result<Peer, String> {
        let (host, port) = services::resolve(&registry.tables, &self.namespace, &self.service, self.port)?;
        let server_name = format!("{}.{}.svc", self.service, self.namespace);
        let secure = Secure { server_name, trust: self.trust.clone(), identity, http2: true };
        Ok(Peer { host, port, network: Network::Cluster, guarded: false, secure: Some(secure) })
    }

    /// Returns the path of its group version.
    pub fn path(&self) -> String {
        format!("/apis/{}/{}", self.group, self.version)
    }
}
