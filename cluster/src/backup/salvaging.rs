//! Opening what one replica has, when a majority of the others is gone for good.
//!
//! Nothing of that replica is changed: it is a copy that goes on alone, to take a backup of. So whoever finds another
//! member after all, or makes a mistake, has lost nothing.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::check_finished;
use crate::replica::identity::FORFEIT;
use crate::wal::disk::LocalDisk;
use crate::wal::missing_end;
use crate::{OpenError, Options, Store, lock};

/// What a data directory has of a store: in directories, and the file that says whose it is.
const DIRECTORIES: [&str; 2] = [LOG, "snapshots"];
const LOG: &str = "wal";
const MEMBER: &str = "member";

/// Why nothing was salvaged.
#[derive(Debug, thiserror::Error)]
pub enum SalvageError {
    /// There is no store.
    #[error("{directory} is no data directory: it has no file {MEMBER:?}")]
    Missing {
        /// The directory.
        directory: PathBuf,
    },
    /// The copy cannot be there.
    #[error("the copy cannot be at {copy}: {why}")]
    Place {
        /// Where it was to be.
        copy: PathBuf,
        /// Why not.
        why: &'static str,
    },
    /// It cannot be copied.
    #[error("cannot copy {directory} to {copy}")]
    Copy {
        /// The directory.
        directory: PathBuf,
        /// Where the copy was to be.
        copy: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// It cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
}

/// Opens a copy of a data directory that no server uses, as the store of one replica that has all that is in it: also
/// what no quorum is known to have, since it may have been acknowledged. The directory of the copy must not be there
/// yet; who closes the store removes it.
///
/// # Errors
/// See [`SalvageError`]. The copy is removed then. `on_fatal` is called as that of [`Options`].
pub async fn salvage(
    directory: &Path,
    copy: &Path,
    on_fatal: Arc<dyn Fn(&str) + Send + Sync>,
) -> Result<Store, SalvageError> {
    if !directory.join(MEMBER).is_file() {
        return Err(SalvageError::Missing { directory: directory.to_owned() });
    }
    check_finished(directory)?;
    check_place(directory, copy)?;
    if directory.join(FORFEIT).exists() {
        tracing::warn!("this member had found that it lacks entries which it had acknowledged: so does the backup");
    }
    let _lock = lock::lock(&Options::new(directory))?;
    warn_of_missing_log(directory);
    let failed = |source| SalvageError::Copy { directory: directory.to_owned(), copy: copy.to_owned(), source };
    create(copy).map_err(failed)?;
    let opened = match duplicate(directory, copy) {
        Ok(()) => {
            let options = Options { is_survivor: true, on_fatal, ..Options::new(copy) };
            Store::open(options).await.map_err(SalvageError::from)
        }
        Err(error) => Err(failed(error)),
    };
    opened.inspect_err(|_| {
        let _ = fs::remove_dir_all(copy); // it is of no use, and the error above says more
    })
}

/// Tells of a log without its end. It is salvaged all the same: the copy goes on with what there is, and without the
/// note of how far the log came, which would keep it from being opened.
fn warn_of_missing_log(directory: &Path) {
    match missing_end(&LocalDisk::DURABLE, &directory.join(LOG)) {
        Ok(None) => {}
        Ok(Some(path)) => {
            let path = path.display();
            tracing::warn!(%path, "the end of the write-ahead log is missing: so is what was written last in the backup");
        }
        Err(error) => tracing::warn!(%error, "cannot tell whether the end of the write-ahead log is missing"),
    }
}

fn check_place(directory: &Path, copy: &Path) -> Result<(), SalvageError> {
    let refused = |why| Err(SalvageError::Place { copy: copy.to_owned(), why });
    if copy.exists() {
        return refused("it is there already; remove it if a backup that was interrupted has left it");
    }
    let parent = copy.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match (directory.canonicalize(), parent.canonicalize()) {
        (Ok(directory), Ok(parent)) if parent.starts_with(&directory) => refused("it would be in what is copied"),
        _ => Ok(()),
    }
}

/// Makes a directory that is not there yet, for its owner alone: there will be secrets in it. Files keep their modes.
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
