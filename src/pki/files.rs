//! Files with secrets: read with a bound, published whole or not at all.

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

/// Makes a directory that only the server may enter, with its parents.
///
/// # Errors
/// When it cannot be made.
pub fn make_dir(path: &Path) -> Result<(), PkiError> {
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(at(path))
}

/// Reads a text file of at most [`CREDENTIAL_FILE_BYTES`].
///
/// # Errors
/// When it cannot be read, is larger, or is no UTF-8.
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

/// Reads a file; `None` when there is none.
pub(super) fn read_existing(path: &Path) -> Result<Option<String>, PkiError> {
    match read(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(at(path)(error)),
    }
}

/// Publishes a file unless there is one, and answers what is there then: the first of several writers wins.
///
/// # Errors
/// When it cannot be written.
pub fn publish_new(path: &Path, content: &str, mode: u32) -> Result<String, PkiError> {
    let draft = write_draft(path, content.as_bytes(), mode).map_err(at(path))?;
    let linked = std::fs::hard_link(&draft, path);
    let removed = std::fs::remove_file(&draft);
    match linked {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        Err(error) => return Err(at(path)(error)),
    }
    removed.and_then(|()| sync_dir(path)).map_err(at(path))?;
    read_credential(path)
}

/// Puts a file in the place of whatever is there, whole or not at all.
///
/// # Errors
/// When it cannot be written.
pub fn replace(path: &Path, content: &[u8], mode: u32) -> Result<(), PkiError> {
    let publish = || {
        let draft = write_draft(path, content, mode)?;
        std::fs::rename(&draft, path).inspect_err(|_| {
            // The draft is of no use any more; that it stays behind would be the smaller failure of the two.
            let _ = std::fs::remove_file(&draft);
        })?;
        sync_dir(path)
    };
    publish().map_err(at(path))
}

/// As [`replace`], but leaves a file alone that has this content already.
pub(super) fn replace_if_changed(path: &Path, content: &[u8], mode: u32) -> Result<(), PkiError> {
    match read_existing(path) {
        Ok(Some(text)) if text.as_bytes() == content => Ok(()),
        _ => replace(path, content, mode),
    }
}

/// Writes a file beside `path` under a name of its own, and waits until it is on the disk.
fn write_draft(path: &Path, content: &[u8], mode: u32) -> io::Result<PathBuf> {
    static SERIAL: AtomicU64 = AtomicU64::new(0);
    let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}-{serial}-{:016x}.draft", std::process::id(), random()?));
    let draft = path.with_file_name(name);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&draft)?;
    file.write_all(content)?;
    file.sync_all()?;
    Ok(draft)
}

/// Tells drafts of several machines apart, whose processes may have the same number.
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
