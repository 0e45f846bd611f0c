//! A write with an expectation replaced exactly the state that it expected, and no write replaced another one.

use std::collections::HashMap;

use super::Timeline;
use super::history::{History, Intent, Write, WriteOutcome};
use super::timeline::followed;

pub fn check(history: &History, timeline: &Timeline, found: &mut Vec<String>) {
    let mut made = HashMap::new();
    for write in &history.writes {
        if let WriteOutcome::Put(seen) = &write.outcome
            && let Some(other) = made.insert((&write.key, seen.revision), write)
        {
            found.push(format!("{} at {}: both {other:?} and {write:?} were acknowledged", write.key, seen.revision));
        }
        let index = match &write.outcome {
            WriteOutcome::Put(seen) => timeline.index_of(&write.key, seen.revision),
            WriteOutcome::Deleted { uid } => timeline.deletion_of(&write.key, uid),
            _ => continue,
        };
        // `durability` reports a deletion that nobody saw.
        if let Some(index) = index {
            compare(write, timeline, index, found);
        }
    }
    for (key, states) in timeline.keys() {
        for two in states.windows(2) {
            let (before, after) = (&two[0], &two[1]);
            let is_same = before.object.is_none() || before.uid == after.uid;
            if !is_same || before.object.is_none() && (after.object.is_none() || after.uid == before.uid) {
                found.push(format!("{key}: {before:?} cannot become {after:?}"));
            }
        }
    }
}

fn compare(write: &Write, timeline: &Timeline, index: usize, found: &mut Vec<String>) {
    let states = timeline.states(&write.key);
    let Some(before) = index.checked_sub(1).map(|index| &states[index]) else { return };
    let is_expected = match &write.intent {
        Intent::Create { .. } => before.object.is_none(),
        Intent::Update { expected, .. } => before.object.is_some() && before.revision == *expected,
        Intent::Delete { expected: Some(expected) } => before.object.is_some() && followed(&states[..index], *expected),
        Intent::Delete { expected: None } => before.object.is_some(),
    };
    if !is_expected {
        let revision = states[index].revision;
        found.push(format!("{}: {:?} took effect at {revision}, upon {before:?}", write.key, write.intent));
    }
}
