//! Errors of calls to other servers, in Go's words.

use http::header::{HeaderMap, UPGRADE};

/// Go's text for a certificate without subject alternative names.
pub(super) const NAMELESS: &str = "certificate relies on legacy Common Name field, use SANs instead";

/// The reason why a call failed. The text is that of Go's client, without the method and URL that precede it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// No connection was established.
    #[error("{0}")]
    Dial(String),
    /// The server must not connect to this host on behalf of clients.
    #[error("address not allowed")]
    Forbidden,
    /// The trust, identity or name given for the peer is invalid.
    #[error("{0}")]
    Setup(String),
    /// The TLS handshake failed.
    #[error("{0}")]
    Handshake(String),
    /// The connection failed before the answer was complete.
    #[error("{0}")]
    Broken(String),
    /// The deadline has passed.
    #[error("context deadline exceeded")]
    Deadline,
    /// Too many requests wait for this peer.
    #[error("too many requests wait for {0}")]
    Busy(String),
    /// The answer is longer than the bound.
    #[error("http: response body too large: more than {0} bytes")]
    TooLarge(usize),
}

impl Error {
    /// Returns the error for a peer that switches to a protocol that was not requested.
    pub fn switched(headers: &HeaderMap) -> Self {
        let protocol = headers.get(UPGRADE).map_or_else(String::new, |value| format!("{value:?}"));
        Self::Broken(format!("backend tried to switch protocol {protocol} when \"\" was requested"))
    }

    /// Returns whether the peer's certificate was not accepted.
    pub fn is_of_certificate(&self) -> bool {
        matches!(self, Self::Handshake(why) if why.contains("x509:"))
    }

    /// Returns whether the peer's certificate has no subject alternative names, but only the common name, which is
    /// ignored.
    pub fn is_of_nameless(&self) -> bool {
        matches!(self, Self::Handshake(why) if why.ends_with(NAMELESS))
    }

    /// Returns whether the failure preceded the request, so that the peer cannot have received it.
    pub const fn is_before_request(&self) -> bool {
        !matches!(self, Self::Broken(_) | Self::Deadline | Self::TooLarge(_))
    }
}
