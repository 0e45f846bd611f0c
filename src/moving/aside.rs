//! What cannot be taken over, in a file beside: a line of JSON for each key, with its value as it was.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

/// A line of the file.
#[derive(Debug, Serialize)]
struct Line<'a> {
    key: &'a str,
    revision: i64,
    why: &'a str,
    value: String,
}

/// Writes the file, which is there only if something is in it.
#[derive(Debug)]
pub(super) struct Aside {
    path: PathBuf,
    file: Option<BufWriter<File>>,
    count: u64,
}

impl Aside {
    /// A file that is not there yet. What stands at its place is an error when something is to be written.
    pub(super) fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), file: None, count: 0 }
    }

    /// Removes what a process has left that was killed while it wrote the same file.
    pub(super) fn clear(path: &Path) {
        let _ = fs::remove_file(Self::new(path).unfinished());
    }

    /// Adds a key. There may be Secrets among them, so that nobody else may read the file.
    pub(super) fn add(&mut self, key: &str, revision: i64, why: &str, value: &[u8]) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            None => {
                let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(self.unfinished())?;
                self.file.insert(BufWriter::new(file))
            }
        };
        serde_json::to_writer(&mut *file, &Line { key, revision, why, value: STANDARD.encode(value) })?;
        self.count += 1;
        file.write_all(b"\n")
    }

    /// Makes the file durable, and gives it its name; where it is, and how many keys it has.
    pub(super) fn finish(&mut self) -> io::Result<Option<(PathBuf, u64)>> {
        let Some(file) = &mut self.file else { return Ok(None) };
        file.flush()?;
        file.get_ref().sync_all()?;
        // What stands at its place is somebody else's.
        fs::hard_link(self.unfinished(), &self.path)?;
        self.file = None;
        fs::remove_file(self.unfinished())?;
        Ok(Some((self.path.clone(), self.count)))
    }

    fn unfinished(&self) -> PathBuf {
        let mut path = self.path.clone().into_os_string();
        path.push(".tmp");
        path.into()
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        if self.file.take().is_some() {
            let _ = fs::remove_file(self.unfinished()); // of no use without the rest
        }
    }
}
