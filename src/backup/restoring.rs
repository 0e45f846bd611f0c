//! Makes the data directory of a new cluster from a backup.

use crate::terminal::report;
use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;

use clap::Args;
use flotilla_cluster::{BackupHeader, BackupReadError, BackupReader, RestoreError};

use super::Founding;

/// Makes a data directory from a backup.
#[derive(Debug, Args)]
pub struct Restore {
    /// File that `flotilla backup` has written.
    #[arg(long, value_name = "FILE")]
    from: PathBuf,
    #[command(flatten)]
    founding: Founding,
}

/// The reasons why a backup was not restored.
#[derive(Debug, thiserror::Error)]
pub enum RestoreCommandError {
    /// The file does not exist, or is not a backup.
    #[error("cannot restore {path}")]
    Backup {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: BackupReadError,
    },
    /// The backup cannot be restored.
    #[error(transparent)]
    Restore(#[from] RestoreError),
}

impl Restore {
    /// Restores, and prints a summary and the command that serves the directory.
    ///
    /// # Errors
    /// See [`RestoreCommandError`].
    pub fn run(&self) -> Result<(), RestoreCommandError> {
        let header = self.header().map_err(|source| RestoreCommandError::Backup { path: self.from.clone(), source })?;
        let options = self.founding.options(&header.shards, header.groups);
        let serve = self.founding.serve(&options);
        let restoring = flotilla_cluster::restore(options, &self.from);
        let restored = actix_web::rt::System::new().block_on(restoring)?;
        let (objects, directory) = (restored.summary.objects, self.founding.data_dir.display());
        report(format_args!(
            "{directory}: {objects} objects as of revision {}; their revisions are now above {}\n{serve}",
            restored.header.revision, restored.above
        ));
        Ok(())
    }

    fn header(&self) -> Result<BackupHeader, BackupReadError> {
        Ok(BackupReader::open(BufReader::new(File::open(&self.from)?))?.header().clone())
    }
}
