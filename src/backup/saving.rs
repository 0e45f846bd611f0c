//! Fetching a backup from a server, or out of a data directory, into a file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use clap::Args;
use flotilla_cluster::{BackupError, BackupHeader, BackupReadError, BackupReader, BackupSummary, SalvageError};

use super::BACKUP_PATH;
use crate::administration::{Client, ClientError, Kubeconfig};
use crate::config;
use crate::pki::KubeconfigError;

/// Saves everything that a cluster stores.
#[derive(Debug, Args)]
pub struct Backup {
    #[command(flatten)]
    source: Source,
    /// File to write, readable by its owner alone. It takes the place of one that is there, once it is complete.
    #[arg(long, value_name = "FILE")]
    to: PathBuf,
}

/// Where a backup is taken of.
#[derive(Debug, Args)]
pub struct Source {
    /// Kubeconfig that says where a server is and who asks: a member of the group system:masters.
    #[arg(long, value_name = "FILE", default_value_os_t = config::usual_kubeconfig())]
    kubeconfig: PathBuf,
    /// Data directory of a member that is not running, to take the backup out of instead.
    ///
    /// For a cluster that has lost a majority of its members for good. What the member had not received yet is lost:
    /// where several are left, the backup of the largest revision has most. The directory stays as it is, a copy of it
    /// beside the backup is what is read, and is removed at the end.
    #[arg(long, value_name = "DIR", conflicts_with = "kubeconfig")]
    data_dir: Option<PathBuf>,
}

/// Why there is no backup.
#[derive(Debug, thiserror::Error)]
pub enum BackupCommandError {
    /// It is not known whom to ask.
    #[error(transparent)]
    Kubeconfig(#[from] KubeconfigError),
    /// The server does not send one.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// What comes is not a whole backup.
    #[error("what has come is not a whole backup")]
    Backup(#[from] BackupReadError),
    /// There is nothing to take it from.
    #[error(transparent)]
    Salvage(#[from] SalvageError),
    /// What there is cannot be read.
    #[error(transparent)]
    Taking(#[from] BackupError),
    /// The file cannot be written.
    #[error("cannot write {path}")]
    File {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

impl Backup {
    /// Saves a backup, and says on standard output what is in it. Without an error it is complete and durable; with
    /// one, what was at its place still is.
    ///
    /// # Errors
    /// See [`BackupCommandError`].
    pub fn run(&self) -> Result<(), BackupCommandError> {
        let unfinished = beside(&self.to, ".tmp");
        let (header, summary) = self.source.save(&unfinished, &beside(&self.to, ".data"))?;
        publish(&unfinished, &self.to).map_err(|source| BackupCommandError::File { path: self.to.clone(), source })?;
        let (path, revision) = (self.to.display(), header.revision);
        println!("{path}: {} objects as of revision {revision}, {} bytes", summary.objects, summary.bytes);
        Ok(())
    }
}

/// A file or directory beside another.
fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut path = path.to_owned().into_os_string();
    path.push(suffix);
    path.into()
}

impl Source {
    /// Saves a backup in a file that is not there, or not there if it fails. A data directory is copied for that.
    ///
    /// # Errors
    /// See [`BackupCommandError`].
    pub fn save(&self, path: &Path, copy: &Path) -> Result<Saved, BackupCommandError> {
        let saved = match &self.data_dir {
            Some(directory) => {
                let log = tracing_subscriber::fmt().with_max_level(tracing::Level::WARN);
                log.with_writer(io::stderr).init();
                actix_web::rt::System::new().block_on(salvage(directory, copy, path))
            }
            None => self.fetch(path),
        };
        saved.inspect_err(|_| {
            let _ = fs::remove_file(path); // what there is of it is of no use
        })
    }

    fn fetch(&self, path: &Path) -> Result<Saved, BackupCommandError> {
        let client = Client::new(Kubeconfig::read(&self.kubeconfig)?)?;
        save(client.download(BACKUP_PATH)?, path)
    }
}

async fn salvage(directory: &Path, copy: &Path, path: &Path) -> Result<Saved, BackupCommandError> {
    let on_fatal = {
        let copy = copy.to_owned();
        move |reason: &str| {
            eprintln!("flotilla: the copy of the data directory cannot be read: {reason}");
            let _ = fs::remove_dir_all(&copy); // what is left of it is named when it is in the way
            std::process::exit(1);
        }
    };
    let store = flotilla_cluster::salvage(directory, copy, Arc::new(on_fatal)).await?;
    let saved = match store.backup().await {
        Ok(backup) => save(Taken { backup, chunk: Bytes::new() }, path),
        Err(error) => Err(error.into()),
    };
    store.shutdown().await;
    if let Err(error) = fs::remove_dir_all(copy) {
        tracing::warn!(path = %copy.display(), %error, "the copy of the data directory cannot be removed");
    }
    saved
}

/// What a backup is of, and what is in it.
pub type Saved = (BackupHeader, BackupSummary);

/// The bytes of a backup that is being taken.
struct Taken {
    backup: flotilla_cluster::Backup,
    chunk: Bytes,
}

impl Read for Taken {
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
    // There are Secrets in it.
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

/// Gives a file its name for good.
fn publish(unfinished: &Path, path: &Path) -> io::Result<()> {
    fs::rename(unfinished, path)?;
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(directory.unwrap_or(Path::new(".")))?.sync_all()
}

/// What is read, copied.
struct Copying<R, W> {
    from: R,
    to: W,
    /// Why it cannot be written.
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
