//! A watch delivers each change once, in the order of revisions, and only changes within its scope.

use super::Timeline;
use super::history::{Delivery, History, Revision, Scope, Session, Start};

pub fn check(history: &History, _timeline: &Timeline, found: &mut Vec<String>) {
    for stream in &history.streams {
        for session in &stream.sessions {
            check_session(&stream.scope, session, found);
        }
    }
}

fn check_session(scope: &Scope, session: &Session, found: &mut Vec<String>) {
    let (mut last, mut is_initial): (Revision, bool) = match session.start {
        Start::After { revision, .. } => (revision, false),
        // Initial events come in key order.
        Start::InitialEvents => (0, true),
    };
    for delivery in &session.deliveries {
        match delivery {
            Delivery::Event { key, .. } if !scope.holds(key) => {
                found.push(format!("a watch of {scope:?} delivered {key}, which is out of scope"));
            }
            Delivery::Event { key, seen, .. } if !is_initial => {
                if seen.revision <= last {
                    found.push(format!("a watch delivered {key} at {} after {last}", seen.revision));
                }
                last = last.max(seen.revision);
            }
            Delivery::Bookmark { revision, ends_initial: true } => (last, is_initial) = (*revision, false),
            _ => {}
        }
    }
}
