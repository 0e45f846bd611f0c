//! The shard map: the division of tables into shards, the group that replicates each shard, and the preferred leaders
//! of groups.
//!
//! The map is an object in a table of its own, in the group `default`. It is changed by conditional writes like any
//! other object, so it is in the log, in snapshots, and on every replica. Options only determine the map of a new
//! cluster.
//!
//! A table has a sequence of [`Division`]s. A key belongs to shard `crc32c(key) % shards` of a division. Every write in
//! the log names its division and shard: one replica may know a new map earlier than another, so applying a write must
//! not depend on the map.

mod preferences;
mod text;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::limits::{DIVISIONS_MAX, GROUPS_MAX, SHARDS_MAX};
use crate::roster::Replica;
use crate::{Draft, Layout, Options, Revision, TableId};

/// The name of the group of every table that is not spread over data groups.
pub(crate) const DEFAULT_GROUP: &str = "default";
/// The name of the table that contains the map. No resource can have this name.
pub(crate) const MAP_TABLE: &str = "#shards";
/// The only key of that table.
pub(crate) const MAP_KEY: &str = "map";

/// The number of a group: 0 for the default group, from 1 on for data groups. It is in the low bits of every revision
/// that the group assigns.
pub(crate) type GroupNumber = u8;

/// The number of a division of a table; later divisions have higher ones. Divisions up to [`FOUNDING_EPOCH`] take
/// writes from the start, later ones once they have been filled and opened.
pub(crate) type Epoch = u32;

/// The epoch of the divisions with which a cluster is founded.
pub(crate) const FOUNDING_EPOCH: Epoch = 1;

/// Returns whether the shards of a division take writes from the start.
pub(crate) fn takes_writes(epoch: Epoch) -> bool {
    epoch <= FOUNDING_EPOCH
}

/// Returns the shard of a key, for a division with this number of shards.
pub(crate) fn shard_of(key: &str, shards: usize) -> usize {
    if shards == 1 { 0 } else { crc32c::crc32c(key.as_bytes()) as usize % shards }
}

/// Returns the name of a group.
pub(crate) fn group_name(group_number: GroupNumber) -> Arc<str> {
    if group_number == 0 { DEFAULT_GROUP.into() } else { format!("g{group_number}").into() }
}

/// Returns the number of the group with a name. `None` if no group can have that name: every group has one name only.
pub(crate) fn number_of_group(name: &str) -> Option<GroupNumber> {
    match name.strip_prefix('g') {
        _ if name == DEFAULT_GROUP => Some(0),
        // A number has other spellings, such as 01 and +1, which name no group.
        Some(number) if number.starts_with(|first| matches!(first, '1'..='9')) => number.parse().ok(),
        _ => None,
    }
}

/// A division of a table into shards, with the group of each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Division {
    pub(crate) epoch: Epoch,
    pub(crate) group_numbers: Vec<GroupNumber>,
}

/// The divisions of a table that is not, or was not always, in the default group alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Placement {
    /// Former divisions, oldest first. Their history can be read until it leaves the history window.
    pub(crate) retired: Vec<Division>,
    /// The division that takes writes.
    pub(crate) serving: Division,
    /// The division that is being filled, and will replace it.
    pub(crate) next: Option<Division>,
    /// Whether the serving division is being ended, because the next one is about to take writes.
    pub(crate) ending: bool,
}

/// The divisions of tables, the groups of shards, and the preferred leaders of groups.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct ShardMap {
    /// The version of the map: rises with every change, and is zero while no map is known.
    pub(crate) epoch: Epoch,
    /// The founders of each data group. Its present members are in its own log.
    pub(crate) groups: Vec<BTreeMap<u64, Replica>>,
    /// The preferred leaders of groups that have one. Ids of replicas that are not members any more are ignored.
    pub(crate) preferred: BTreeMap<GroupNumber, u64>,
    pub(crate) tables: BTreeMap<TableId, Placement>,
}

/// The reason why tables cannot be divided as asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShardMapError {
    /// A table was asked to have no shards, or too many.
    #[error("{table} cannot have {shards} shards: at least 1 and at most {SHARDS_MAX} are possible")]
    Shards {
        /// The table.
        table: TableId,
        /// The number of shards that was asked for.
        shards: u16,
    },
    /// A table should be spread over data groups, but there are none.
    #[error("{table} cannot have {shards} shards: no data group replicates them")]
    NoGroups {
        /// The table.
        table: TableId,
        /// The number of shards that was asked for.
        shards: u16,
    },
    /// The map is not in the format that this release writes.
    #[error("the shard map cannot be read: line {line}")]
    Unreadable {
        /// The first line that cannot be read, counted from 1.
        line: usize,
    },
}

fn check(table: &TableId, shards: u16) -> Result<(), ShardMapError> {
    let is_word = |name: &str| !name.is_empty() && !name.contains(char::is_whitespace);
    match (1..=SHARDS_MAX).contains(&shards) && is_word(table.as_str()) {
        true => Ok(()),
        false => Err(ShardMapError::Shards { table: table.clone(), shards }),
    }
}

/// Returns the group of every shard of a table. They are consecutive data groups, starting with number `crc32c(table) %
/// groups`, so that tables with few shards do not all use the first group.
fn assign_groups(table: &TableId, shards: u16, groups: usize) -> Vec<GroupNumber> {
    let groups = groups.max(1) as u32;
    let first = crc32c::crc32c(table.as_str().as_bytes()) % groups;
    (0..u32::from(shards)).map(|shard| 1 + ((first + shard) % groups) as GroupNumber).collect()
}

impl Placement {
    fn founding(group_numbers: Vec<GroupNumber>) -> Placement {
        let serving = Division { epoch: FOUNDING_EPOCH, group_numbers };
        Placement { retired: Vec::new(), serving, next: None, ending: false }
    }

    /// Returns every division, oldest first.
    pub(crate) fn divisions(&self) -> impl Iterator<Item = &Division> {
        self.retired.iter().chain([&self.serving]).chain(&self.next)
    }
}

impl ShardMap {
    /// Returns the map with which a cluster is founded.
    ///
    /// # Errors
    /// Fails when a table asks for an impossible number of shards.
    pub(crate) fn founding(options: &Options, founders: &BTreeMap<u64, Replica>) -> Result<ShardMap, ShardMapError> {
        let mut tables = BTreeMap::new();
        for (table, own) in &options.tables {
            let Some(shards) = own.shards else { continue };
            check(table, shards)?;
            if options.groups == 0 {
                return Err(ShardMapError::NoGroups { table: table.clone(), shards });
            }
            let group_numbers = assign_groups(table, shards, usize::from(options.groups));
            tables.insert(table.clone(), Placement::founding(group_numbers));
        }
        let groups = vec![founders.clone(); usize::from(options.groups)];
        Ok(ShardMap { epoch: FOUNDING_EPOCH, groups, preferred: BTreeMap::new(), tables })
    }

    /// Returns the number of data groups.
    pub(crate) fn data_groups(&self) -> u8 {
        self.groups.len() as u8 // bounded when read
    }

    /// Returns the number of shards of each table that the map has.
    pub(crate) fn shards(&self) -> BTreeMap<TableId, u16> {
        let shards = |placement: &Placement| placement.serving.group_numbers.len() as u16;
        self.tables.iter().map(|(table, placement)| (table.clone(), shards(placement))).collect()
    }

    /// Returns the numbers of all groups.
    pub(crate) fn group_numbers(&self) -> std::ops::RangeInclusive<GroupNumber> {
        0..=self.data_groups()
    }

    /// Returns the groups that replicate serving divisions, and the default group.
    pub(crate) fn serving_groups(&self) -> BTreeSet<GroupNumber> {
        self.tables.values().flat_map(|placement| placement.serving.group_numbers.iter().copied()).chain([0]).collect()
    }

    /// Returns the groups that replicate serving or next divisions, and the default group. The others only have
    /// history.
    pub(crate) fn needed_groups(&self) -> BTreeSet<GroupNumber> {
        let next = self.tables.values().filter_map(|placement| placement.next.as_ref());
        self.serving_groups().into_iter().chain(next.flat_map(|next| next.group_numbers.iter().copied())).collect()
    }

    /// Returns whether a group may have objects that no other group has: those of a serving division, or of the next
    /// one once it may take writes.
    pub(crate) fn is_filled(&self, group_number: GroupNumber) -> bool {
        let has = |division: &Division| division.group_numbers.contains(&group_number);
        let fills = |placement: &Placement| {
            has(&placement.serving) || placement.ending && placement.next.as_ref().is_some_and(has)
        };
        group_number == 0 || self.tables.values().any(fills)
    }

    /// Returns the same map as a new version, so that a concurrent change of the former version conflicts and is
    /// decided again.
    pub(crate) fn confirmed(&self) -> ShardMap {
        ShardMap { epoch: self.epoch + 1, ..self.clone() }
    }

    /// Returns every division of a table, oldest first.
    pub(crate) fn divisions(&self, table: &TableId) -> Vec<Division> {
        let whole = || vec![Division { epoch: 0, group_numbers: vec![0] }];
        self.tables.get(table).map_or_else(whole, |placement| placement.divisions().cloned().collect())
    }

    /// Returns the map with a next division of a table. `founders` are the founders of the additional groups that it
    /// needs. Returns `None` when the table has, or will have, this number of shards already, or is being divided.
    ///
    /// # Errors
    /// Fails when the table cannot have this number of shards.
    pub(crate) fn dividing(
        &self,
        table: &TableId,
        shards: u16,
        founders: &BTreeMap<u64, Replica>,
    ) -> Result<Option<ShardMap>, ShardMapError> {
        check(table, shards)?;
        let mut map = ShardMap { epoch: self.epoch + 1, ..self.clone() };
        let whole =
            || Placement { serving: Division { epoch: 0, group_numbers: vec![0] }, ..Placement::founding(Vec::new()) };
        let placement = map.tables.entry(table.clone()).or_insert_with(whole);
        let current = placement.next.as_ref().unwrap_or(&placement.serving).group_numbers.len();
        if current == usize::from(shards) && (self.tables.contains_key(table) || shards == 1) {
            return Ok(None);
        }
        if placement.next.is_some() {
            return Ok(None); // one division at a time
        }
        let groups = self.groups.len().max(usize::from(shards.min(GROUPS_MAX)));
        map.groups.resize(groups, founders.clone());
        placement.next = Some(Division { epoch: map.epoch, group_numbers: assign_groups(table, shards, groups) });
        Ok(Some(map))
    }

    /// Returns the map in which the serving division of a table is ending, because the next one is nearly complete.
    /// Returns `None` when the next division is not `next`, or when the serving division is ending already.
    pub(crate) fn ending(&self, table: &TableId, next: Epoch) -> Option<ShardMap> {
        let mut map = ShardMap { epoch: self.epoch + 1, ..self.clone() };
        let placement = map.tables.get_mut(table)?;
        let is_next = placement.next.as_ref().is_some_and(|division| division.epoch == next);
        (is_next && !std::mem::replace(&mut placement.ending, true)).then_some(map)
    }

    /// Returns the map in which the next division of a table is the serving one. Returns `None` when the next division
    /// is not `next`.
    pub(crate) fn divided(&self, table: &TableId, next: Epoch) -> Option<ShardMap> {
        let mut map = ShardMap { epoch: self.epoch + 1, ..self.clone() };
        let placement = map.tables.get_mut(table)?;
        let division = placement.next.take_if(|division| division.epoch == next)?;
        placement.retired.push(std::mem::replace(&mut placement.serving, division));
        let excess = placement.retired.len().saturating_sub(DIVISIONS_MAX);
        placement.retired.drain(..excess);
        placement.ending = false;
        Some(map)
    }

    /// Returns the map as a draft of its object.
    pub(crate) fn draft(&self) -> Draft {
        let layout = Layout { revision_at: 0, head: 0, metadata: 0..0 };
        let text = format!("{}{}", "0".repeat(Revision::DIGITS), self.text());
        Draft { bytes: text.into_bytes(), layout, ..Draft::default() }
    }

    /// Reads the map from an object.
    ///
    /// # Errors
    /// Fails when the map is from a later release.
    pub(crate) fn read(bytes: &[u8]) -> Result<ShardMap, ShardMapError> {
        let text = bytes.get(Revision::DIGITS..).and_then(|text| std::str::from_utf8(text).ok());
        text::parse(text.unwrap_or_default()).map_err(|line| ShardMapError::Unreadable { line })
    }
}

impl std::fmt::Display for ShardMap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} data groups", self.groups.len())?;
        for (number, (table, shards)) in self.shards().iter().enumerate() {
            write!(f, "{}{}={shards}", if number == 0 { " and shards " } else { "," }, table.as_str())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Key, TableOptions};

    fn options(groups: u8, tables: &[(&str, u16)]) -> Options {
        let sharded = |shards| TableOptions { shards: Some(shards), ..TableOptions::default() };
        let tables = tables.iter().map(|(table, shards)| (TableId::new(table), sharded(*shards))).collect();
        Options { groups, tables, ..Options::new("/store") }
    }

    fn founders() -> BTreeMap<u64, Replica> {
        let replica = |name: &str, address: &str| Replica { name: name.into(), address: address.into() };
        [(0xab, replica("a", "h:1")), (7, replica("b", ""))].into()
    }

    fn founding(groups: u8, tables: &[(&str, u16)]) -> Result<ShardMap, ShardMapError> {
        ShardMap::founding(&options(groups, tables), &founders())
    }

    #[test]
    fn a_group_has_one_name() {
        let named = |group_number| number_of_group(&group_name(group_number)) == Some(group_number);
        assert!((0..=255).all(named));
        for name in ["", "g", "g0", "g01", "g001", "g+1", "g-1", "g 1", "g256", "1", "Default"] {
            assert_eq!(number_of_group(name), None, "{name}");
        }
    }

    #[test]
    fn shards_take_turns_in_data_groups_and_keys_spread_evenly() {
        let map = founding(3, &[("pods", 8), ("leases", 1)]).unwrap();
        let group_numbers = |table: &str| map.divisions(&TableId::new(table)).pop().unwrap().group_numbers;
        assert_eq!(group_numbers("pods").len(), 8);
        assert!(group_numbers("pods").windows(2).all(|pair| pair[1] == pair[0] % 3 + 1), "{:?}", group_numbers("pods"));
        assert_eq!(group_numbers("services"), [0]);
        assert!((1..=3).contains(&group_numbers("leases")[0]));
        assert_eq!(
            map.group_numbers().map(group_name).map(|name| name.to_string()).collect::<Vec<_>>(),
            ["default", "g1", "g2", "g3"]
        );
        for shards in [2, 3, 8] {
            let mut counts = vec![0; shards];
            for number in 0..10_000 {
                counts[shard_of(&format!("ns-{}/pod-{number}", number % 100), shards)] += 1;
            }
            let even = 10_000 / shards;
            assert!(counts.iter().all(|count: &usize| count.abs_diff(even) < even / 5), "{counts:?}");
        }
        // The shards of existing clusters depend on this hash, so it must never change.
        assert_eq!((shard_of("default/web-0", 8), shard_of("default/web-0", 5)), (1, 0));
    }

    #[test]
    fn impossible_divisions_are_refused() {
        assert!(matches!(founding(3, &[("pods", 0)]), Err(ShardMapError::Shards { .. })));
        assert!(matches!(founding(3, &[("pods", SHARDS_MAX + 1)]), Err(ShardMapError::Shards { .. })));
        assert!(matches!(founding(0, &[("pods", 2)]), Err(ShardMapError::NoGroups { .. })));
        let map = founding(3, &[("pods", 2)]).unwrap();
        assert!(map.dividing(&TableId::new("pods"), 0, &founders()).is_err());
        assert!(map.dividing(&TableId::new("two words"), 2, &founders()).is_err());
    }

    #[test]
    fn a_table_is_divided_in_stages_and_every_map_reads_back_as_written() {
        let (pods, widgets) = (TableId::new("pods"), TableId::new("example.com/widgets"));
        let map = founding(3, &[("pods", 2)]).unwrap();
        assert_eq!(map.dividing(&pods, 2, &founders()), Ok(None));
        assert_eq!(map.dividing(&widgets, 1, &founders()), Ok(None), "it has one");
        let next = map.dividing(&pods, 5, &founders()).unwrap().unwrap();
        assert_eq!((next.epoch, next.data_groups(), next.divisions(&pods).len()), (2, 5, 2));
        assert_eq!(next.shards()[&pods], 2, "it has what it had as long as the change goes on");
        assert_eq!(next.dividing(&pods, 8, &founders()), Ok(None), "one after the other");
        let both = next.dividing(&widgets, 4, &founders()).unwrap().unwrap();
        let ending = both.ending(&pods, 2).unwrap();
        assert_eq!((ending.ending(&pods, 2), ending.divided(&pods, 3)), (None, None));
        let divided = ending.divided(&pods, 2).unwrap();
        assert_eq!((divided.shards()[&pods], divided.divisions(&pods).len()), (5, 2));
        assert_eq!(map.needed_groups(), map.serving_groups());
        assert_eq!(next.needed_groups(), [0, 1, 2, 3, 4, 5].into());
        let filled = |map: &ShardMap| map.group_numbers().filter(|group_number| map.is_filled(*group_number)).count();
        assert_eq!((filled(&next), filled(&next.ending(&pods, 2).unwrap())), (3, 6));
        let fewer = next.divided(&pods, 2).unwrap().dividing(&pods, 1, &founders()).unwrap().unwrap();
        let fewer = fewer.divided(&pods, fewer.epoch).unwrap();
        assert_eq!((fewer.data_groups(), fewer.needed_groups().len()), (5, 2), "the others have history alone");
        for map in [&map, &next, &both, &ending, &divided] {
            let object = map.draft().seal(Key::new(MAP_KEY), Revision::FIRST).unwrap();
            assert_eq!(ShardMap::read(object.bytes()).as_ref(), Ok(map));
        }
        let mut map = divided;
        for round in 0..2 * DIVISIONS_MAX as u16 {
            let next = map.dividing(&pods, 1 + round % 2, &founders()).unwrap().unwrap();
            map = next.divided(&pods, next.epoch).unwrap();
        }
        assert_eq!(map.divisions(&pods).len(), DIVISIONS_MAX + 1);
    }
}
