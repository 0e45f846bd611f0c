//! The aside file: it collects the keys that cannot be imported, a line of JSON for each, with their original values.

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

/// Writes the aside file. The file is created only when a key is added.
///
/// Until the import is complete, the file has a second name. If a file has both names, an import was killed before it
/// was complete; the next import into the same data directory replaces the file.
#[derive(Debug)]
pub(super) struct Aside {
    path: PathBuf,
    unfinished: PathBuf,
    /// The open file. It is kept until the import is complete, to hold its lock and to remove it after a failure.
    file: Option<BufWriter<File>>,
    count: u64,
    /// Whether the file of a killed import was looked for.
    begun: bool,
    /// Whether the file has its final name.
    named: bool,
}

impl Aside {
    /// Prepares a file at `path` for an import into `data_dir`, without creating it. If another file exists at `path`,
    /// the first write fails.
    pub(super) fn new(path: &Path, data_dir: &Path) -> Self {
        let absolute = std::path::absolute(data_dir).unwrap_or_else(|_| data_dir.to_owned());
        let mut unfinished = path.to_owned().into_os_string();
        unfinished.push(format!(".{:08x}.tmp", crc32c::crc32c(absolute.as_os_str().as_bytes())));
        let (path, unfinished) = (path.to_owned(), unfinished.into());
        Self { path, unfinished, file: None, count: 0, begun: false, named: false }
    }

    /// Returns the path of the complete file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a key with its value. Only the owner may read the file, because it may contain Secrets.
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

    /// Makes the file durable and gives it its final name. Returns the path and the number of keys. `None` if no key
    /// was added. If [`Aside::complete`] is not called afterwards, the file is removed.
    pub(super) fn finish(&mut self) -> io::Result<Option<(PathBuf, u64)>> {
        self.begin()?;
        let Some(file) = &mut self.file else { return Ok(None) };
        file.flush()?;
        file.get_ref().sync_all()?;
        // A hard link never replaces another file.
        fs::hard_link(&self.unfinished, &self.path)?;
        self.named = true;
        Ok(Some((self.path.clone(), self.count)))
    }

    /// Keeps the file, because the import is complete.
    pub(super) fn complete(&mut self) {
        if self.file.take().is_some() {
            let _ = fs::remove_file(&self.unfinished); // a remaining second name does no harm
        }
    }

    /// Removes the file of an import into the same data directory that was killed before it was complete.
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
        // Without the rest of the import, the file is useless.
        if self.named {
            let _ = fs::remove_file(&self.path);
        }
        let _ = fs::remove_file(&self.unfinished);
    }
}

#[cfg(test)]
#[path = "aside_tests.rs"]
mod tests;
