//! The checker: decides whether Kubernetes' promises allow a history.
//!
//! Revisions state the order of changes, so the checker need not search for one: it assembles the [`Timeline`] from
//! everything that any client saw, and compares the history with it. Each invariant has a file of its own and is a pure
//! function.

mod bookmarks;
mod compare_and_set;
mod durability;
mod fresh_lists;
mod known;
mod real_time;
mod refusals;
mod resumption;
mod snapshots;
mod timeline;
mod values;
mod watch_complete;
mod watch_order;
mod write_order;

#[cfg(test)]
mod story;
#[cfg(test)]
mod violations;

use std::fmt;

pub use timeline::Timeline;

use super::history::{self, History};

/// A promise that was broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The invariant's name, which is its file's.
    pub invariant: &'static str,
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}: {}", self.invariant, self.what)
    }
}

/// Adds a text for each place where the history breaks one promise.
type Invariant = fn(&History, &Timeline, &mut Vec<String>);

const INVARIANTS: [(&str, Invariant); 12] = [
    ("values", values::check),
    ("compare_and_set", compare_and_set::check),
    ("durability", durability::check),
    ("real_time", real_time::check),
    ("write_order", write_order::check),
    ("refusals", refusals::check),
    ("snapshots", snapshots::check),
    ("fresh_lists", fresh_lists::check),
    ("watch_order", watch_order::check),
    ("watch_complete", watch_complete::check),
    ("bookmarks", bookmarks::check),
    ("resumption", resumption::check),
];

/// Returns every violation in a history.
pub fn check(history: &History) -> Vec<Violation> {
    let timeline = Timeline::of(history);
    let mut violations = Vec::new();
    for (invariant, check) in INVARIANTS {
        let mut found = Vec::new();
        check(history, &timeline, &mut found);
        violations.extend(found.into_iter().map(|what| Violation { invariant, what }));
    }
    violations
}
