//! Opens the data of one replica, when a majority of the members is gone for good.
//!
//! The replica's own data is not changed: a copy becomes a store with a single replica, of which a backup is taken.
//! Nothing is lost if another member turns up after all.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::check_finished;
use crate::disk::{EncryptedDisk, KeyWrapping, LocalDisk};
use crate::lock::lock;
use crate::replica::forming::identity::FORFEIT;
use crate::wal::missing_end;
use crate::{OpenError, Options, Store};

/// The directories that the copy gets.
const DIRECTORIES: [&str; 2] = [LOG, "snapshots"];
/// The directory of the write-ahead log.
const LOG: &str = "wal";
/// The file with the identity of the replica.
const MEMBER: &str = "member";

/// The reason why nothing was salvaged.
#[derive(Debug, thiserror::Error)]
pub enum SalvageError {
    /// The directory has no store.
    #[error("{directory} is no data directory: it has no file {MEMBER:?}")]
    Missing {
        /// The directory.
        directory: PathBuf,
    },
    /// The copy cannot be made at that path.
    #[error("the copy cannot be at {copy}: {why}")]
    Location {
        /// The path.
        copy: PathBuf,
        /// The reason.
        why: &'static str,
    },
    /// The directory cannot be copied.
    #[error("cannot copy {directory} to {copy}")]
    Copy {
        /// The directory.
        directory: PathBuf,
        /// The path of the copy.
        copy: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// The copy cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
}

/// Opens a copy of a data directory that no server uses, as a store with a single replica. The copy has every write in
/// the directory, even one that no quorum is known to have, since the store may have acknowledged it. The directory of
/// the copy must not exist yet; the caller removes it after closing the store. `key_wrapping` has the keys of an
/// encrypted store.
///
/// # Errors
/// See [`SalvageError`]. The copy is removed then. `on_fatal` is called like that of [`Options`].
pub async fn salvage(
    directory: &Path,
    copy: &Path,
    key_wrapping: Option<Arc<dyn KeyWrapping>>,
    on_fatal: Arc<dyn Fn(&str) + Send + Sync>,
) -> Result<Store, SalvageError> {
    if !directory.join(MEMBER).is_file() {
        return Err(SalvageError::Missing { directory: directory.to_owned() });
    }
    check_finished(directory)?;
    check_place(directory, copy)?;
    if directory.join(FORFEIT).exists() {
        tracing::warn!("this member has lost entries that it had acknowledged: the backup lacks them, too");
    }
    let _lock = lock(&Options::new(directory))?;
    warn_of_missing_log(directory, key_wrapping.clone());
    let failed = |source| SalvageError::Copy { directory: directory.to_owned(), copy: copy.to_owned(), source };
    create(copy).map_err(failed)?;
    let opened = match duplicate(directory, copy) {
        Ok(()) => {
            let options = Options { is_survivor: true, key_wrapping, on_fatal, ..Options::new(copy) };
            Store::open(options).await.map_err(SalvageError::from)
        }
        Err(error) => Err(failed(error)),
    };
    opened.inspect_err(|_| {
        let _ = fs::remove_dir_all(copy); // the copy is of no use; the first error is the one to report
    })
}

/// Warns if the newest segment of the log is missing, or its last frames. The salvage goes on. The copy has the rest of
/// the log, but not the note of how far the log had come: with that note, a store refuses to open such a log.
fn warn_of_missing_log(directory: &Path, key_wrapping: Option<Arc<dyn KeyWrapping>>) {
    let disk = EncryptedDisk::over(Arc::new(LocalDisk::DURABLE), key_wrapping);
    match missing_end(&disk, &directory.join(LOG)) {
        Ok(None) => {}
        Ok(Some(path)) => {
            let path = path.display();
            tracing::warn!(%path, "the end of the write-ahead log is missing: the backup lacks the last writes");
        }
        Err(error) => tracing::warn!(%error, "cannot tell whether the end of the write-ahead log is missing"),
    }
}

fn check_place(directory: &Path, copy: &Path) -> Result<(), SalvageError> {
    let refused = |why| Err(SalvageError::Location { copy: copy.to_owned(), why });
    if copy.exists() {
        return refused("it is there already; remove it if a backup that was interrupted has left it");
    }
    let parent = copy.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match (directory.canonicalize(), parent.canonicalize()) {
        (Ok(directory), Ok(parent)) if parent.starts_with(&directory) => refused("it would be in the copied directory"),
        _ => Ok(()),
    }
}

/// Creates a new directory that only its owner can read: it will contain secrets. Files keep their modes.
fn create(directory: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(directory)
}

fn duplicate(directory: &Path, copy: &Path) -> io::Result<()> {
    fs::copy(directory.join(MEMBER), copy.join(MEMBER))?;
    for name in DIRECTORIES {
        duplicate_tree(&directory.join(name), &copy.join(name))?;
    }
    Ok(())
}

fn duplicate_tree(directory: &Path, copy: &Path) -> io::Result<()> {
    create(copy)?;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let (from, to) = (entry.path(), copy.join(entry.file_name()));
        if entry.file_type()?.is_dir() {
            duplicate_tree(&from, &to)?;
        } else {
            fs::copy(from, to)?;
        }
    }
    Ok(())
}
