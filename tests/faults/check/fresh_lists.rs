//! A most recent list is at least as new as every revision that a client had seen before the list was requested.

use super::history::History;
use super::{Timeline, known};

pub fn check(history: &History, timeline: &Timeline, found: &mut Vec<String>) {
    let known = known::of_tables(history, timeline);
    for list in history.lists.iter().filter(|list| list.is_recent) {
        let highest = known[&list.scope.table].before(list.at.invoked);
        if list.revisions.first().is_some_and(|revision| *revision < highest) {
            let (scope, at, revisions) = (&list.scope, list.at, &list.revisions);
            found.push(format!("a list of {scope:?} at {at:?} is of {revisions:?}, {highest} was known before"));
        }
    }
}
