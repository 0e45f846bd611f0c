//! The address of another server, and the certificates to trust.

use bytes::Bytes;

use super::Network;

/// A server: its address, and how it is authenticated.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Peer {
    /// The name or address to dial.
    pub host: String,
    /// Port.
    pub port: u16,
    /// Its network.
    pub network: Network,
    /// Whether the connection is on behalf of a client. Addresses to which the reference forbids proxying are then
    /// refused, even if a name resolves to them.
    pub guarded: bool,
    /// The TLS settings. `None` for a connection without TLS.
    pub secure: Option<Secure>,
}

/// The TLS settings for a server.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Secure {
    /// The name or address for which its certificate must be valid.
    pub server_name: String,
    /// The authorities that may have issued its certificate.
    pub trust: Trust,
    /// The certificate of this server.
    pub identity: Option<Identity>,
    /// Whether to offer HTTP/2.
    pub http2: bool,
}

/// The authorities that may have issued a server's certificate.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Trust {
    /// Those that this machine trusts.
    System,
    /// These certificates, in PEM.
    Bundle(Bytes),
    /// Any: the certificate is not verified.
    Anybody,
}

impl Trust {
    /// Trusts a bundle in PEM. An empty bundle means the authorities that this machine trusts.
    pub fn bundle(pem: impl Into<Bytes>) -> Self {
        let pem = pem.into();
        if pem.is_empty() { Self::System } else { Self::Bundle(pem) }
    }
}

/// A client certificate and its key, in PEM.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Identity {
    /// The certificate, followed by intermediate certificates.
    pub certificates: Bytes,
    /// The key.
    pub key: Bytes,
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Identity").finish_non_exhaustive()
    }
}

impl Peer {
    /// Joins host and port for errors.
    pub fn address(&self) -> String {
        super::dial::shown(&self.host, self.port)
    }
}
