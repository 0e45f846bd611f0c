//! In the end, every member still has every acknowledged write, unless a later write replaced it.

use std::collections::{BTreeMap, HashMap};

use super::Timeline;
use super::history::{History, Key, List, Seen, Write, WriteOutcome};

pub fn check(history: &History, timeline: &Timeline, found: &mut Vec<String>) {
    for list in history.lists.iter().filter(|list| list.is_final) {
        compare(list, timeline, found);
    }
    let mut deletions: HashMap<&str, Vec<&Write>> = HashMap::new();
    for write in &history.writes {
        let WriteOutcome::Deleted { uid } = &write.outcome else { continue };
        if timeline.deletion_of(&write.key, uid).is_none() {
            found.push(format!("{}: the deletion of {uid} was acknowledged and never seen", write.key));
        }
        deletions.entry(uid).or_default().push(write);
    }
    for (uid, writes) in deletions {
        if !may_all_have_deleted(&writes) {
            found.push(format!("{}: the deletion of {uid} was acknowledged twice", writes[0].key));
        }
    }
}

/// Returns whether all of these deletions of one object may have been acknowledged. A deletion that marked the object
/// also succeeds if another deletion removes the object first. In that case, all of them must have been in progress at
/// the same time.
fn may_all_have_deleted(writes: &[&Write]) -> bool {
    let first_returned = writes.iter().map(|write| write.at.returned).min().unwrap_or_default();
    let overlap = || writes.iter().all(|write| write.at.invoked <= first_returned);
    writes.len() == 1 || writes[0].key.table.marks_deletions && overlap()
}

fn compare(list: &List, timeline: &Timeline, found: &mut Vec<String>) {
    let listed: BTreeMap<&Key, &Seen> = list.items.iter().map(|(key, seen)| (key, seen)).collect();
    for (key, states) in timeline.keys().filter(|(key, _)| list.scope.holds(key)) {
        let last = states.last().and_then(|state| state.object.as_ref());
        if listed.get(key).copied() != last {
            found.push(format!("{key} is {:?} in the end, should be {last:?}", listed.get(key)));
        }
    }
}
