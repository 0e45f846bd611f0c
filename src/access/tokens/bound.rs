//! Objects that tokens are bound to.

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

/// What verification needs to know of an object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// Revision that this was read from.
    pub revision: u64,
    /// UID.
    pub uid: CompactString,
    /// When deletion was asked for, if it was.
    pub deleted_at: Option<SystemTime>,
    /// Of a pod: its service account. Otherwise empty.
    pub service_account: CompactString,
    /// Of a pod: its node. May be empty.
    pub node: CompactString,
    /// Of a secret with a token of a service account: that token.
    pub token: Option<Vec<u8>>,
}

/// Finds objects that tokens are bound to. Answers come from memory: they are asked for at every request.
pub trait BoundObjects: std::fmt::Debug + Send + Sync {
    /// Revision of an object, if there is one of this name.
    fn revision(&self, kind: BoundKind, namespace: &str, name: &str) -> Option<u64>;

    /// An object, if there is one of this name.
    fn find(&self, kind: BoundKind, namespace: &str, name: &str) -> Option<Found>;
}
