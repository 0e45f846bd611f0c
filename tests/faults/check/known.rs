//! Which revisions were known when.

use std::collections::BTreeMap;

use super::Timeline;
use super::history::{Delivery, History, Micros, Revision, Table, Write, WriteOutcome};

/// The largest revision that was known to anybody, by time.
#[derive(Debug, Default)]
pub struct Known(Vec<(Micros, Revision)>);

impl Known {
    /// What was told, and when.
    pub fn of(mut told: Vec<(Micros, Revision)>) -> Known {
        told.sort_unstable();
        let mut highest = 0;
        for (_, revision) in &mut told {
            highest = highest.max(*revision);
            *revision = highest;
        }
        Known(told)
    }

    /// The largest that was known before a moment; 0 for none.
    pub fn before(&self, moment: Micros) -> Revision {
        let before = self.0.partition_point(|(by, _)| *by < moment);
        before.checked_sub(1).map_or(0, |last| self.0[last].1)
    }
}

/// What was known of each table by acknowledgements, lists and events.
pub fn of_tables(history: &History, timeline: &Timeline) -> BTreeMap<Table, Known> {
    let mut told: BTreeMap<Table, Vec<(Micros, Revision)>> = BTreeMap::new();
    for write in &history.writes {
        let revision = acknowledged(write, timeline).map(|revision| (write.at.returned, revision));
        told.entry(write.key.table).or_default().extend(revision);
    }
    for list in &history.lists {
        let revision = list.revisions.first().map(|revision| (list.at.returned, *revision));
        told.entry(list.scope.table).or_default().extend(revision);
    }
    for stream in &history.streams {
        let deliveries = stream.sessions.iter().flat_map(|session| &session.deliveries);
        let events = deliveries.filter_map(|delivery| match delivery {
            Delivery::Event { seen, at, .. } => Some((*at, seen.revision)),
            Delivery::Bookmark { .. } => None,
        });
        told.entry(stream.scope.table).or_default().extend(events);
    }
    told.into_iter().map(|(table, told)| (table, Known::of(told))).collect()
}

/// The revision that a write got, if it was acknowledged and that is known.
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
