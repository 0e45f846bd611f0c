//! Every page of a list shows the table as it was at the list's revision. The initial events of a watch do so, too.

use std::collections::BTreeMap;

use super::Timeline;
use super::history::{Delivery, EventKind, History, Key, List, Revision, Scope, Seen, Session, Start};

type Objects<'a> = BTreeMap<&'a Key, &'a Seen>;

pub fn check(history: &History, timeline: &Timeline, found: &mut Vec<String>) {
    for list in &history.lists {
        check_list(list, timeline, found);
    }
    for stream in &history.streams {
        for session in stream.sessions.iter().filter(|session| matches!(session.start, Start::InitialEvents)) {
            check_initial(&stream.scope, session, timeline, found);
        }
    }
}

fn check_list(list: &List, timeline: &Timeline, found: &mut Vec<String>) {
    let Some(revision) = list.revisions.first().copied() else { return };
    if list.revisions.iter().any(|other| *other != revision) {
        found.push(format!("a list of {:?} has pages of {:?}", list.scope, list.revisions));
    }
    let listed: Objects = list.items.iter().map(|(key, seen)| (key, seen)).collect();
    if listed.len() < list.items.len() {
        found.push(format!("a list of {:?} at {revision} holds an object twice", list.scope));
    }
    compare(&list.scope, revision, &listed, timeline, found);
}

fn check_initial(scope: &Scope, session: &Session, timeline: &Timeline, found: &mut Vec<String>) {
    let mut objects = Objects::new();
    for delivery in &session.deliveries {
        match delivery {
            Delivery::Event { kind: EventKind::Deleted, key, .. } => _ = objects.remove(key),
            Delivery::Event { key, seen, .. } => _ = objects.insert(key, seen),
            Delivery::Bookmark { revision, ends_initial: true } => {
                return compare(scope, *revision, &objects, timeline, found);
            }
            Delivery::Bookmark { .. } => {}
        }
    }
}

fn compare(scope: &Scope, revision: Revision, listed: &Objects, timeline: &Timeline, found: &mut Vec<String>) {
    for (key, states) in timeline.keys().filter(|(key, _)| scope.holds(key)) {
        let state = &states[timeline.index_at(key, revision)];
        if listed.get(key).copied() != state.object.as_ref() {
            let (shown, should) = (listed.get(key), &state.object);
            found.push(format!("a list at {revision} shows {key} as {shown:?}, it was {should:?}"));
        }
    }
}
