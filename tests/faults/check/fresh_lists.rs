//! A most recent list is no older than anything that was known before it was asked for.

use std::collections::BTreeMap;

use super::Timeline;
use super::history::{Delivery, History, Micros, Revision, Table, WriteOutcome};

pub fn check(history: &History, timeline: &Timeline, found: &mut Vec<String>) {
    let mut known: BTreeMap<Table, Vec<(Micros, Revision)>> = BTreeMap::new();
    for write in &history.writes {
        let revision = match &write.outcome {
            WriteOutcome::Put(seen) => Some(seen.revision),
            WriteOutcome::Deleted { uid } => {
                let states = timeline.states(&write.key);
                timeline.deletion_of(&write.key, uid).map(|index| states[index].revision)
            }
            _ => None,
        };
        known.entry(write.key.table).or_default().extend(revision.map(|revision| (write.at.returned, revision)));
    }
    for list in &history.lists {
        let revision = list.revisions.first().map(|revision| (list.at.returned, *revision));
        known.entry(list.scope.table).or_default().extend(revision);
    }
    for stream in &history.streams {
        let deliveries = stream.sessions.iter().flat_map(|session| &session.deliveries);
        let events = deliveries.filter_map(|delivery| match delivery {
            Delivery::Event { seen, at, .. } => Some((*at, seen.revision)),
            Delivery::Bookmark { .. } => None,
        });
        known.entry(stream.scope.table).or_default().extend(events);
    }
    for of_table in known.values_mut() {
        of_table.sort_unstable();
        let mut highest = 0;
        for (_, revision) in of_table.iter_mut() {
            highest = highest.max(*revision);
            *revision = highest;
        }
    }
    for list in history.lists.iter().filter(|list| list.is_recent) {
        let known = &known[&list.scope.table];
        let before = known.partition_point(|(by, _)| *by < list.at.invoked);
        let highest = before.checked_sub(1).map_or(0, |last| known[last].1);
        if list.revisions.first().is_some_and(|revision| *revision < highest) {
            let (scope, at, revisions) = (&list.scope, list.at, &list.revisions);
            found.push(format!("a list of {scope:?} at {at:?} is of {revisions:?}, {highest} was known before"));
        }
    }
}
