//! Whoever asks after an answer was given sees what it said, or something later.
//!
//! By key: a most recent read shows no state older than one that was known before the read began, and none that
//! nobody had asked for when it was answered; a write takes its place after everything known before it was sent.

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
    // A 404 is judged with the refusals.
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
