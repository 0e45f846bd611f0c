//! What can go wrong with another server, in Go's words.

use http::header::{HeaderMap, UPGRADE};

/// What is said of a certificate without alternative names.
pub(super) const NAMELESS: &str = "certificate relies on legacy Common Name field, use SANs instead";

/// Why a server did not answer. The text is what Go's client says, without the method and URL before it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// No connection came about.
    #[error("{0}")]
    Dial(String),
    /// The host may not be connected with on behalf of clients.
    #[error("address not allowed")]
    Forbidden,
    /// Trust, identity or name of the peer cannot be used.
    #[error("{0}")]
    Setup(String),
    /// The handshake of TLS failed.
    #[error("{0}")]
    Handshake(String),
    /// The connection broke before the answer was there.
    #[error("{0}")]
    Broken(String),
    /// The time was over.
    #[error("context deadline exceeded")]
    Deadline,
    /// More requests wait for this peer than may.
    #[error("too many requests wait for {0}")]
    Busy(String),
    /// An answer has more bytes than are read.
    #[error("http: response body too large: more than {0} bytes")]
    TooLarge(usize),
}

impl Error {
    /// That a peer goes on with a protocol that it was not asked for.
    pub fn switched(headers: &HeaderMap) -> Self {
        let protocol = headers.get(UPGRADE).map_or_else(String::new, |value| format!("{value:?}"));
        Self::Broken(format!("backend tried to switch protocol {protocol} when \"\" was requested"))
    }

    /// Whether the peer did not prove who it is.
    pub fn is_of_certificate(&self) -> bool {
        matches!(self, Self::Handshake(why) if why.contains("x509:"))
    }

    /// Whether the certificate of the peer names nobody, but for the old field that is not looked at.
    pub fn is_of_nameless(&self) -> bool {
        matches!(self, Self::Handshake(why) if why.ends_with(NAMELESS))
    }

    /// Whether no request can have reached the peer.
    pub const fn is_before_request(&self) -> bool {
        !matches!(self, Self::Broken(_) | Self::Deadline | Self::TooLarge(_))
    }
}
