//! A watch delivers every change between its start and its last event or bookmark, each with the right type.

use std::collections::BTreeMap;

use super::Timeline;
use super::history::{Delivery, EventKind, History, Revision, Scope, Session, Start};
use super::timeline::Change;

pub fn check(history: &History, timeline: &Timeline, found: &mut Vec<String>) {
    for stream in &history.streams {
        for session in &stream.sessions {
            check_session(&stream.scope, session, timeline, found);
        }
        if !stream.is_caught_up {
            let last = stream.sessions.last().map(|session| (session.member, session.deliveries.last()));
            found.push(format!("a watch of {:?} missed the last write; it was at {last:?}", stream.scope));
        }
    }
}

fn check_session(scope: &Scope, session: &Session, timeline: &Timeline, found: &mut Vec<String>) {
    let (from, deliveries) = match session.start {
        Start::After { revision, .. } => (revision, &session.deliveries[..]),
        Start::InitialEvents => {
            let ends = |delivery: &Delivery| matches!(delivery, Delivery::Bookmark { ends_initial: true, .. });
            let Some(end) = session.deliveries.iter().position(ends) else { return };
            (revision_of(&session.deliveries[end]), &session.deliveries[end + 1..])
        }
    };
    // A bookmark also states that the watch delivered every earlier change.
    let until = deliveries.iter().map(revision_of).max().unwrap_or(0);
    let delivered: BTreeMap<Revision, EventKind> = deliveries.iter().filter_map(event).collect();
    for (revision, change) in timeline.changes(scope.table, from, until).filter(|(_, change)| scope.holds(&change.key))
    {
        let (right, key, member) = (kind_of(timeline, revision, change), &change.key, session.member);
        match delivered.get(&revision) {
            None => found.push(format!(
                "a watch of {scope:?} on member {member} from {from} to {until} missed {key} at {revision}"
            )),
            Some(kind) if *kind != right => {
                found.push(format!("a watch delivered {key} at {revision} as {kind:?}, but it was {right:?}"));
            }
            Some(_) => {}
        }
    }
}

fn event(delivery: &Delivery) -> Option<(Revision, EventKind)> {
    match delivery {
        Delivery::Event { kind, seen, .. } => Some((seen.revision, *kind)),
        Delivery::Bookmark { .. } => None,
    }
}

fn revision_of(delivery: &Delivery) -> Revision {
    match delivery {
        Delivery::Event { seen, .. } => seen.revision,
        Delivery::Bookmark { revision, .. } => *revision,
    }
}

fn kind_of(timeline: &Timeline, revision: Revision, change: &Change) -> EventKind {
    let index = timeline.index_of(&change.key, revision).unwrap_or(0);
    let before = index.checked_sub(1).and_then(|before| timeline.states(&change.key)[before].object.as_ref());
    match (&change.value, before) {
        (None, _) => EventKind::Deleted,
        (Some(_), None) => EventKind::Added,
        (Some(_), Some(_)) => EventKind::Modified,
    }
}
