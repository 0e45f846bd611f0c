//! What was acknowledged is still there in the end, on every member, unless a later change replaced it.

use std::collections::{BTreeMap, HashSet};

use super::Timeline;
use super::history::{History, Key, List, Seen, WriteOutcome};

pub fn check(history: &History, timeline: &Timeline, found: &mut Vec<String>) {
    for list in history.lists.iter().filter(|list| list.is_final) {
        compare(list, timeline, found);
    }
    let mut deleted = HashSet::new();
    for write in &history.writes {
        let WriteOutcome::Deleted { uid } = &write.outcome else { continue };
        if timeline.deletion_of(&write.key, uid).is_none() {
            found.push(format!("{}: the deletion of {uid} was acknowledged and never seen", write.key));
        }
        if !deleted.insert(uid) {
            found.push(format!("{}: the deletion of {uid} was acknowledged twice", write.key));
        }
    }
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
