//! Snapshots of etcd v3, as `etcdctl snapshot save` writes them and `etcdutl snapshot restore` takes them.
//!
//! Such a file is a database of bbolt (go.etcd.io/bbolt: pages of B+ trees, in buckets) with the SHA-256 of all of it
//! at its end. [`Snapshot`] reads one and trusts nothing in it: every offset is checked, and what is wrong is told with
//! the page where it stands. [`Current`] is what the database of keys holds at its last revision. [`Writer`] writes a
//! new snapshot from front to back.
//!
//! The crate knows nothing of what the values mean.

mod current;
mod error;
mod keyvalue;
pub mod limits;
mod page;
mod snapshot;
#[cfg(test)]
mod tests;
mod tree;
mod writer;

pub use current::{Current, Live};
pub use error::Error;
pub use keyvalue::{KeyValue, Lease};
pub use page::Place;
pub use snapshot::{Hash, Snapshot, Versions};
pub use writer::{Ending, Writer};
