//! Makes a store from a backup.
//!
//! Every object is written like any other, so it gets a revision of the new store, which is also written into its
//! bytes. The new store begins above every revision of the old one, and so does its history: a client that resumes from
//! an old revision is told that it is gone, and starts again.

use std::fs::File;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

use futures_util::future::try_join_all;
use futures_util::{StreamExt, TryStreamExt, stream};

use super::{BackupHeader, BackupReadError, BackupReader, BackupSummary};
use crate::limits::RESTORE_CHUNKS_IN_FLIGHT;
use crate::lock::lock;
use crate::machine::Machine;
use crate::replica::forming::identity;
use crate::wal::reach;
use crate::{
    Draft, Expectation, Key, Mutation, Object, OpenError, Options, Outcome, Revision, Store, TableId, Write, WriteError,
};

/// The name of the file that marks a data directory as unfinished: the directory has only some objects of its store.
const UNFINISHED: &str = "restoring";
/// The files and directories of a store in its data directory, besides the lock.
const CONTENT: [&str; 6] =
    ["wal", reach::FILE, reach::UNFINISHED_FILE, "snapshots", identity::FILE, identity::UNFINISHED_FILE];

/// The reason why a backup was not restored. The data directory is then empty again, unless it could not be cleared.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// The backup cannot be read.
    #[error(transparent)]
    Backup(#[from] BackupReadError),
    /// The data directory is not empty.
    #[error("data directory {directory} is not empty: it has {found:?}")]
    NotEmpty {
        /// The directory.
        directory: PathBuf,
        /// The name of a file in it.
        found: String,
    },
    /// Another command has begun to make a store in the directory, and its files are there.
    #[error(
        "data directory {directory} has {found:?} of an interrupted command: repeat that command, or remove the directory"
    )]
    Begun {
        /// The directory.
        directory: PathBuf,
        /// The name of one of these files.
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
        /// The key of the object.
        key: Key,
        /// The error of the write.
        source: WriteError,
    },
    /// The backup has an object twice.
    #[error("the objects include {key} of {table} twice")]
    Twice {
        /// The table.
        table: TableId,
        /// The key of the object.
        key: Key,
    },
    /// There are no revisions left.
    #[error("the largest revision so far is {0}, and there is none above it")]
    Exhausted(Revision),
    /// The source of the objects failed.
    #[error(transparent)]
    Source(Box<dyn std::error::Error + Send + Sync>),
    /// The snapshots of the new store cannot be written.
    #[error("the restored store cannot be completed")]
    Complete(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// The result of a restore.
#[derive(Clone, Debug)]
pub struct Restored {
    /// The header of the backup.
    pub header: BackupHeader,
    /// The summary of the backup's content.
    pub summary: BackupSummary,
    /// Every revision of the new store is above this one.
    pub above: Revision,
}

/// Objects for a store that is being made, each with its table and key.
pub type Drafts = Vec<(TableId, Key, Draft)>;

/// Makes a store with a single replica from a backup, in an empty or missing data directory, and closes it again. Its
/// revisions begin above those of the backup and above `options.above`. Reads the file twice, so that nothing is made
/// from a damaged one.
///
/// # Errors
/// See [`RestoreError`].
pub async fn restore(options: Options, from: &Path) -> Result<Restored, RestoreError> {
    let (header, summary) = open(from)?.check()?;
    let last = summary.last.max(header.revision).max(options.above);
    // Its history begins at this revision, so tables can be read and watched from it on.
    let above = last.next();
    create(Options { above, ..options }, drafts(open(from)?)).await?;
    Ok(Restored { header, summary, above })
}

/// Makes a store of one replica out of objects, in an empty or missing data directory, and closes it again. Its
/// revisions begin above `options.above`. The store can be opened only once all objects were taken without an error and
/// are durable; otherwise there is none. First removes the remains of a store that a killed process left in the
/// directory.
///
/// # Errors
/// See [`RestoreError`]. An error of `drafts` is [`RestoreError::Source`].
pub async fn create<E>(options: Options, drafts: impl Iterator<Item = Result<Drafts, E>>) -> Result<(), RestoreError>
where
    RestoreError: From<E>,
{
    check_left(&options)?;
    let held = lock(&options)?;
    let directory = options.directory.clone();
    begin(&directory, &[])?;
    let made = make(options, held, drafts).await;
    if made.is_err() && clear(&directory) {
        let _ = unmark(&directory); // a mark that stays is safe
    }
    made
}

/// A data directory in which a file collects the objects of a store that will be made there. Until then no store can be
/// opened in it. A process may stop or be killed at any time, and a later one can continue.
#[derive(Debug)]
pub struct Unfinished {
    held: File,
    directory: PathBuf,
}

impl Unfinished {
    /// Takes a data directory that is empty, missing, or was begun before. `collected` names the files that the caller
    /// makes in it; they stay until the store is made.
    ///
    /// # Errors
    /// See [`RestoreError`]. A directory that holds something else is refused.
    pub fn begin(directory: &Path, collected: &[&str]) -> Result<Self, RestoreError> {
        let held = lock(&Options::new(directory))?;
        begin(directory, collected)?;
        Ok(Self { held, directory: directory.to_owned() })
    }

    /// Makes the store, as [`create`] does. After an error the directory is still unfinished, without a store.
    ///
    /// # Errors
    /// See [`RestoreError`].
    pub async fn create<E>(
        self,
        options: Options,
        drafts: impl Iterator<Item = Result<Drafts, E>>,
    ) -> Result<(), RestoreError>
    where
        RestoreError: From<E>,
    {
        check_left(&options)?;
        let made = make(Options { directory: self.directory.clone(), ..options }, self.held, drafts).await;
        if made.is_err() {
            clear(&self.directory);
        }
        made
    }
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

fn check_left(options: &Options) -> Result<(), RestoreError> {
    match options.above >= Revision::LAST {
        true => Err(RestoreError::Exhausted(options.above)),
        false => Ok(()),
    }
}

/// Marks an empty directory as unfinished. If it is marked already, removes everything that a killed process made in
/// it, except files with these names.
fn begin(directory: &Path, collected: &[&str]) -> Result<(), RestoreError> {
    let Some(found) = content(directory, &[])? else {
        return Ok(mark(directory).map_err(|source| OpenError::Directory { directory: directory.into(), source })?);
    };
    // Without the mark, even a file with one of these names may have another owner.
    if !directory.join(UNFINISHED).exists() {
        return Err(RestoreError::NotEmpty { directory: directory.into(), found });
    }
    clear(directory);
    match content(directory, &[&[UNFINISHED], collected].concat())? {
        Some(found) => Err(RestoreError::Begun { directory: directory.into(), found }),
        None => Ok(()),
    }
}

/// Returns the name of a file in a directory other than these; `None` if there is none.
fn content(directory: &Path, expected: &[&str]) -> Result<Option<String>, OpenError> {
    let failed = |source| OpenError::Directory { directory: directory.to_path_buf(), source };
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        let found = entry.map_err(failed)?.file_name();
        // A new file system contains `lost+found`.
        if found != "lock" && found != "lost+found" && !expected.iter().any(|name| found == *name) {
            return Ok(Some(found.to_string_lossy().into_owned()));
        }
    }
    Ok(None)
}

/// Makes a store in a marked directory, and removes the mark when the store is complete.
async fn make<E>(
    options: Options,
    held: File,
    drafts: impl Iterator<Item = Result<Drafts, E>>,
) -> Result<(), RestoreError>
where
    RestoreError: From<E>,
{
    let directory = options.directory.clone();
    let failed = |source| OpenError::Directory { directory: directory.clone(), source };
    let store = Store::open_on(Machine::local(), Some(held), options).await?;
    let filled = fill(&store, drafts).await;
    let complete = match filled {
        Ok(()) => store.write_snapshots().await.map_err(RestoreError::Complete),
        Err(error) => Err(error),
    };
    store.shutdown().await;
    complete?;
    unmark(&directory).map_err(failed)?;
    Ok(())
}

/// Returns the objects of a backup as drafts.
pub(super) fn drafts<R: io::Read>(
    mut backup: BackupReader<R>,
) -> impl Iterator<Item = Result<Drafts, BackupReadError>> {
    let chunks = std::iter::from_fn(move || backup.read().transpose());
    chunks.map(|chunk| {
        let (table, objects) = chunk?;
        Ok(objects.into_iter().map(|object| (table.clone(), object.key().clone(), draft(&object))).collect())
    })
}

fn draft(object: &Object) -> Draft {
    let (layout, terms) = (object.layout().clone(), object.terms().clone());
    Draft { bytes: object.bytes().to_vec(), layout, terms, ..Draft::default() }
}

/// Writes every object.
pub(super) async fn fill<E>(store: &Store, drafts: impl Iterator<Item = Result<Drafts, E>>) -> Result<(), RestoreError>
where
    RestoreError: From<E>,
{
    let written = stream::iter(drafts).map(|drafts| async {
        try_join_all(drafts?.into_iter().map(|(table, key, draft)| write(store, table, key, draft))).await
    });
    written.buffer_unordered(RESTORE_CHUNKS_IN_FLIGHT).try_for_each(|_| std::future::ready(Ok(()))).await
}

async fn write(store: &Store, table: TableId, key: Key, draft: Draft) -> Result<(), RestoreError> {
    let (expectation, mutation) = (Expectation::Absent, Mutation::Put(draft));
    let write = Write { table: table.clone(), key: key.clone(), expectation, mutation };
    match store.write(write).await {
        Ok(Outcome::Committed { .. }) => Ok(()),
        Ok(Outcome::Conflict { .. }) => Err(RestoreError::Twice { table, key }),
        Err(source) => Err(RestoreError::Write { table, key, source }),
    }
}

/// Marks the directory as containing only part of a backup.
fn mark(directory: &Path) -> io::Result<()> {
    File::create_new(directory.join(UNFINISHED))?.sync_all()?;
    File::open(directory)?.sync_all()
}

fn unmark(directory: &Path) -> io::Result<()> {
    std::fs::remove_file(directory.join(UNFINISHED))?;
    File::open(directory)?.sync_all()
}

/// Removes the content of a marked directory. Returns whether all of it is gone.
fn clear(directory: &Path) -> bool {
    for name in CONTENT {
        let path = directory.join(name);
        let removed = if path.is_dir() { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) };
        if let Err(error) = removed
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(path = %path.display(), %error, "the incomplete restore cannot be removed");
            return false;
        }
    }
    true
}
