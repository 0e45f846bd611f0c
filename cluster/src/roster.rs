//! Members by name and address, as logs and the shard map list them.

use std::fmt;

/// A member as the log knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replica {
    /// Its name, as it is told to people.
    pub name: String,
    /// Where other replicas reach it, `HOST:PORT`.
    pub address: String,
}

impl fmt::Display for Replica {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.name, self.address)
    }
}
