//! The reason why a snapshot cannot be read or written.

use std::io;

/// The reason why a snapshot cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be read or written.
    #[error("the snapshot cannot be read or written")]
    Io(#[from] io::Error),
    /// It is too short for a snapshot.
    #[error("this is no snapshot of etcd: it has {bytes} bytes, fewer than its first pages take")]
    Short {
        /// The number of bytes.
        bytes: u64,
    },
    /// It has no hash, and the caller demands one.
    #[error("the snapshot of {bytes} bytes has no hash at its end, so it may be incomplete")]
    NoHash {
        /// The number of bytes.
        bytes: u64,
    },
    /// It does not match its hash.
    #[error("the snapshot does not match the hash at its end: it is incomplete or damaged")]
    Hash,
    /// Neither of the two meta pages is valid.
    #[error("this is no snapshot of etcd, or a damaged one: page 0 {first}, page 1 {second}")]
    NoMeta {
        /// The error in the first one.
        first: &'static str,
        /// The error in the second one.
        second: &'static str,
    },
    /// A page does not have the form of bbolt.
    #[error("page {page} of the snapshot is damaged: {what}")]
    Page {
        /// Its number.
        page: u64,
        /// The fault, in words.
        what: &'static str,
    },
    /// A bucket that every snapshot has is missing.
    #[error("the snapshot has no bucket {0:?}")]
    NoBucket(&'static str),
    /// An entry of the keys does not have the form of etcd.
    #[error("an entry of page {page} of the snapshot cannot be read: {what}")]
    Entry {
        /// The page.
        page: u64,
        /// The fault, in words.
        what: &'static str,
    },
    /// Entries are not written in the order of their revisions.
    #[error("revision {0} comes after a larger one")]
    Order(i64),
}

impl Error {
    pub(crate) fn page(page: u64, what: &'static str) -> Error {
        Error::Page { page, what }
    }
}
