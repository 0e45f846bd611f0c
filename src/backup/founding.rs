//! Options of the data directory of a new cluster, for commands that make one.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use flotilla_cluster::{Founder, Options, Revision, TableId, TableOptions};

use crate::config::{Shards, is_member_address, is_member_name};

/// A data directory to make.
#[derive(Debug, Args)]
pub struct Founding {
    /// Data directory to make. It must be empty or not exist.
    #[arg(long, value_name = "DIR")]
    pub data_dir: PathBuf,
    /// Name of the server as the first member of a cluster (--name of `flotilla serve`), so that others can join it.
    #[arg(long, value_name = "NAME", requires = "peer_address", value_parser = member_name)]
    name: Option<String>,
    /// Address at which other members will reach it, as --initial-cluster of `flotilla serve` states it.
    #[arg(long, value_name = "HOST:PORT", requires = "name", value_parser = member_address)]
    peer_address: Option<String>,
    /// Number of shards of resources, as in `pods=8,apps/deployments=2`; by default as before.
    #[arg(long, value_name = "RESOURCE=N,...")]
    shards: Option<Shards>,
    /// Number of groups that replicate the resources of --shards; by default as many as the largest of them has shards.
    #[arg(long, value_name = "N", requires = "shards", value_parser = clap::value_parser!(u8).range(1..))]
    groups: Option<u8>,
    /// Begin above this resourceVersion too.
    ///
    /// Needed only if clocks are wrong: if the servers went on writing after the backup or snapshot was made, and this
    /// machine's clock is behind theirs, their last resourceVersions may be larger.
    #[arg(long, value_name = "REVISION", default_value_t = 0)]
    above: u64,
}

fn member_name(text: &str) -> Result<String, &'static str> {
    let wrong = "it takes letters, digits, dashes, dots and underscores, 63 at most";
    if is_member_name(text) { Ok(text.to_owned()) } else { Err(wrong) }
}

fn member_address(text: &str) -> Result<String, &'static str> {
    if is_member_address(text) { Ok(text.to_owned()) } else { Err("it must be HOST:PORT") }
}

impl Founding {
    /// Returns the options of the new store, given the former shards of its tables and the former number of groups.
    pub fn options(&self, before: &BTreeMap<TableId, u16>, groups_before: u8) -> Options {
        let (groups, shards): (u8, BTreeMap<TableId, u16>) = match &self.shards {
            None => {
                // Groups may be left over from a larger number of shards.
                let all = before.values().fold(0, |all: u16, shards| all.saturating_add(*shards));
                (groups_before.min(u8::try_from(all).unwrap_or(u8::MAX)), before.clone())
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

    /// Returns the command that serves the directory.
    pub fn serve(&self, options: &Options) -> String {
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
