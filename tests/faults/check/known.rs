//! Which revisions clients had seen at which time.

use std::collections::BTreeMap;

use super::Timeline;
use super::history::{Delivery, History, Micros, Revision, Table, Write, WriteOutcome};

/// The largest revision that any client had seen, by time.
#[derive(Debug, Default)]
pub struct Known(Vec<(Micros, Revision)>);

impl Known {
    /// Takes pairs of a time and a revision that a client received at that time.
    pub fn of(mut shown: Vec<(Micros, Revision)>) -> Known {
        shown.sort_unstable();
        let mut highest = 0;
        for (_, revision) in &mut shown {
            highest = highest.max(*revision);
            *revision = highest;
        }
        Known(shown)
    }

    /// Returns the largest revision that was seen before a moment, or 0 if none was.
    pub fn before(&self, moment: Micros) -> Revision {
        let before = self.0.partition_point(|(by, _)| *by < moment);
        before.checked_sub(1).map_or(0, |last| self.0[last].1)
    }
}

/// Returns, for each table, the revisions that acknowledgements, lists and events showed.
pub fn of_tables(history: &History, timeline: &Timeline) -> BTreeMap<Table, Known> {
    let mut shown: BTreeMap<Table, Vec<(Micros, Revision)>> = BTreeMap::new();
    for write in &history.writes {
        let revision = acknowledged(write, timeline).map(|revision| (write.at.returned, revision));
        shown.entry(write.key.table).or_default().extend(revision);
    }
    for list in &history.lists {
        let revision = list.revisions.first().map(|revision| (list.at.returned, *revision));
        shown.entry(list.scope.table).or_default().extend(revision);
    }
    for stream in &history.streams {
        let deliveries = stream.sessions.iter().flat_map(|session| &session.deliveries);
        let events = deliveries.filter_map(|delivery| match delivery {
            Delivery::Event { seen, at, .. } => Some((*at, seen.revision)),
            Delivery::Bookmark { .. } => None,
        });
        shown.entry(stream.scope.table).or_default().extend(events);
    }
    shown.into_iter().map(|(table, shown)| (table, Known::of(shown))).collect()
}

/// Returns the revision of an acknowledged write. Returns `None` if the write was not acknowledged, or if nobody saw
/// its revision.
pub fn acknowledged(write: &Write, timeline: &Timeline) -> Option<Revision> {
    match &write.outcome {
        WriteOutcome::Put(seen) => Some(seen.revision),
        WriteOutcome::Deleted { uid } => {
            let index = timeline.deletion_of(&write.key, uid)?;
            Some(timeline.states(&write.key)[index].revision)
        }
        _ => None,
    }
}
