//! The text form of a shard map: one line for each fact.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::{Division, GroupNumber, Placement, ShardMap};
use crate::TableId;
use crate::limits::{GROUPS_MAX, SHARDS_MAX};
use crate::roster::Replica;

/// The first line, after the revision with which the object begins.
const HEAD: &str = "flotilla shards 2";

impl ShardMap {
    /// Returns the text.
    pub(super) fn text(&self) -> String {
        let mut text = format!(" {HEAD}\nepoch {}\n", self.epoch);
        for (number, founders) in self.groups.iter().enumerate() {
            let _ = writeln!(text, "group {}", number + 1); // writing to a String does not fail
            for (id, Replica { name, address }) in founders {
                let _ = writeln!(text, "founder {id:x} {name} {address}");
            }
        }
        for (group_number, member) in &self.preferred {
            let _ = writeln!(text, "preferred {group_number} {member:x}");
        }
        for (table, placement) in &self.tables {
            for (number, Division { epoch, group_numbers }) in placement.divisions().enumerate() {
                let stage = match number.cmp(&placement.retired.len()) {
                    std::cmp::Ordering::Less => "retired",
                    std::cmp::Ordering::Equal => "serving",
                    std::cmp::Ordering::Greater if placement.ending => "succeeding",
                    std::cmp::Ordering::Greater => "next",
                };
                let group_numbers: Vec<String> = group_numbers.iter().map(GroupNumber::to_string).collect();
                let _ = writeln!(text, "table {} {stage} {epoch} {}", table.as_str(), group_numbers.join(","));
            }
        }
        text
    }
}

/// Parses a map. The error is the number of the first line that cannot be read.
pub(super) fn parse(text: &str) -> Result<ShardMap, usize> {
    let mut map = ShardMap::default();
    let mut lines = text.lines();
    if lines.next().map(str::trim) != Some(HEAD) {
        return Err(1);
    }
    for (number, line) in lines.enumerate() {
        parse_line(&mut map, line).ok_or(number + 2)?;
    }
    let is_group = |group_number: &GroupNumber| usize::from(*group_number) <= map.groups.len();
    let is_placed = |division: &Division| division.group_numbers.iter().all(is_group);
    let is_whole =
        |placement: &Placement| !placement.serving.group_numbers.is_empty() && placement.divisions().all(is_placed);
    match map.epoch > 0 && map.tables.values().all(is_whole) && map.preferred.keys().all(is_group) {
        true => Ok(map),
        false => Err(1),
    }
}

fn parse_line(map: &mut ShardMap, line: &str) -> Option<()> {
    let words: Vec<&str> = line.split(' ').collect();
    match words[..] {
        ["epoch", epoch] => map.epoch = epoch.parse().ok()?,
        ["group", number] if map.groups.len() < usize::from(GROUPS_MAX) => {
            map.groups.push(BTreeMap::new());
            (number.parse() == Ok(map.groups.len())).then_some(())?;
        }
        ["founder", id, name, address] => {
            let replica = Replica { name: name.to_owned(), address: address.to_owned() };
            map.groups.last_mut()?.insert(u64::from_str_radix(id, 16).ok()?, replica);
        }
        ["preferred", group_number, member] => {
            let member = u64::from_str_radix(member, 16).ok()?;
            map.preferred.insert(group_number.parse().ok()?, member).is_none().then_some(())?;
        }
        ["table", table, stage, epoch, group_numbers] => {
            let group_numbers = group_numbers
                .split(',')
                .map(|group_number| group_number.parse().ok())
                .collect::<Option<Vec<GroupNumber>>>()?;
            (group_numbers.len() <= usize::from(SHARDS_MAX)).then_some(())?;
            let division = Division { epoch: epoch.parse().ok()?, group_numbers };
            let blank = || Placement::founding(Vec::new());
            let placement = map.tables.entry(TableId::new(table)).or_insert_with(blank);
            match stage {
                "retired" => placement.retired.push(division),
                "serving" => placement.serving = division,
                "next" => placement.next = Some(division),
                "succeeding" => (placement.next, placement.ending) = (Some(division), true),
                _ => return None,
            }
        }
        _ => return None,
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_maps_are_refused() {
        let texts = [
            "",
            " flotilla shards 1\n",
            "group 2",
            "founder 1 a b",
            "table pods serving x 1",
            "table pods serving 1 1",
            "preferred 0 member",
            "preferred 1 ab",
            "preferred 0 ab\npreferred 0 ab",
        ];
        for text in texts {
            assert!(parse(text).is_err(), "{text}");
            assert!(parse(&format!(" {HEAD}\nepoch 1\n{text}\n")).is_err(), "{text}");
        }
    }
    /// The text of a release that knew no preferences.
    const BEFORE: &str = " flotilla shards 2\nepoch 3\ngroup 1\nfounder 7 b \nfounder ab a h:1\ngroup 2\n\
        founder ab a h:1\ntable pods serving 1 1,2\ntable pods next 3 2\n";

    #[test]
    fn a_map_without_preferences_has_the_text_of_earlier_releases() {
        let map = parse(BEFORE).unwrap();
        assert!(map.preferred.is_empty());
        assert_eq!(map.text(), BEFORE);
    }

    #[test]
    fn preferences_read_back_as_written() {
        let map = ShardMap { preferred: [(0, 7), (2, u64::MAX)].into(), ..parse(BEFORE).unwrap() };
        let said = "preferred 0 7\npreferred 2 ffffffffffffffff\n";
        assert_eq!(map.text(), BEFORE.replace("table pods serving", &format!("{said}table pods serving")));
        assert_eq!(parse(&map.text()), Ok(map));
    }
}
