//! The proxies of `--egress-selector-config-file`, through which this server reaches others (KEP-1281). A control plane
//! that cannot reach its nodes reaches them through connections that the nodes' agents have opened.

mod connect;
mod packet;
mod settings;
mod tunnel;

use std::path::PathBuf;
use std::sync::Arc;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::UnixStream;
use tokio_rustls::TlsConnector;

use super::transport::Duplex;
use super::{Error, dial, wording};
use crate::limits;

pub use settings::EgressError;

/// The network of another server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Network {
    /// The network of this server: webhooks by URL, and servers that authenticate or authorize users.
    ControlPlane,
    /// The network of the nodes: kubelets, pods, and Services.
    Cluster,
    /// Always reached directly: this machine, and providers of tokens for which no network is configured.
    Direct,
}

impl Network {
    /// The networks that configurations name.
    pub const NAMED: [Self; 2] = [Self::Cluster, Self::ControlPlane];

    /// Returns the name in configurations. Returns `None` for [`Self::Direct`].
    pub const fn name(self) -> Option<&'static str> {
        match self {
            Self::ControlPlane => Some("controlplane"),
            Self::Cluster => Some("cluster"),
            Self::Direct => None,
        }
    }

    /// Returns the network of this name. `None` if no network has it.
    pub fn named(name: &str) -> Option<Self> {
        Self::NAMED.into_iter().find(|network| network.name() == Some(name))
    }
}

/// The proxies by network.
#[derive(Debug, Clone, Default)]
pub struct Egress {
    /// The networks that the configuration names, each with its proxy. `None` for a network that is reached directly.
    proxies: Vec<(Network, Option<Arc<Proxy>>)>,
}

impl Egress {
    /// Returns the proxy to a network. `None` if this server connects directly.
    pub fn to(&self, network: Network) -> Option<Arc<Proxy>> {
        self.proxies.iter().find(|(named, _)| *named == network).and_then(|(_, proxy)| proxy.clone())
    }

    /// Returns whether the configuration names a network.
    pub fn names(&self, network: Network) -> bool {
        self.proxies.iter().any(|(named, _)| *named == network)
    }
}

/// A proxy.
#[derive(Debug)]
pub struct Proxy {
    protocol: Protocol,
    endpoint: ProxyEndpoint,
}

/// The protocol by which the proxy is asked for a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Protocol {
    /// The method CONNECT (RFC 9110, section 9.3.6).
    HttpConnect,
    /// A call of the konnectivity server.
    Grpc,
}

/// The endpoint at which the proxy listens.
#[derive(Debug)]
enum ProxyEndpoint {
    /// A socket of this machine.
    Socket(PathBuf),
    /// An address.
    Address {
        host: String,
        port: u16,
        /// The TLS settings. `None` if the connection is without TLS.
        tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
    },
}

impl Proxy {
    /// Connects to an address, `HOST:PORT`, through the proxy.
    ///
    /// # Errors
    /// The proxy cannot be reached, or it cannot reach the address. The text is that of Go's client.
    pub async fn dial(&self, address: &str) -> Result<Box<dyn Duplex>, Error> {
        // A node may state any text as its address. In the head of a request, such a text could add lines and name
        // another address.
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:%[]".contains(&byte);
        if !address.bytes().all(is_plain) {
            return Err(Error::Dial(format!("dial tcp: address {address:?}: invalid host")));
        }
        let dialled = tokio::time::timeout(limits::DIAL_TIMEOUT, async {
            let stream = self.endpoint.connect().await?;
            match self.protocol {
                Protocol::HttpConnect => connect::connect(stream, &self.endpoint.shown(), address).await,
                Protocol::Grpc => tunnel::open(stream, address).await,
            }
        });
        dialled.await.unwrap_or_else(|_| Err(Error::Dial(format!("dial tcp {address}: i/o timeout"))))
    }
}

impl ProxyEndpoint {
    async fn connect(&self) -> Result<Box<dyn Duplex>, Error> {
        match self {
            Self::Socket(path) => match UnixStream::connect(path).await {
                Ok(stream) => Ok(Box::new(stream)),
                Err(error) => Err(Error::Dial(format!("dial unix {}: connect: {error}", path.display()))),
            },
            Self::Address { host, port, tls } => {
                let stream = dial(host, *port, false).await?;
                let Some((config, name)) = tls else { return Ok(Box::new(stream)) };
                let shaken = TlsConnector::from(Arc::clone(config)).connect(name.clone(), stream).await;
                match shaken {
                    Ok(stream) => Ok(Box::new(stream)),
                    Err(error) => Err(Error::Handshake(wording::handshake(&error, name, &self.shown()))),
                }
            }
        }
    }

    /// Returns the endpoint as errors state it.
    fn shown(&self) -> String {
        match self {
            Self::Socket(path) => path.display().to_string(),
            Self::Address { host, port, .. } => super::dial::shown(host, *port),
        }
    }
}

#[cfg(test)]
#[path = "egress_tests.rs"]
mod tests;
