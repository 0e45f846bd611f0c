//! Asking a member for its overview.

use std::io;
use std::io::{IsTerminal as _, Write as _};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::ValueEnum;
use serde::Serialize;

use super::view::{OVERVIEW_PATH, Overview};
use crate::administration::{Client, ClientError, KubeconfigError};
use crate::wall_clock;

/// How something is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Output {
    /// Tables and sentences, for people.
    Text,
    /// JSON, for programs: one line a look with --watch.
    Json,
}

/// Why a command about the state of a member failed.
#[derive(Debug, thiserror::Error)]
pub enum StatusError {
    /// It is not known whom to ask.
    #[error(transparent)]
    Kubeconfig(#[from] KubeconfigError),
    /// The server does not tell.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// What is to be told cannot be written.
    #[error("cannot write to standard output")]
    Output(#[from] io::Error),
}

/// What a member told, and what whoever asked found of its clock.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Looked {
    /// What it told.
    #[serde(flatten)]
    pub overview: Overview,
    /// How far its clock is ahead of this machine's at least, in seconds; negative when it is behind.
    pub clock_offset_seconds: f64,
}

impl Looked {
    /// Asks a member.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub(super) fn at(client: &Client) -> Result<Self, ClientError> {
        let before = seconds();
        let overview = client.read(OVERVIEW_PATH)?;
        Ok(Self::between(overview, before, seconds()))
    }

    /// What was told between two times of this machine's clock.
    pub(super) fn between(overview: Overview, before: f64, after: f64) -> Self {
        // Its clock was read at some time in between, which cannot be told apart from an offset.
        let clock_offset_seconds = overview.clock_seconds - overview.clock_seconds.clamp(before, after.max(before));
        Self { overview, clock_offset_seconds }
    }
}

/// Seconds since 1970 by this machine's clock.
fn seconds() -> f64 {
    wall_clock::now().duration_since(UNIX_EPOCH).map_or(0.0, |since: Duration| since.as_secs_f64())
}

/// The same as a number to compare ends of certificates with.
pub(super) fn unix_seconds(now: SystemTime) -> i64 {
    now.duration_since(UNIX_EPOCH).map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(i64::MAX))
}

/// Writes to standard output; `false` when nobody reads it any more.
///
/// # Errors
/// When it cannot be written for another reason.
pub(super) fn written(text: &str) -> io::Result<bool> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        done => done.map(|()| true),
    }
}

/// Text that takes the place of what a terminal shows.
pub(super) fn instead(text: String) -> String {
    if io::stdout().is_terminal() { format!("\x1b[H\x1b[2J{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::super::example;
    use super::*;

    #[test]
    fn a_clock_is_off_by_what_asking_does_not_explain() {
        let offset = |told: f64| {
            let overview = Overview { clock_seconds: told, ..example() };
            Looked::between(overview, 100.0, 101.0).clock_offset_seconds
        };
        assert_eq!((offset(100.5), offset(98.0), offset(104.0)), (0.0, -2.0, 3.0));
        let jumped = Looked::between(Overview { clock_seconds: 5.0, ..example() }, 101.0, 100.0);
        assert_eq!(jumped.clock_offset_seconds, -96.0);
    }
}
