//! Which table has how many shards, and which group replicates each of them.
//!
//! A key belongs to shard `crc32c(key) % shards` of its table. The shards of a table go to consecutive data groups,
//! beginning with number `crc32c(table) % groups`, so that tables with few shards do not all meet in the first group.
//! Neither may ever change for a map that is in use: the log says of a write only its table and its key.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::limits::{GROUPS_MAX, SHARD_MAP_BYTES_MAX, SHARDS_MAX};
use crate::wal::disk::Disk;
use crate::{Options, TableId};

/// Name of the group of every table that is not spread over data groups.
pub(crate) const DEFAULT_GROUP: &str = "default";
/// Name of the file that keeps the map; a directory without it has no data groups.
const FILE: &str = "shards";
/// What the file begins with.
const HEAD: &str = "flotilla shards 1\n";

/// Number of a group in a map: 0 is the default group, and from 1 on there are the data groups. It stands in the
/// low bits of the revisions that the group assigns.
pub(crate) type Slot = u8;

/// The shard of a key, among so many.
pub(crate) fn shard_of(key: &str, shards: usize) -> usize {
    if shards == 1 { 0 } else { crc32c::crc32c(key.as_bytes()) as usize % shards }
}

/// Which table has how many shards, and which group replicates each of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ShardMap {
    epoch: u64,
    data_groups: u8,
    tables: BTreeMap<TableId, u16>,
}

/// Why tables cannot be kept in shards as asked.
#[derive(Debug, thiserror::Error)]
pub enum ShardMapError {
    /// A table is asked to have no shards, or too many.
    #[error("{table} cannot have {shards} shards: at least 1 and at most {SHARDS_MAX} are possible")]
    Shards {
        /// The table.
        table: TableId,
        /// How many were asked for.
        shards: u16,
    },
    /// A table is to be spread over groups, and there are none.
    #[error("{table} is to have {shards} shards, but there is no data group to replicate them")]
    NoGroups {
        /// The table.
        table: TableId,
        /// How many shards were asked for.
        shards: u16,
    },
    /// The directory holds objects that are kept in other shards.
    #[error("the data directory is kept with {kept}, which cannot be changed to {wanted}")]
    Changed {
        /// What the directory has.
        kept: String,
        /// What was asked for.
        wanted: String,
    },
    /// The file with the map is not what this release writes.
    #[error("{path} cannot be read: line {line}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The first line that makes no sense, counted from 1.
        line: usize,
    },
    /// The file with the map cannot be read or written.
    #[error("{path}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What went wrong.
        source: std::io::Error,
    },
}

impl ShardMap {
    /// The map that the options ask for.
    ///
    /// # Errors
    /// A table asks for shards that cannot be.
    pub(crate) fn of(options: &Options) -> Result<ShardMap, ShardMapError> {
        let mut tables = BTreeMap::new();
        for (table, own) in &options.tables {
            let Some(shards) = own.shards else { continue };
            let table = table.clone();
            if !(1..=SHARDS_MAX).contains(&shards) {
                return Err(ShardMapError::Shards { table, shards });
            }
            if options.groups == 0 {
                return Err(ShardMapError::NoGroups { table, shards });
            }
            tables.insert(table, shards);
        }
        Ok(ShardMap { epoch: 1, data_groups: options.groups, tables })
    }

    /// What two replicas compare to know that they keep tables alike.
    pub(crate) fn checksum(&self) -> u32 {
        crc32c::crc32c(self.text().as_bytes())
    }

    /// Counts the changes of the map.
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch
    }

    /// How many data groups there are.
    pub(crate) fn data_groups(&self) -> u8 {
        self.data_groups
    }

    /// How many shards tables have, as far as that was said.
    pub(crate) fn tables(&self) -> &BTreeMap<TableId, u16> {
        &self.tables
    }

    /// The names of all groups, by their slots.
    pub(crate) fn groups(&self) -> impl Iterator<Item = Arc<str>> + '_ {
        std::iter::once(DEFAULT_GROUP.into()).chain((1..=self.data_groups).map(|number| format!("g{number}").into()))
    }

    /// The group of every shard of a table.
    pub(crate) fn slots(&self, table: &TableId) -> Vec<Slot> {
        let Some(shards) = self.tables.get(table) else { return vec![0] };
        let groups = u32::from(self.data_groups);
        let first = crc32c::crc32c(table.as_str().as_bytes()) % groups;
        (0..u32::from(*shards)).map(|shard| 1 + ((first + shard) % groups) as Slot).collect()
    }

    /// Checks the map against the one that a data directory is kept with; a new directory keeps this one.
    ///
    /// # Errors
    /// The directory is kept with another map.
    pub(crate) fn keep(&self, disk: &dyn Disk, directory: &Path, is_new: bool) -> Result<(), ShardMapError> {
        let path = directory.join(FILE);
        let failed = |source| ShardMapError::Io { path: path.clone(), source };
        let plain = ShardMap { epoch: 1, data_groups: 0, tables: BTreeMap::new() };
        let present = disk.list(directory).map_err(failed)?.contains(&path);
        if !present && is_new && *self != plain {
            return self.write(disk, directory).map_err(failed);
        }
        let kept = match present {
            true => read(disk, &path).map_err(failed)?.map_err(|line| ShardMapError::Unreadable { path, line })?,
            false => plain,
        };
        match kept == *self {
            true => Ok(()),
            false => Err(ShardMapError::Changed { kept: kept.to_string(), wanted: self.to_string() }),
        }
    }

    /// The map as it is kept.
    fn text(&self) -> String {
        let mut text = format!("{HEAD}epoch {}\ngroups {}\n", self.epoch, self.data_groups);
        for (table, shards) in &self.tables {
            let _ = writeln!(text, "table {} {shards}", table.as_str()); // a String takes everything
        }
        text
    }

    fn write(&self, disk: &dyn Disk, directory: &Path) -> std::io::Result<()> {
        let unfinished = directory.join("shards.tmp");
        let file = disk.create(&unfinished)?;
        file.write_at(0, self.text().as_bytes())?;
        file.sync()?;
        disk.rename(&unfinished, &directory.join(FILE))?;
        disk.sync_directory(directory)
    }
}

impl std::fmt::Display for ShardMap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} data groups", self.data_groups)?;
        for (number, (table, shards)) in self.tables.iter().enumerate() {
            write!(f, "{}{}={shards}", if number == 0 { " and shards " } else { "," }, table.as_str())?;
        }
        Ok(())
    }
}

/// The map of a file, or the number of the line that cannot be read.
fn read(disk: &dyn Disk, path: &Path) -> std::io::Result<Result<ShardMap, usize>> {
    let mut bytes = vec![0; SHARD_MAP_BYTES_MAX];
    let read = disk.open(path)?.read_at(0, &mut bytes)?;
    Ok(parse(std::str::from_utf8(&bytes[..read]).unwrap_or_default()))
}

fn parse(text: &str) -> Result<ShardMap, usize> {
    let mut map = ShardMap { epoch: 0, data_groups: 0, tables: BTreeMap::new() };
    let lines = text.strip_prefix(HEAD).ok_or(1_usize)?.lines();
    for (number, line) in lines.enumerate() {
        let words: Vec<&str> = line.split(' ').collect();
        let taken = match words[..] {
            ["epoch", epoch] => epoch.parse().map(|epoch| map.epoch = epoch).is_ok(),
            ["groups", groups] => groups.parse().map(|groups| map.data_groups = groups).is_ok(),
            ["table", table, shards] => {
                let shards =
                    shards.parse().ok().filter(|shards| map.data_groups > 0 && (1..=SHARDS_MAX).contains(shards));
                shards.map(|shards| map.tables.insert(TableId::new(table), shards)).is_some()
            }
            _ => false,
        };
        if !taken {
            return Err(number + 2);
        }
    }
    if map.epoch == 0 || u16::from(map.data_groups) > GROUPS_MAX { Err(1) } else { Ok(map) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TableOptions;
    use crate::wal::simulated_disk::SimulatedDisk;

    fn options(groups: u8, tables: &[(&str, u16)]) -> Options {
        let sharded = |shards| TableOptions { shards: Some(shards), ..TableOptions::default() };
        let tables = tables.iter().map(|(table, shards)| (TableId::new(table), sharded(*shards))).collect();
        Options { groups, tables, ..Options::new("/store") }
    }

    #[test]
    fn shards_go_round_the_data_groups_and_keys_spread_evenly() {
        let map = ShardMap::of(&options(3, &[("pods", 8), ("leases", 1)])).unwrap();
        let slots = map.slots(&TableId::new("pods"));
        assert_eq!(slots.len(), 8);
        assert!(slots.windows(2).all(|pair| pair[1] == pair[0] % 3 + 1), "{slots:?}");
        assert_eq!(map.slots(&TableId::new("services")), [0]);
        assert!((1..=3).contains(&map.slots(&TableId::new("leases"))[0]));
        assert_eq!(map.groups().map(|name| name.to_string()).collect::<Vec<_>>(), ["default", "g1", "g2", "g3"]);
        for shards in [2, 3, 8] {
            let mut counts = vec![0; shards];
            for number in 0..10_000 {
                counts[shard_of(&format!("ns-{}/pod-{number}", number % 100), shards)] += 1;
            }
            let even = 10_000 / shards;
            assert!(counts.iter().all(|count: &usize| count.abs_diff(even) < even / 5), "{counts:?}");
        }
        // Clusters are kept by this hash: it must stay what it is.
        assert_eq!((shard_of("default/web-0", 8), shard_of("default/web-0", 5)), (1, 0));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        assert!(matches!(ShardMap::of(&options(3, &[("pods", 0)])), Err(ShardMapError::Shards { .. })));
        assert!(matches!(ShardMap::of(&options(3, &[("pods", SHARDS_MAX + 1)])), Err(ShardMapError::Shards { .. })));
        assert!(matches!(ShardMap::of(&options(0, &[("pods", 2)])), Err(ShardMapError::NoGroups { .. })));
    }

    #[test]
    fn a_directory_keeps_its_map() {
        let disk = SimulatedDisk::default();
        let directory = Path::new("/store");
        let map = ShardMap::of(&options(3, &[("pods", 8), ("apps/deployments", 2)])).unwrap();
        map.keep(&disk, directory, true).unwrap();
        map.keep(&disk, directory, false).unwrap();
        for other in [options(3, &[("pods", 8)]), options(4, &[("pods", 8), ("apps/deployments", 2)]), options(0, &[])]
        {
            let refused = ShardMap::of(&other).unwrap().keep(&disk, directory, false).unwrap_err();
            assert!(refused.to_string().contains("pods=8"), "{refused}");
        }
        let plain = SimulatedDisk::default();
        assert!(matches!(map.keep(&plain, directory, false), Err(ShardMapError::Changed { .. })));
        ShardMap::of(&options(0, &[])).unwrap().keep(&plain, directory, false).unwrap();
        assert!(plain.files().is_empty());
        for text in ["", "flotilla shards 2\n", "flotilla shards 1\nepoch 1\ngroups 2\ntable pods x\n"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
