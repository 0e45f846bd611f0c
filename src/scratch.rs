//! Temporary directories for tests.

use std::ops::Deref;
use std::path::Path;

use tempfile::TempDir;

/// A temporary directory of one test; dropping it removes its content.
pub(crate) struct Scratch(TempDir);

impl Scratch {
    pub(crate) fn new() -> Self {
        Self(tempfile::Builder::new().prefix("flotilla-").tempdir().expect("a temporary directory"))
    }
}

impl Deref for Scratch {
    type Target = Path;

    fn deref(&self) -> &Path {
        self.0.path()
    }
}
