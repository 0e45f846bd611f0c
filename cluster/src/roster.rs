//! The name and address of a member, as logs and the shard map record them.

use std::fmt;

/// A member as a log records it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replica {
    /// Its name, for people.
    pub name: String,
    /// The address at which other replicas reach it, `HOST:PORT`.
    pub address: String,
}

impl fmt::Display for Replica {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.name, self.address)
    }
}
