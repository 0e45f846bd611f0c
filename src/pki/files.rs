//! Reads and writes files with secrets. Reading is bounded, and writing is atomic.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::PkiError;
use crate::limits::CREDENTIAL_FILE_BYTES;

/// Mode of files that only the server may read.
pub const PRIVATE: u32 = 0o600;

/// Mode of files that everybody may read.
pub const PUBLIC: u32 = 0o644;

/// Creates a directory that only the server may enter, with its parents.
///
/// # Errors
/// If it cannot be created.
pub fn make_dir(path: &Path) -> Result<(), PkiError> {
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(at(path))
}

/// Reads a text file of less than [`CREDENTIAL_FILE_BYTES`].
///
/// # Errors
/// If it cannot be read, is too large, or is not UTF-8.
pub fn read_credential(path: &Path) -> Result<String, PkiError> {
    read(path).map_err(at(path))
}

fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(CREDENTIAL_FILE_BYTES).read_to_string(&mut text)?;
    if text.len() as u64 == CREDENTIAL_FILE_BYTES {
        return Err(io::Error::new(ErrorKind::FileTooLarge, "the file is too large"));
    }
    Ok(text)
}

/// Reads a file. Returns `None` if it does not exist.
pub(super) fn read_existing(path: &Path) -> Result<Option<String>, PkiError> {
    match read(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(at(path)(error)),
    }
}

/// Creates a file unless it exists, and returns its content: of several writers the first wins.
///
/// # Errors
/// When it cannot be written.
pub fn publish_new(path: &Path, content: &str, mode: u32) -> Result<String, PkiError> {
    let publish = || {
        let draft = FileDraft::write(path, content.as_bytes(), mode)?;
        match std::fs::hard_link(&draft.0, path) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
            _ => drop(draft),
        }
        sync_dir(path)
    };
    publish().map_err(at(path))?;
    read_credential(path)
}

/// Creates or replaces a file atomically.
///
/// # Errors
/// When it cannot be written.
pub fn replace(path: &Path, content: &[u8], mode: u32) -> Result<(), PkiError> {
    let publish = || {
        let draft = FileDraft::write(path, content, mode)?;
        std::fs::rename(&draft.0, path)?;
        sync_dir(path)
    };
    publish().map_err(at(path))
}

/// As [`replace`], but does nothing if the file already has this content.
pub(super) fn replace_if_changed(path: &Path, content: &[u8], mode: u32) -> Result<(), PkiError> {
    match read_existing(path) {
        Ok(Some(text)) if text.as_bytes() == content => Ok(()),
        _ => replace(path, content, mode),
    }
}

/// A complete file that waits beside its destination. Dropping it removes it, unless it was renamed.
struct FileDraft(PathBuf);

impl FileDraft {
    /// Writes a file beside `path` under a unique name, and waits until it is on the disk.
    fn write(path: &Path, content: &[u8], mode: u32) -> io::Result<Self> {
        static SERIAL: AtomicU64 = AtomicU64::new(0);
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}-{serial}-{:016x}.draft", std::process::id(), random()?));
        let draft = path.with_file_name(name);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&draft)?;
        let draft = Self(draft);
        file.write_all(content)?;
        file.sync_all()?;
        Ok(draft)
    }
}

impl Drop for FileDraft {
    fn drop(&mut self) {
        // After a rename there is none. One that cannot be removed does no harm, because nothing reads it.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Returns a random number, which distinguishes drafts of several machines, whose processes may have the same id.
fn random() -> io::Result<u64> {
    let mut bytes = [0; 8];
    ring::rand::SecureRandom::fill(&ring::rand::SystemRandom::new(), &mut bytes)
        .map_err(|_| io::Error::other("no random numbers"))?;
    Ok(u64::from_ne_bytes(bytes))
}

fn sync_dir(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => File::open(dir)?.sync_all(),
        _ => File::open(".")?.sync_all(),
    }
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> PkiError {
    let path = path.to_owned();
    move |source| PkiError::File { path, source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn a_file_that_cannot_be_written_leaves_no_draft() {
        let dir = Scratch::new();
        let path = dir.join("taken");
        std::fs::create_dir(&path).unwrap();
        replace(&path, b"text", 0o600).unwrap_err();
        publish_new(&path, "text", 0o600).unwrap_err();
        let free = dir.join("free");
        replace(&free, b"text", 0o600).unwrap();
        assert_eq!(publish_new(&free, "later", 0o600).unwrap(), "text");
        let names = std::fs::read_dir(&*dir).unwrap().map(|entry| entry.unwrap().file_name());
        assert_eq!(names.collect::<std::collections::BTreeSet<_>>(), ["free", "taken"].map(Into::into).into());
    }
}
