//! Within the history window, a watch can be resumed on any member after the last revision that it received, and a list
//! can be continued after the last page that it received.

use super::Timeline;
use super::history::{End, History, Start};

pub fn check(history: &History, _timeline: &Timeline, found: &mut Vec<String>) {
    for page in &history.refused_pages {
        let age = page.invoked.saturating_sub(page.delivered);
        if age < history.window {
            found.push(format!("a page of {:?} at {} was answered 410 after {age} us", page.scope, page.revision));
        }
    }
    for stream in &history.streams {
        for session in stream.sessions.iter().filter(|session| session.end == End::Expired) {
            match session.start {
                Start::After { revision, delivered } => {
                    let age = session.invoked.saturating_sub(delivered);
                    if age < history.window || !session.deliveries.is_empty() {
                        found.push(format!(
                            "a watch of {:?} from {revision} was answered 410 by member {} after {age} us",
                            stream.scope, session.member
                        ));
                    }
                }
                Start::InitialEvents => {
                    found.push(format!("a watch of {:?} with initial events was answered 410", stream.scope));
                }
            }
        }
    }
}
