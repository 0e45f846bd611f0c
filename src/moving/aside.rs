//! What cannot be taken over, in a file beside: a line of JSON for each key, with its value as it was.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufWriter, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
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
///
/// It has a second name until the import is complete. A file with both names is therefore what an import has left that
/// was killed, and the next one of the same data directory replaces it.
#[derive(Debug)]
pub(super) struct Aside {
    path: PathBuf,
    unfinished: PathBuf,
    /// The file, held as long as somebody writes it or may have to remove it.
    file: Option<BufWriter<File>>,
    count: u64,
    /// Whether what was left by others is out of the way.
    begun: bool,
    /// Whether the file has its name.
    named: bool,
}

impl Aside {
    /// A file that is not there yet, of an import to a data directory. What stands at its place is an error when
    /// something is to be written.
    pub(super) fn new(path: &Path, data_dir: &Path) -> Self {
        let absolute = std::path::absolute(data_dir).unwrap_or_else(|_| data_dir.to_owned());
        let mut unfinished = path.to_owned().into_os_string();
        unfinished.push(format!(".{:08x}.tmp", crc32c::crc32c(absolute.as_os_str().as_bytes())));
        let (path, unfinished) = (path.to_owned(), unfinished.into());
        Self { path, unfinished, file: None, count: 0, begun: false, named: false }
    }

    /// Where the file is to be.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a key. There may be Secrets among them, so that nobody else may read the file.
    pub(super) fn add(&mut self, key: &str, revision: i64, why: &str, value: &[u8]) -> io::Result<()> {
        self.begin()?;
        let file = match &mut self.file {
            Some(file) => file,
            None => {
                let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&self.unfinished)?;
                file.try_lock()?;
                self.file.insert(BufWriter::new(file))
            }
        };
        serde_json::to_writer(&mut *file, &Line { key, revision, why, value: STANDARD.encode(value) })?;
        self.count += 1;
        file.write_all(b"\n")
    }

    /// Makes the file durable, and gives it its name; where it is, and how many keys it has. The import must be said to
    /// be complete then, or the file goes again.
    pub(super) fn finish(&mut self) -> io::Result<Option<(PathBuf, u64)>> {
        self.begin()?;
        let Some(file) = &mut self.file else { return Ok(None) };
        file.flush()?;
        file.get_ref().sync_all()?;
        // What stands at its place is somebody else's.
        fs::hard_link(&self.unfinished, &self.path)?;
        self.named = true;
        Ok(Some((self.path.clone(), self.count)))
    }

    /// The import is complete: the file stays.
    pub(super) fn complete(&mut self) {
        if self.file.take().is_some() {
            let _ = fs::remove_file(&self.unfinished); // a second name does no harm
        }
    }

    /// Removes what an import to the same data directory has left that was killed before it was complete.
    fn begin(&mut self) -> io::Result<()> {
        if std::mem::replace(&mut self.begun, true) {
            return Ok(());
        }
        let left = match File::open(&self.unfinished) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            left => left?,
        };
        match left.try_lock() {
            Err(TryLockError::WouldBlock) => return Err(io::Error::other("another import is writing it")),
            locked => locked?,
        }
        let of = |found: &fs::Metadata| (found.dev(), found.ino());
        if fs::symlink_metadata(&self.path).is_ok_and(|found| left.metadata().is_ok_and(|left| of(&found) == of(&left)))
        {
            fs::remove_file(&self.path)?;
        }
        fs::remove_file(&self.unfinished)
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        if self.file.take().is_none() {
            return;
        }
        // It is of no use without the rest.
        if self.named {
            let _ = fs::remove_file(&self.path);
        }
        let _ = fs::remove_file(&self.unfinished);
    }
}

#[cfg(test)]
#[path = "aside_tests.rs"]
mod tests;
