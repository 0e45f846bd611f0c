//! Saves a backup from a server, or from a data directory, in a file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use clap::Args;
use flotilla_cluster::{
    BackupError, BackupHeader, BackupReadError, BackupReader, BackupSummary, KeyWrapping, SalvageError,
};

use super::BACKUP_PATH;
use crate::administration::{Client, ClientError, Kubeconfig};
use crate::config;
use crate::encryption::{EncryptionError, StorageKeys};
use crate::pki::KubeconfigError;
use crate::terminal::report;

/// Saves everything that a cluster stores.
#[derive(Debug, Args)]
pub struct Backup {
    #[command(flatten)]
    source: Source,
    /// File to write, readable by its owner alone. Once complete, it replaces an existing one.
    #[arg(long, value_name = "FILE")]
    to: PathBuf,
}

/// The source of a backup.
#[derive(Debug, Args)]
pub struct Source {
    /// Kubeconfig with the address of a server and the user, who must be in the group system:masters.
    #[arg(long, value_name = "FILE", default_value_os_t = config::usual_kubeconfig())]
    kubeconfig: PathBuf,
    /// Data directory of a member that is not running, to read instead.
    ///
    /// For a cluster that has lost a majority of its members for good. Writes that the member had not received yet are
    /// lost: if several members are left, the backup with the largest revision has most. The command reads a copy of
    /// the directory, which it makes beside the backup and removes at the end. The directory itself stays as it is.
    #[arg(long, value_name = "DIR", conflicts_with = "kubeconfig")]
    data_dir: Option<PathBuf>,
    /// File with the keys of the data directory, if it is encrypted.
    #[arg(long, value_name = "FILE", requires = "data_dir")]
    encryption_provider_config: Option<PathBuf>,
}

/// The reasons why no backup was saved.
#[derive(Debug, thiserror::Error)]
pub enum BackupCommandError {
    /// The kubeconfig cannot be used.
    #[error(transparent)]
    Kubeconfig(#[from] KubeconfigError),
    /// The server does not send a backup.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The keys of the data directory cannot be read.
    #[error(transparent)]
    Keys(#[from] EncryptionError),
    /// The backup that arrives is incomplete or damaged.
    #[error("the received backup is incomplete or damaged")]
    Backup(#[from] BackupReadError),
    /// The data directory cannot be used.
    #[error(transparent)]
    Salvage(#[from] SalvageError),
    /// The store in the data directory cannot be read.
    #[error(transparent)]
    Taking(#[from] BackupError),
    /// The file cannot be written.
    #[error("cannot write {path}")]
    File {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

impl Backup {
    /// Saves a backup, and prints a summary of it. The saved file is complete and durable. After an error the file that
    /// had its name before is unchanged.
    ///
    /// # Errors
    /// See [`BackupCommandError`].
    pub fn run(&self) -> Result<(), BackupCommandError> {
        let unfinished = beside(&self.to, ".tmp");
        let (header, summary) = self.source.save(&unfinished, &beside(&self.to, ".data"))?;
        publish(&unfinished, &self.to).map_err(|source| BackupCommandError::File { path: self.to.clone(), source })?;
        let (path, revision) = (self.to.display(), header.revision);
        report(format_args!("{path}: {} objects as of revision {revision}, {} bytes", summary.objects, summary.bytes));
        Ok(())
    }
}

/// Returns the path of a file or directory beside another.
fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut path = path.to_owned().into_os_string();
    path.push(suffix);
    path.into()
}

impl Source {
    /// Saves a backup in a new file, which does not exist after an error. A data directory is copied to `copy` first.
    ///
    /// # Errors
    /// See [`BackupCommandError`].
    pub fn save(&self, path: &Path, copy: &Path) -> Result<Saved, BackupCommandError> {
        let saved = match &self.data_dir {
            Some(directory) => {
                let log = tracing_subscriber::fmt().with_max_level(tracing::Level::WARN);
                log.with_writer(io::stderr).init();
                let keys = self.encryption_provider_config.as_deref().map(StorageKeys::read).transpose()?;
                let keys = keys.map(|keys| Arc::new(keys) as Arc<dyn KeyWrapping>);
                actix_web::rt::System::new().block_on(salvage(directory, copy, keys, path))
            }
            None => self.fetch(path),
        };
        saved.inspect_err(|_| {
            let _ = fs::remove_file(path); // a part of a backup is useless
        })
    }

    fn fetch(&self, path: &Path) -> Result<Saved, BackupCommandError> {
        let client = Client::new(Kubeconfig::read(&self.kubeconfig)?)?;
        save(client.download(BACKUP_PATH)?, path)
    }
}

async fn salvage(
    directory: &Path,
    copy: &Path,
    keys: Option<Arc<dyn KeyWrapping>>,
    path: &Path,
) -> Result<Saved, BackupCommandError> {
    let on_fatal = {
        let copy = copy.to_owned();
        move |reason: &str| {
            eprintln!("flotilla: the copy of the data directory cannot be read: {reason}");
            let _ = fs::remove_dir_all(&copy); // the next run names the rest of the copy
            std::process::exit(1);
        }
    };
    let store = flotilla_cluster::salvage(directory, copy, keys, Arc::new(on_fatal)).await?;
    let saved = match store.backup().await {
        Ok(backup) => save(BackupBytes { backup, chunk: Bytes::new() }, path),
        Err(error) => Err(error.into()),
    };
    store.shutdown().await;
    if let Err(error) = fs::remove_dir_all(copy) {
        tracing::warn!(path = %copy.display(), %error, "the copy of the data directory cannot be removed");
    }
    saved
}

/// The head and the summary of a backup.
pub type Saved = (BackupHeader, BackupSummary);

/// The bytes of a backup that is being taken.
struct BackupBytes {
    backup: flotilla_cluster::Backup,
    chunk: Bytes,
}

impl Read for BackupBytes {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.chunk.is_empty() {
            match self.backup.next() {
                Some(chunk) => self.chunk = chunk.map_err(io::Error::other)?,
                None => return Ok(0),
            }
        }
        let count = self.chunk.len().min(out.len());
        out[..count].copy_from_slice(&self.chunk.split_to(count));
        Ok(count)
    }
}

/// Writes a backup to a new file while it is checked.
fn save(backup: impl Read, path: &Path) -> Result<Saved, BackupCommandError> {
    let failed = |source| BackupCommandError::File { path: path.to_owned(), source };
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    // The backup contains Secrets.
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map_err(failed)?;
    let mut copying = Copying { from: BufReader::new(backup), to: BufWriter::new(file), failure: None };
    let checked = BackupReader::open(&mut copying).and_then(BackupReader::check);
    if let Some(error) = copying.failure {
        return Err(failed(error));
    }
    let checked = checked?;
    let file = copying.to.into_inner().map_err(|error| failed(error.into_error()))?;
    file.sync_all().map_err(failed)?;
    Ok(checked)
}

/// Gives a file its final name, durably.
fn publish(unfinished: &Path, path: &Path) -> io::Result<()> {
    fs::rename(unfinished, path)?;
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(directory.unwrap_or(Path::new(".")))?.sync_all()
}

/// A reader that copies the bytes that pass.
struct Copying<R, W> {
    from: R,
    to: W,
    /// The error of the copy, if writing failed.
    failure: Option<io::Error>,
}

impl<R: Read, W: Write> Read for Copying<R, W> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.from.read(out)?;
        if let Err(error) = self.to.write_all(&out[..count]) {
            self.failure = Some(error);
            return Err(io::Error::other("the copy cannot be written"));
        }
        Ok(count)
    }
}
