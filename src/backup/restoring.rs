//! Making the data directory of a new cluster out of a backup.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;

use clap::Args;
use flotilla_cluster::{
    BackupHeader, BackupReadError, BackupReader, Founder, Options, RestoreError, Revision, TableId, TableOptions,
};

use crate::config::{Shards, is_member_address, is_member_name};

/// Makes a data directory out of a backup.
#[derive(Debug, Args)]
pub struct Restore {
    /// File that `flotilla backup` has written.
    #[arg(long, value_name = "FILE")]
    from: PathBuf,
    /// Data directory to make. It must be empty or not there.
    #[arg(long, value_name = "DIR")]
    data_dir: PathBuf,
    /// Name of the server as the first member of a cluster (--name of `flotilla serve`), so that others can join it.
    #[arg(long, value_name = "NAME", requires = "peer_address", value_parser = member_name)]
    name: Option<String>,
    /// Where other members will reach it, as --initial-cluster of `flotilla serve` has it.
    #[arg(long, value_name = "HOST:PORT", requires = "name", value_parser = member_address)]
    peer_address: Option<String>,
    /// How many shards resources are to have, as in `pods=8,apps/deployments=2`; without it as they had.
    #[arg(long, value_name = "RESOURCE=N,...")]
    shards: Option<Shards>,
    /// Groups that replicate the resources of --shards; without it as many as the largest of them has shards.
    #[arg(long, value_name = "N", requires = "shards", value_parser = clap::value_parser!(u8).range(1..))]
    groups: Option<u8>,
    /// Begin above this resourceVersion too.
    ///
    /// Needed only where clocks are wrong: when the clock of this machine is behind that of the servers which went on
    /// after the backup was made, their last resourceVersions may be larger.
    #[arg(long, value_name = "REVISION", default_value_t = 0)]
    above: u64,
}

/// Why a backup was not restored.
#[derive(Debug, thiserror::Error)]
pub enum RestoreCommandError {
    /// The file is not there, or is no backup.
    #[error("cannot restore {path}")]
    Backup {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: BackupReadError,
    },
    /// It cannot be restored.
    #[error(transparent)]
    Restore(#[from] RestoreError),
}

fn member_name(text: &str) -> Result<String, &'static str> {
    let wrong = "it takes letters, digits, dashes, dots and underscores, 63 at most";
    if is_member_name(text) { Ok(text.to_owned()) } else { Err(wrong) }
}

fn member_address(text: &str) -> Result<String, &'static str> {
    if is_member_address(text) { Ok(text.to_owned()) } else { Err("it must be HOST:PORT") }
}

impl Restore {
    /// Restores, and says on standard output what was restored and how to serve it.
    ///
    /// # Errors
    /// See [`RestoreCommandError`].
    pub fn run(&self) -> Result<(), RestoreCommandError> {
        let header = self.header().map_err(|source| RestoreCommandError::Backup { path: self.from.clone(), source })?;
        let options = self.options(&header);
        let serve = self.serve(&options);
        let restoring = flotilla_cluster::restore(options, &self.from);
        let restored = actix_web::rt::System::new().block_on(restoring)?;
        let (objects, directory) = (restored.summary.objects, self.data_dir.display());
        println!(
            "{directory}: {objects} objects as of revision {}, whose revisions are above {} now\n{serve}",
            restored.header.revision, restored.above
        );
        Ok(())
    }

    fn header(&self) -> Result<BackupHeader, BackupReadError> {
        Ok(BackupReader::open(BufReader::new(File::open(&self.from)?))?.header().clone())
    }

    fn options(&self, header: &BackupHeader) -> Options {
        let (groups, shards): (u8, BTreeMap<TableId, u16>) = match &self.shards {
            None => {
                // There may be groups left over from shards that were more once.
                let all = header.shards.values().fold(0, |all: u16, shards| all.saturating_add(*shards));
                (header.groups.min(u8::try_from(all).unwrap_or(u8::MAX)), header.shards.clone())
            }
            Some(shards) => {
                let largest = u8::try_from(shards.largest()).unwrap_or(u8::MAX);
                let tables = shards.iter().map(|(resource, count)| (TableId::new(resource), count));
                (self.groups.unwrap_or(largest), tables.collect())
            }
        };
        let sharded = |(table, shards)| (table, TableOptions { shards: Some(shards), ..TableOptions::default() });
        let founder = self.name.clone().zip(self.peer_address.clone());
        Options {
            groups,
            tables: shards.into_iter().map(sharded).collect(),
            founder: founder.map(|(name, address)| Founder { name, address }),
            above: Revision::new(self.above),
            ..Options::new(&self.data_dir)
        }
    }

    /// The command that serves what was restored.
    fn serve(&self, options: &Options) -> String {
        let mut command = format!("flotilla serve --data-dir {}", self.data_dir.display());
        let shards = options.tables.iter().filter_map(|(table, own)| Some(format!("{table}={}", own.shards?)));
        let shards = shards.collect::<Vec<_>>().join(",");
        // Writing to a string does not fail.
        if !shards.is_empty() {
            let _ = write!(command, " --shards {shards} --groups {}", options.groups);
        }
        if let (Some(name), Some(address)) = (&self.name, &self.peer_address) {
            let _ = write!(command, " --name {name} --peer-listen ADDR:PORT --initial-cluster {name}={address},...");
        }
        command
    }
}
