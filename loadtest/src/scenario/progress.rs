//! The progress that a running scenario writes to standard error.

use std::cell::Cell;
use std::io::{IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use super::result::{PhaseResult, Sample};
use super::run::Run;
use crate::report::span;

/// How often a line is written, if it cannot replace the previous one.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// Writes progress.
pub struct Progress {
    is_on: bool,
    is_terminal: bool,
    shown_at: Cell<Option<Instant>>,
}

impl Progress {
    /// Writes to standard error, or nowhere if `is_on` is not set.
    pub fn new(is_on: bool) -> Self {
        Self { is_on, is_terminal: std::io::stderr().is_terminal(), shown_at: Cell::new(None) }
    }

    /// Writes one message.
    pub fn say(&self, what: &str) {
        if self.is_on {
            let start = if self.is_terminal { "\r\x1b[K" } else { "" };
            eprintln!("{start}{what}");
        }
    }

    /// Writes the current figures of the run.
    pub fn show(&self, run: &Run, phases: &[PhaseResult], samples: &[Sample]) {
        let is_due = self.shown_at.get().is_none_or(|last| last.elapsed() >= LINE_EVERY);
        if !self.is_on || !(self.is_terminal || is_due) {
            return;
        }
        let since = self.shown_at.replace(Some(Instant::now())).unwrap_or_else(|| run.began());
        let line = line(run, phases, samples, since.elapsed());
        if self.is_terminal {
            eprint!("\r\x1b[K{line}");
            let _ = std::io::stderr().flush();
        } else {
            eprintln!("{line}");
        }
    }
}

fn line(run: &Run, phases: &[PhaseResult], samples: &[Sample], since: Duration) -> String {
    let (at, (successes, failures, p99)) = (run.seconds(), run.recorder.borrow_mut().recent());
    let all = run.load.seconds();
    let phase =
        if at < all { phases.get(run.load.phase(at)).map_or("", |phase| &phase.name) } else { "waiting for answers" };
    let rate = successes as f64 / since.as_secs_f64().max(0.001);
    let mut line = format!("{at:4.0} of {all:.0} s  {phase} x{:.2}  {rate:.0}/s  p99 {}", run.load.at(at), span(p99));
    line += &format!("  {failures} errors  {} broken", run.checked.violations.borrow().total());
    line += &format!("  {} watches", run.watches.get());
    if let [.., before, last] = samples {
        let seconds = (last.at - before.at).max(0.001);
        let percent = |after: f64, before: f64| (after - before) / seconds * 100.0;
        if let (Some(after), Some(before)) = (last.server_cpu_seconds, before.server_cpu_seconds) {
            line += &format!("  server {:.0}%", percent(after, before));
        }
        if let Some(bytes) = last.server_resident_bytes {
            line += &format!(" {:.0} MB", bytes as f64 / 1e6);
        }
        line += &format!("  harness {:.0}%", percent(last.own_cpu_seconds, before.own_cpu_seconds));
        line += &format!(" {:.0} MB", last.own_resident_bytes as f64 / 1e6);
    }
    line
}
