//! A request that is sent after an answer came sees the state in that answer, or a later one.
//!
//! For each key: a most recent read returns no state that is older than one that a client had seen before the read was
//! sent. No read returns a state before a client has requested it. A write gets a later state than every state that a
//! client had seen before the write was sent.

use super::Timeline;
use super::history::{Get, History, Write, WriteOutcome};

pub fn check(history: &History, timeline: &Timeline, found: &mut Vec<String>) {
    for write in &history.writes {
        check_write(write, timeline, found);
    }
    for get in &history.gets {
        check_get(get, timeline, found);
    }
}

fn check_write(write: &Write, timeline: &Timeline, found: &mut Vec<String>) {
    let index = match &write.outcome {
        WriteOutcome::Put(seen) => timeline.index_of(&write.key, seen.revision),
        WriteOutcome::Deleted { uid } => timeline.deletion_of(&write.key, uid),
        _ => None,
    };
    let Some(index) = index else { return };
    let reached = timeline.reached_before(&write.key, write.at.invoked);
    if index <= reached {
        let states = timeline.states(&write.key);
        let (own, known) = (states[index].revision, states[reached].revision);
        found.push(format!(
            "{}: {:?} got {own}, although {known} was known before it was sent",
            write.key, write.intent
        ));
    }
}

fn check_get(get: &Get, timeline: &Timeline, found: &mut Vec<String>) {
    // `refusals` checks a 404.
    let Some(seen) = &get.found else { return };
    let Some(index) = timeline.index_of(&get.key, seen.revision) else { return };
    let states = timeline.states(&get.key);
    let reached = timeline.reached_before(&get.key, get.at.invoked);
    if get.is_recent && index < reached {
        found.push(format!("{}: read {seen:?}, although {} was known before", get.key, states[reached].revision));
    }
    if states[index].invoked > get.at.returned {
        found.push(format!("{}: read {seen:?} before it was written", get.key));
    }
}
