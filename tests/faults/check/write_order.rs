//! A write gets a larger revision than every revision that a client had seen before the write was sent, of any table.
//!
//! A member answers some reads from its own state, without asking the leader. Such an answer counts for its own table
//! only: an event or a list is complete up to its revision, so no later write to that table may be ordered before it.

use super::Timeline;
use super::history::{History, Micros, Revision};
use super::known::{self, Known};

pub fn check(history: &History, timeline: &Timeline, found: &mut Vec<String>) {
    let (everywhere, of_tables) = (everywhere(history, timeline), known::of_tables(history, timeline));
    for write in &history.writes {
        let Some(own) = known::acknowledged(write, timeline) else { continue };
        let of_table = of_tables[&write.key.table].before(write.at.invoked);
        let highest = everywhere.before(write.at.invoked).max(of_table);
        if own <= highest {
            let (key, intent, at) = (&write.key, &write.intent, write.at);
            found.push(format!("{key}: {intent:?} at {at:?} got {own}, although {highest} was known before"));
        }
    }
}

/// Returns the revisions of all tables that acknowledgements and most recent reads showed.
fn everywhere(history: &History, timeline: &Timeline) -> Known {
    let writes = history.writes.iter().filter_map(|write| {
        let revision = known::acknowledged(write, timeline)?;
        Some((write.at.returned, revision))
    });
    let gets = history.gets.iter().filter(|get| get.is_recent).filter_map(|get| {
        let found = get.found.as_ref()?;
        Some((get.at.returned, found.revision))
    });
    let lists = history.lists.iter().filter(|list| list.is_recent).filter_map(|list| {
        let revision = list.revisions.first()?;
        Some((list.at.returned, *revision))
    });
    let shown: Vec<(Micros, Revision)> = writes.chain(gets).chain(lists).collect();
    Known::of(shown)
}
