//! A watch delivers no change at or below the revision of an earlier bookmark, and its bookmarks never go back.

use super::Timeline;
use super::history::{Delivery, History, Session, Start};

pub fn check(history: &History, _timeline: &Timeline, found: &mut Vec<String>) {
    for session in history.streams.iter().flat_map(|stream| &stream.sessions) {
        check_session(session, found);
    }
}

fn check_session(session: &Session, found: &mut Vec<String>) {
    let mut is_initial = matches!(session.start, Start::InitialEvents);
    let (mut promised, mut delivered) = match session.start {
        Start::After { revision, .. } => (0, revision),
        Start::InitialEvents => (0, 0),
    };
    for delivery in &session.deliveries {
        match delivery {
            Delivery::Event { key, seen, .. } => {
                if !is_initial && seen.revision <= promised {
                    found.push(format!("{key} at {} came after a bookmark of {promised}", seen.revision));
                }
                delivered = delivered.max(seen.revision);
            }
            Delivery::Bookmark { revision, ends_initial } => {
                if *revision < promised || *revision < delivered {
                    found.push(format!("a bookmark of {revision} came after {promised} and {delivered}"));
                }
                promised = promised.max(*revision);
                is_initial &= !ends_initial;
            }
        }
    }
}
