//! Each revision is one change that a client requested: a refused write never shows, and no change happens without a
//! write.

use super::Timeline;
use super::history::{History, WriteOutcome};

pub fn check(history: &History, timeline: &Timeline, found: &mut Vec<String>) {
    found.extend(timeline.contradictions().iter().cloned());
    for (key, states) in timeline.keys() {
        for state in states.iter().filter(|state| !state.has_origin) {
            found.push(format!(
                "{key} at {}: no write that may have happened made it {:?}",
                state.revision, state.object
            ));
        }
        let written = states.iter().filter(|state| !state.is_mark).filter_map(|state| state.object.as_ref());
        let mut values: Vec<_> = written.map(|seen| &seen.value).collect();
        let written = values.len();
        values.sort_unstable();
        values.dedup();
        if values.len() < written {
            found.push(format!("{key}: {} values were written twice", written - values.len()));
        }
    }
    for write in &history.writes {
        if let (Some(value), WriteOutcome::Put(seen)) = (write.intent.value(), &write.outcome)
            && seen.value != value
        {
            found.push(format!("{}: wrote {value}, was answered {seen:?}", write.key));
        }
    }
}
