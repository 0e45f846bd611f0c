//! Opening what one replica has, when a majority of the others is gone for good.
//!
//! Nothing of that replica is changed: it is a copy that goes on alone, to take a backup of. So whoever finds another
//! member after all, or makes a mistake, has lost nothing.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::check_finished;
use crate::{OpenError, Options, Store, boot};

/// What a data directory has of a store: in directories, and the file that says whose it is.
const DIRECTORIES: [&str; 2] = ["wal", "snapshots"];
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
/// See [`SalvageError`]. The copy is removed then.
pub async fn salvage(directory: &Path, copy: &Path) -> Result<Store, SalvageError> {
    if !directory.join(MEMBER).is_file() {
        return Err(SalvageError::Missing { directory: directory.to_owned() });
    }
    check_finished(directory)?;
    let _lock = boot::lock(&Options::new(directory))?;
    let failed = |source| SalvageError::Copy { directory: directory.to_owned(), copy: copy.to_owned(), source };
    fs::create_dir(copy).map_err(failed)?;
    let opened = match duplicate(directory, copy) {
        Ok(()) => Store::open(Options { is_survivor: true, ..Options::new(copy) }).await.map_err(SalvageError::from),
        Err(error) => Err(failed(error)),
    };
    opened.inspect_err(|_| {
        let _ = fs::remove_dir_all(copy); // it is of no use, and the error above says more
    })
}

fn duplicate(directory: &Path, copy: &Path) -> io::Result<()> {
    fs::copy(directory.join(MEMBER), copy.join(MEMBER))?;
    for name in DIRECTORIES {
        duplicate_tree(&directory.join(name), &copy.join(name))?;
    }
    Ok(())
}

fn duplicate_tree(directory: &Path, copy: &Path) -> io::Result<()> {
    fs::create_dir(copy)?;
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
