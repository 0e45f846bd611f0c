//! Describes the objects to which tokens are bound.

use std::time::SystemTime;

use compact_str::CompactString;

/// Kinds of objects that tokens are bound to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BoundKind {
    /// A service account: every token has one.
    ServiceAccount,
    /// A pod.
    Pod,
    /// A secret.
    Secret,
    /// A node; it has no namespace.
    Node,
}

/// The properties of an object that verification needs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BoundProperties {
    /// Revision of the object.
    pub revision: u64,
    /// UID.
    pub uid: CompactString,
    /// When its deletion was requested. `None` if it was not.
    pub deleted_at: Option<SystemTime>,
    /// The service account of a pod; empty for other kinds.
    pub service_account: CompactString,
    /// The node of a pod; may be empty.
    pub node: CompactString,
    /// The Secrets that a service account lists; empty for other kinds.
    pub secrets: Vec<CompactString>,
    /// The token in a Secret of a service account.
    pub token: Option<Vec<u8>>,
    /// The day on which the token in a Secret was last used, as its label states it; may be empty.
    pub last_used: CompactString,
    /// The day since which the token in a Secret is refused, as its label states it; may be empty.
    pub invalid_since: CompactString,
}

/// Finds objects that tokens are bound to. Implementations read memory, since every request asks.
pub trait BoundObjects: std::fmt::Debug + Send + Sync {
    /// Returns the revision of an object. `None` if it does not exist.
    fn revision(&self, kind: BoundKind, namespace: &str, name: &str) -> Option<u64>;

    /// Returns an object. `None` if it does not exist.
    fn find(&self, kind: BoundKind, namespace: &str, name: &str) -> Option<BoundProperties>;
}
