//! Observes a member: its overview, and the offset of its clock from this machine's. Commands print an observation.

use std::io;
use std::io::IsTerminal as _;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::ValueEnum;
use serde::Serialize;

use super::view::{OVERVIEW_PATH, Overview};
use crate::administration::{Client, ClientError};
use crate::pki::KubeconfigError;
use crate::wall_clock;

/// The form of the output of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Output {
    /// Tables and sentences, for people.
    Text,
    /// JSON, for programs; with --watch one line for each observation.
    Json,
}

/// The reasons why a command about the state of a member failed.
#[derive(Debug, thiserror::Error)]
pub enum StatusError {
    /// The kubeconfig cannot be used.
    #[error(transparent)]
    Kubeconfig(#[from] KubeconfigError),
    /// The server does not answer as expected.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// Standard output cannot be written to.
    #[error("cannot write to standard output")]
    Output(#[from] io::Error),
}

/// The overview of a member, and the offset of its clock from this machine's.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Observation {
    /// The overview.
    #[serde(flatten)]
    pub overview: Overview,
    /// The least time by which its clock is ahead of this machine's, in seconds; negative when it is behind.
    pub clock_offset_seconds: f64,
}

impl Observation {
    /// Requests the overview of a member.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub(super) fn of(client: &Client) -> Result<Self, ClientError> {
        let before = wall_clock::unix_seconds();
        let overview = client.read(OVERVIEW_PATH)?;
        Ok(Self::between(overview, before, wall_clock::unix_seconds()))
    }

    /// Makes an observation of an overview that arrived between two times of this machine's clock.
    pub(super) fn between(overview: Overview, before: f64, after: f64) -> Self {
        // The member read its clock between the two times. Only a reading outside of them shows that its clock is off.
        let clock_offset_seconds = overview.clock_seconds - overview.clock_seconds.clamp(before, after.max(before));
        Self { overview, clock_offset_seconds }
    }
}

/// Returns the whole seconds since 1970, as certificates state their end.
pub(super) fn unix_seconds(now: SystemTime) -> i64 {
    now.duration_since(UNIX_EPOCH).map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(i64::MAX))
}

/// Prepends the codes that make a terminal clear its screen, if standard output is a terminal.
pub(super) fn replacing_screen(text: String) -> String {
    if io::stdout().is_terminal() { format!("\x1b[H\x1b[2J{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::super::example;
    use super::*;

    #[test]
    fn the_clock_offset_excludes_the_time_of_the_request() {
        let offset = |clock_seconds: f64| {
            let overview = Overview { clock_seconds, ..example() };
            Observation::between(overview, 100.0, 101.0).clock_offset_seconds
        };
        assert_eq!((offset(100.5), offset(98.0), offset(104.0)), (0.0, -2.0, 3.0));
        let jumped = Observation::between(Overview { clock_seconds: 5.0, ..example() }, 101.0, 100.0);
        assert_eq!(jumped.clock_offset_seconds, -96.0);
    }
}
