//! Snapshots of etcd v3, as `etcdctl snapshot save` writes them and `etcdutl snapshot restore` takes them.
//!
//! Such a file is a database of bbolt (go.etcd.io/bbolt: buckets of B+ trees of pages) with its SHA-256 at the end.
//! [`Snapshot`] reads one and trusts nothing in it: it checks every offset, and its errors name the page. [`Current`]
//! holds the keys that exist at the last revision. [`SnapshotWriter`] writes a new snapshot from front to back.
//!
//! The crate does not interpret the values.
//!
//! # Order
//!
//! A module imports only modules that are named before it here; `tests/layers.rs` of the workspace checks that.
//!
//! - Bounds, errors, records: `limits`, `error`, `keyvalue`
//! - From pages to the database: `page`, `tree`, `snapshot`
//! - Reading the keys of a snapshot, and writing one: `current`, `writer`

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
pub use page::FileLocation;
pub use snapshot::{Hash, Snapshot, Versions};
pub use writer::{Ending, SnapshotWriter};
