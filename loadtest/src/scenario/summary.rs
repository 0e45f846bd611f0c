//! A result as text for a terminal.

use std::fmt::Write as _;

use super::compare::server_cpu_seconds;
use super::recovery::recoveries;
use super::result::{Percentiles, RunResult, Since, histogram};
use crate::report::span;

/// The harness is late if it sent one in a hundred requests more than this many microseconds after it was due.
const LATE_MICROS: u64 = 20_000;

/// Returns a warning if the harness itself was too slow.
pub fn lateness(result: &RunResult) -> Option<String> {
    let lag = Percentiles::of(&histogram(&result.lag));
    (lag.p99 > LATE_MICROS).then(|| {
        let [p99, max] = [lag.p99, lag.max].map(span);
        format!(
            "the harness sent requests late (p99 {p99}, max {max}): the figures may reflect its own processor; divide \
             the scenario among processes with --part"
        )
    })
}

/// Returns the verdict in a few words.
pub fn verdict(result: &RunResult) -> String {
    let (errors, broken) = (result.errors_total(), result.checks.violations.total());
    match (errors, broken, result.gave_up) {
        (0, 0, false) => "clean: no errors, no promises broken".into(),
        (_, _, true) => format!("aborted: {errors} errors, {broken} promises broken"),
        _ => format!("{errors} errors, {broken} promises broken"),
    }
}

/// Returns the most important figures as text.
pub fn text(result: &RunResult) -> String {
    let mut text = format!("{} against {}: {}\n", result.scenario, result.server, verdict(result));
    let width = result.operations.keys().map(String::len).max().unwrap_or(0).max(9);
    let heads = ["count", "per s", "p50", "p90", "p99", "p99.9", "max"];
    let _ = write!(text, "{:<width$}", "operation");
    for head in heads {
        let _ = write!(text, "  {head:>9}");
    }
    text.push_str("  errors\n");
    for (name, operation) in &result.operations {
        if operation.count == 0 && operation.errors.is_empty() {
            continue;
        }
        let times = &operation.latency;
        let rate = operation.count as f64 / result.counted_seconds();
        let _ = write!(text, "{name:<width$}  {:>9}  {rate:>9.1}", operation.count);
        for micros in [times.p50, times.p90, times.p99, times.p999, times.max] {
            let _ = write!(text, "  {:>9}", span(micros));
        }
        let errors: Vec<String> = operation.errors.iter().map(|(sort, count)| format!("{count} x {sort}")).collect();
        let closed = if operation.since == Since::Sent { "  (closed loop)" } else { "" };
        let _ = writeln!(text, "  {}{closed}", errors.join(", "));
        for example in operation.examples.iter().take(2) {
            let _ = writeln!(text, "    {example}");
        }
    }
    text + &checks(result)
}

fn checks(result: &RunResult) -> String {
    let (checks, mut text) = (&result.checks, String::new());
    let _ = writeln!(
        text,
        "checked {} events of {} watches, {} answers; {} watches compared with lists; {} resumed, {} listed again",
        checks.events, checks.watches, checks.answers, checks.compared, checks.resumed, checks.expired
    );
    for (broken, count) in &checks.violations.counts {
        let _ = writeln!(text, "BROKEN {count} x {broken:?}");
    }
    for example in &checks.violations.examples {
        let _ = writeln!(text, "    {example}");
    }
    for recovery in recoveries(result) {
        let before = span(recovery.before as u64);
        let _ = match recovery.seconds {
            Some(seconds) => {
                writeln!(text, "{}: p99 returned to about {before} {seconds:.1} s after the burst", recovery.operation)
            }
            None => writeln!(text, "{}: p99 did not return to about {before}", recovery.operation),
        };
    }
    if let (Some(cpu), Some(last)) = (server_cpu_seconds(result), result.samples.last()) {
        let memory = result.samples.iter().filter_map(|sample| sample.server_resident_bytes).max().unwrap_or(0);
        let own = result.samples.iter().map(|sample| sample.own_resident_bytes).max().unwrap_or(0);
        let _ = writeln!(
            text,
            "server: {cpu:.1} CPU seconds, {:.0} MB at most; harness: {:.1} CPU seconds, {:.0} MB at most",
            memory as f64 / 1e6,
            last.own_cpu_seconds,
            own as f64 / 1e6
        );
    }
    if let Some(warning) = lateness(result) {
        let _ = writeln!(text, "WARNING: {warning}");
    }
    text
}
