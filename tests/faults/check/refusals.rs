//! A 404 or 409 is true of some state that the object may have had while the operation was in progress.

use super::Timeline;
use super::history::{History, Intent, Write, WriteOutcome};
use super::timeline::State;

pub fn check(history: &History, timeline: &Timeline, found: &mut Vec<String>) {
    for write in &history.writes {
        if let WriteOutcome::Unexpected(answer) = &write.outcome {
            found.push(format!("{}: {:?} was answered {answer}", write.key, write.intent));
        }
        let mut states = timeline.possible(&write.key, write.at.invoked, write.at.returned);
        if is_refusal(&write.outcome) && !states.any(|(_, state)| is_justified(write, state)) {
            let reached = timeline.reached_before(&write.key, write.at.invoked);
            let states = &timeline.states(&write.key)[reached..];
            let states = &states[..states.len().min(3)];
            found.push(format!("{}: {:?} was answered {:?}, of {states:?}", write.key, write.intent, write.outcome));
        }
    }
    for get in history.gets.iter().filter(|get| get.found.is_none() && get.is_recent) {
        let mut states = timeline.possible(&get.key, get.at.invoked, get.at.returned);
        if !states.any(|(_, state)| state.object.is_none()) {
            found.push(format!("{}: not found at {:?}, although it existed all the time", get.key, get.at));
        }
    }
}

fn is_refusal(outcome: &WriteOutcome) -> bool {
    matches!(outcome, WriteOutcome::AlreadyExists | WriteOutcome::Conflict | WriteOutcome::NotFound)
}

fn is_justified(write: &Write, state: &State) -> bool {
    match (&write.outcome, &write.intent) {
        (WriteOutcome::AlreadyExists, Intent::Create { .. }) => state.object.is_some(),
        (WriteOutcome::NotFound, Intent::Delete { .. }) => state.object.is_none(),
        (WriteOutcome::NotFound, Intent::Update { .. }) => state.object.is_none() && !write.key.table.is_created_by_put,
        (WriteOutcome::Conflict, Intent::Update { expected, .. }) => match state.object {
            Some(_) => state.revision != *expected,
            None => write.key.table.is_created_by_put,
        },
        (WriteOutcome::Conflict, Intent::Delete { expected: Some(expected) }) => {
            state.object.is_some() && state.revision != *expected
        }
        _ => false,
    }
}
