//! The facts by which a user finds a slow request in other logs.

use std::time::Duration;

use crate::gateway::head::Head;
use crate::limits;
use crate::metrics::route::Route;
use crate::metrics::slowest::SlowRequest;
use crate::wall_clock;

/// The facts by which a user finds a slow request in other logs.
#[derive(Default)]
pub(super) struct Origin {
    path: String,
    user_agent: String,
}

impl Origin {
    pub(super) fn of(head: &Head<'_>) -> Self {
        Self {
            path: head.path.chars().take(limits::SLOW_REQUEST_PATH_CHARACTERS).collect(),
            user_agent: head.user_agent().chars().take(limits::SLOW_REQUEST_USER_AGENT_CHARACTERS).collect(),
        }
    }

    pub(super) fn slow(self, route: &Route, took: Duration, code: u16, bytes: u64) -> SlowRequest {
        let (verb, resource) = route.named();
        SlowRequest {
            at_seconds: wall_clock::unix_seconds(),
            seconds: took.as_secs_f64(),
            verb: verb.to_owned(),
            resource,
            path: self.path,
            code,
            bytes,
            user_agent: self.user_agent,
        }
    }
}
