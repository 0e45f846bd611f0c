//! Directories for tests.

use std::ops::Deref;
use std::path::Path;

use tempfile::TempDir;

/// A directory of its own for a test, removed with everything in it in the end.
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
