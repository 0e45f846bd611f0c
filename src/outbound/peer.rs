//! Whom to connect with, and whom to believe.

use bytes::Bytes;

/// A server: where it is, and how it proves who it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Peer {
    /// Name or address that is dialled.
    pub host: String,
    /// Port.
    pub port: u16,
    /// Whether hosts that upstream forbids to proxy to are refused, also where a name leads to them.
    pub guarded: bool,
    /// TLS; `None` for a plain connection.
    pub secure: Option<Secure>,
}

/// How TLS is spoken with a server.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Secure {
    /// The name, or address, that its certificate must be for.
    pub server_name: String,
    /// Whom to believe that.
    pub trust: Trust,
    /// What this server proves itself with.
    pub identity: Option<Identity>,
    /// Whether HTTP/2 is offered.
    pub http2: bool,
}

/// Who may vouch for a server.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Trust {
    /// Whom this machine trusts.
    System,
    /// These certificates, in PEM.
    Bundle(Bytes),
    /// Nobody needs to.
    Anybody,
}

impl Trust {
    /// A bundle in PEM, where none means whom this machine trusts.
    pub fn bundle(pem: impl Into<Bytes>) -> Self {
        let pem = pem.into();
        if pem.is_empty() { Self::System } else { Self::Bundle(pem) }
    }
}

/// A client certificate and its key, in PEM.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Identity {
    /// The certificate, and those between it and the authority.
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
    /// Host and port, as errors show them.
    pub fn address(&self) -> String {
        super::dial::shown(&self.host, self.port)
    }
}
