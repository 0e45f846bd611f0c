//! Measures how long after a burst the server's latency returns to its earlier value.

use super::result::{Operation, PhaseResult, RunResult};

/// A phase is a burst if its load is at least this many times the load of the first phase.
const BURST: f64 = 1.5;

/// Latency has recovered when its 99th percentile is at most this many times its value before the burst.
const BACK: f64 = 1.5;

/// The number of consecutive windows for which that must hold.
const WINDOWS: usize = 3;

/// The recovery of one operation after a burst.
#[derive(Debug, Clone, PartialEq)]
pub struct Recovery {
    /// The name of the operation.
    pub operation: String,
    /// The 99th percentile before the burst, in microseconds.
    pub before: f64,
    /// Seconds from the end of the burst until latency had recovered. `None` if it did not.
    pub seconds: Option<f64>,
}

/// Returns the recovery of each operation, if the run has a burst and a phase after it.
pub fn recoveries(result: &RunResult) -> Vec<Recovery> {
    let counted: Vec<&PhaseResult> = result.phases.iter().filter(|phase| !phase.warmup).collect();
    let peak = |phase: &PhaseResult| phase.load[0].max(phase.load[1]);
    let Some(first) = counted.first() else { return Vec::new() };
    let Some(burst) = counted.iter().rfind(|phase| peak(phase) >= BURST * peak(first) && peak(first) > 0.0) else {
        return Vec::new();
    };
    if burst.to >= result.seconds {
        return Vec::new();
    }
    let one = |(name, operation): (&String, &Operation)| {
        let before = quantile(operation, result.window_seconds, first.from, first.to)?;
        let windows = &operation.windows;
        let start = (burst.to / result.window_seconds).ceil() as usize;
        let is_back = |window: &super::result::Window| window.quantile(0.99).is_none_or(|p99| p99 <= BACK * before);
        let back = windows.get(start..)?.windows(WINDOWS).position(|three| three.iter().all(is_back));
        let seconds = back.map(|windows| (start + windows) as f64 * result.window_seconds - burst.to);
        Some(Recovery { operation: name.clone(), before, seconds })
    };
    result.operations.iter().filter_map(one).collect()
}

/// Returns the 99th percentile of all operations that were due between two times.
fn quantile(operation: &Operation, width: f64, from: f64, to: f64) -> Option<f64> {
    let mut sum = super::result::Window::default();
    let (from, to) = ((from / width).ceil() as usize, (to / width).floor() as usize);
    operation.windows.get(from..to.max(from).min(operation.windows.len()))?.iter().for_each(|window| sum.merge(window));
    sum.quantile(0.99)
}

#[cfg(test)]
mod tests {
    use super::super::merge::tests::empty;
    use super::super::result::Window;
    use super::*;

    #[test]
    fn latency_has_recovered_when_it_stays_low() {
        let mut result = empty();
        (result.seconds, result.window_seconds) = (20.0, 1.0);
        let phase = |from: f64, to: f64, load: f64| PhaseResult {
            name: String::new(),
            from,
            to,
            load: [load; 2],
            warmup: false,
        };
        result.phases = vec![phase(0.0, 5.0, 1.0), phase(5.0, 10.0, 3.0), phase(10.0, 20.0, 1.0)];
        let operation = result.operations.get_mut("get").unwrap();
        operation.windows = (0..20)
            .map(|second| {
                let mut window = Window::default();
                // Latency recovers at 12, rises again at 13, and recovers for good at 14.
                let is_slow = (5..12).contains(&second) || second == 13;
                (0..100).for_each(|_| window.record(if is_slow { 50_000 } else { 1_000 }));
                window
            })
            .collect();
        let found = recoveries(&result);
        assert_eq!(found[0].seconds, Some(4.0), "{found:?}");
        result.phases.pop();
        result.seconds = 10.0;
        assert_eq!(recoveries(&result), []);
    }
}
