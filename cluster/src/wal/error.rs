//! Errors of the log.

use std::io;
use std::path::PathBuf;

/// The reason why the log cannot be opened or read.
#[derive(Debug, thiserror::Error)]
pub enum WalError {
    /// A file cannot be used.
    #[error("{path}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A file has changed since it was made durable.
    #[error(
        "{path} is damaged at offset {offset}: {what}; restore the data directory from a backup, or start a replica of \
         several with an empty one and join it again"
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The offset of the damage in the file, in bytes.
        offset: u64,
        /// The fault, in words.
        what: &'static str,
    },
    /// A file that existed is missing.
    #[error(
        "{path} is missing, and acknowledged writes with it; restore the data directory from a backup, or start a replica of \
         several with an empty one and join it again"
    )]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// A file was written by a later release.
    #[error("{path} has format {version}, newer than {supported}, the newest that this release reads")]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format.
        version: u32,
        /// The newest format that is read.
        supported: u32,
    },
}
