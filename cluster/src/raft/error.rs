//! The reason why a group cannot be started, formed, or written to a snapshot.

use std::io;

/// The reason why a group cannot be started.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    #[error(transparent)]
    Storage(#[from] io::Error),
    #[error("the snapshot after which the log continues is missing; restore the data directory from a backup")]
    NoSnapshot,
    #[error("the group cannot be started: {0}")]
    Raft(String),
}

pub(super) fn refused(error: impl std::fmt::Display) -> StartError {
    StartError::Raft(error.to_string())
}
