//! Making a store of a backup.
//!
//! Every object is written as any other write is, so that it gets a revision of the new store, which stands in its
//! bytes too. The new store begins above every revision of the old one, and its history begins there: whoever goes on
//! from a revision of the old one is told that this is gone, and starts over.

use std::fs::File;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

use futures_util::future::try_join_all;
use futures_util::{StreamExt, TryStreamExt, stream};

use super::{BackupHeader, BackupReadError, BackupReader, BackupSummary};
use crate::limits::RESTORE_CHUNKS_IN_FLIGHT;
use crate::machine::Machine;
use crate::{
    Draft, Expectation, Key, Mutation, Object, OpenError, Options, Outcome, Revision, Store, TableId, Write,
    WriteError, lock,
};

/// A file that is in a data directory as long as it holds a part of a backup.
const UNFINISHED: &str = "restoring";
/// What a store makes in its data directory, besides its lock.
const CONTENT: [&str; 4] = ["wal", "log", "snapshots", "member"];

/// Why a backup was not restored. The data directory holds nothing then, unless that cannot be done either.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// The backup cannot be read.
    #[error(transparent)]
    Backup(#[from] BackupReadError),
    /// There is something already.
    #[error("data directory {directory} is not empty: it has {found:?}")]
    NotEmpty {
        /// The directory.
        directory: PathBuf,
        /// One of what there is.
        found: String,
    },
    /// A store cannot be made in the directory.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// An object cannot be written.
    #[error("{table} {key}")]
    Write {
        /// The table.
        table: TableId,
        /// The object.
        key: Key,
        /// Why not.
        source: WriteError,
    },
    /// An object is there twice.
    #[error("the backup has {key} of {table} twice")]
    Twice {
        /// The table.
        table: TableId,
        /// The object.
        key: Key,
    },
    /// No revisions are left.
    #[error("the backup goes up to revision {0}, after which there is none")]
    Exhausted(Revision),
    /// What was written cannot be made a snapshot.
    #[error("the restored store cannot be completed")]
    Complete(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// What was restored.
#[derive(Clone, Debug)]
pub struct Restored {
    /// What the backup was of.
    pub header: BackupHeader,
    /// What there was in it.
    pub summary: BackupSummary,
    /// Every revision of the new store is above this one.
    pub above: Revision,
}

/// Makes a store of one replica out of a backup, in a data directory that is empty or not there, and closes it again.
/// Its revisions begin above those of the backup and above `options.above`. Reads the file twice: nothing is made of
/// one that is damaged.
///
/// # Errors
/// See [`RestoreError`].
pub async fn restore(options: Options, from: &Path) -> Result<Restored, RestoreError> {
    let (header, summary) = open(from)?.check()?;
    let last = summary.last.max(header.revision).max(options.above);
    // A table can be read and watched from the revision on at which it begins.
    let above = last.next();
    if above >= Revision::LAST {
        return Err(RestoreError::Exhausted(last));
    }
    let lock = lock::lock(&options)?;
    let directory = options.directory.clone();
    refuse_content(&directory)?;
    let made = make(Options { above, ..options }, lock, open(from)?).await;
    if made.is_err() {
        clear(&directory);
    }
    made.map(|()| Restored { header, summary, above })
}

/// Refuses a data directory that holds a part of a backup.
pub(crate) fn check_finished(directory: &Path) -> Result<(), OpenError> {
    match directory.join(UNFINISHED).exists() {
        true => Err(OpenError::Unfinished { directory: directory.to_path_buf() }),
        false => Ok(()),
    }
}

fn open(path: &Path) -> Result<BackupReader<BufReader<File>>, BackupReadError> {
    BackupReader::open(BufReader::new(File::open(path)?))
}

fn refuse_content(directory: &Path) -> Result<(), RestoreError> {
    let failed = |source| OpenError::Directory { directory: directory.to_path_buf(), source };
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        let found = entry.map_err(failed)?.file_name();
        // A file system of its own has the second from the beginning.
        if found != "lock" && found != "lost+found" {
            let found = found.to_string_lossy().into_owned();
            return Err(RestoreError::NotEmpty { directory: directory.to_path_buf(), found });
        }
    }
    Ok(())
}

async fn make(options: Options, lock: File, backup: BackupReader<BufReader<File>>) -> Result<(), RestoreError> {
    let directory = options.directory.clone();
    let failed = |source| OpenError::Directory { directory: directory.clone(), source };
    mark(&directory).map_err(failed)?;
    let store = Store::open_on(Machine::local(), Some(lock), options).await?;
    let filled = fill(&store, backup).await;
    let complete = match filled {
        Ok(()) => store.write_snapshots().await.map_err(RestoreError::Complete),
        Err(error) => Err(error),
    };
    store.shutdown().await;
    complete?;
    unmark(&directory).map_err(failed)?;
    Ok(())
}

/// Writes every object of a backup.
pub(super) async fn fill<R: io::Read>(store: &Store, mut backup: BackupReader<R>) -> Result<(), RestoreError> {
    let chunks = std::iter::from_fn(move || backup.read().map_err(RestoreError::from).transpose());
    let written = stream::iter(chunks).map(|chunk| async {
        let (table, objects) = chunk?;
        try_join_all(objects.into_iter().map(|object| write(store, table.clone(), object))).await
    });
    written.buffer_unordered(RESTORE_CHUNKS_IN_FLIGHT).try_for_each(|_| std::future::ready(Ok(()))).await
}

async fn write(store: &Store, table: TableId, object: Object) -> Result<(), RestoreError> {
    let key = object.key().clone();
    let (layout, terms) = (object.layout().clone(), object.terms().clone());
    let draft = Draft { bytes: object.bytes().to_vec(), layout, terms, ..Draft::default() };
    let (expectation, mutation) = (Expectation::Absent, Mutation::Put(draft));
    let write = Write { table: table.clone(), key: key.clone(), expectation, mutation };
    match store.write(write).await {
        Ok(Outcome::Committed { .. }) => Ok(()),
        Ok(Outcome::Conflict { .. }) => Err(RestoreError::Twice { table, key }),
        Err(source) => Err(RestoreError::Write { table, key, source }),
    }
}

/// Says that the directory does not hold all of a backup yet.
fn mark(directory: &Path) -> io::Result<()> {
    File::create_new(directory.join(UNFINISHED))?.sync_all()?;
    File::open(directory)?.sync_all()
}

fn unmark(directory: &Path) -> io::Result<()> {
    std::fs::remove_file(directory.join(UNFINISHED))?;
    File::open(directory)?.sync_all()
}

/// Takes away what was made in a directory that was empty before. What stays is refused by the mark, which goes last.
fn clear(directory: &Path) {
    for name in CONTENT {
        let path = directory.join(name);
        let removed = if path.is_dir() { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) };
        if let Err(error) = removed
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(path = %path.display(), %error, "what was restored in part cannot be removed");
            return;
        }
    }
    let _ = unmark(directory); // a mark that stays is safe
}
