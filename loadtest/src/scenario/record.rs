//! Records the times and failures of operations.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use super::result::{Operation, Percentiles, Since, Window, pairs};
use crate::limits;
use crate::operation::micros;
use crate::report;

/// A kind of operation, as an index into the list of all kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kind(usize);

struct Recorded {
    name: String,
    since: Since,
    latency: Histogram<u64>,
    service: Histogram<u64>,
    errors: BTreeMap<String, u64>,
    examples: Vec<String>,
    windows: Vec<Window>,
}

/// When an operation was due, sent and done.
#[derive(Debug, Clone, Copy)]
pub struct Times {
    /// When the operation was due.
    pub due: Instant,
    /// When the request was sent.
    pub sent: Instant,
    /// When the answer was complete.
    pub done: Instant,
}

/// The records of all operations.
pub struct Recorder {
    begin: Option<Instant>,
    window: Duration,
    windows: usize,
    /// The periods that totals leave out.
    warmups: Vec<(Duration, Duration)>,
    kinds: Vec<Recorded>,
    /// How late the requests of open loops were sent.
    lag: Histogram<u64>,
    /// Successes, failures and latencies since the last call of [`Recorder::recent`].
    recent: (u64, u64, Histogram<u64>),
}

impl Recorder {
    /// Makes a recorder for a run of this many seconds, whose totals leave `warmups` out.
    pub fn new(seconds: f64, warmups: Vec<(Duration, Duration)>) -> Self {
        let window = width(seconds);
        Self {
            begin: None,
            window: Duration::from_secs_f64(window),
            windows: (seconds / window).ceil().max(1.0) as usize,
            warmups,
            kinds: Vec::new(),
            lag: report::histogram(),
            recent: (0, 0, report::histogram()),
        }
    }

    /// Returns the kind with this name, and adds it if it is new.
    pub fn kind(&mut self, name: &str, since: Since) -> Kind {
        if let Some(at) = self.kinds.iter().position(|kind| kind.name == name) {
            return Kind(at);
        }
        self.kinds.push(Recorded {
            name: name.into(),
            since,
            latency: report::histogram(),
            service: report::histogram(),
            errors: BTreeMap::new(),
            examples: Vec::new(),
            windows: Vec::new(),
        });
        Kind(self.kinds.len() - 1)
    }

    /// Sets the start of the first phase.
    pub fn begin(&mut self, at: Instant) {
        self.begin = Some(at);
    }

    fn offset(&self, due: Instant) -> Duration {
        self.begin.map_or(Duration::ZERO, |begin| due.saturating_duration_since(begin))
    }

    /// Returns the index of the window for operations that were due at a time. The last window includes everything
    /// later.
    fn window_of(&self, due: Instant) -> usize {
        let at = self.offset(due).as_secs_f64() / self.window.as_secs_f64();
        (at as usize).min(self.windows - 1)
    }

    /// Returns whether totals include operations that were due at a time. They include those of the setup.
    fn counts(&self, due: Instant) -> bool {
        let at = self.offset(due);
        self.begin.is_none() || !self.warmups.iter().any(|(from, to)| (*from..*to).contains(&at))
    }

    /// Records a success.
    pub fn success(&mut self, kind: Kind, times: Times) {
        let (window, counts) = (self.window_of(times.due), self.counts(times.due));
        let recorded = &mut self.kinds[kind.0];
        let service = micros(times.done.saturating_duration_since(times.sent));
        let latency = match recorded.since {
            Since::Due => micros(times.done.saturating_duration_since(times.due)),
            Since::Sent => service,
        };
        if counts {
            recorded.latency.saturating_record(latency);
            recorded.service.saturating_record(service);
        }
        if self.begin.is_some() {
            at(&mut recorded.windows, window).record(latency);
        }
        self.recent.0 += 1;
        self.recent.2.saturating_record(latency);
    }

    /// Records a failure. `sort` groups failures, `what` describes this one.
    pub fn failure(&mut self, kind: Kind, due: Instant, sort: &str, what: impl FnOnce() -> String) {
        let window = self.window_of(due);
        let recorded = &mut self.kinds[kind.0];
        if self.begin.is_some() {
            at(&mut recorded.windows, window).errors += 1;
        }
        let count = recorded.errors.entry(sort.into()).or_default();
        *count += 1;
        if *count <= limits::EXAMPLES_PER_KIND {
            recorded.examples.push(what());
        }
        self.recent.1 += 1;
    }

    /// Records how late a request of an open loop was sent.
    pub fn lag(&mut self, lag: Duration) {
        self.lag.saturating_record(micros(lag));
    }

    /// Returns successes, failures and the 99th percentile of latency since the last call.
    pub fn recent(&mut self) -> (u64, u64, u64) {
        let (successes, failures) = (self.recent.0, self.recent.1);
        let p99 = self.recent.2.value_at_quantile(0.99);
        self.recent.0 = 0;
        self.recent.1 = 0;
        self.recent.2.reset();
        (successes, failures, p99)
    }

    /// Returns the length of a window, in seconds.
    pub fn window_seconds(&self) -> f64 {
        self.window.as_secs_f64()
    }

    /// Returns all operations by name.
    pub fn operations(&self) -> BTreeMap<String, Operation> {
        self.kinds.iter().map(|kind| (kind.name.clone(), kind.result(self.windows))).collect()
    }

    /// Returns how late the harness sent the requests of open loops, as pairs of microseconds and count.
    pub fn lag_pairs(&self) -> Vec<(u64, u64)> {
        pairs(&self.lag)
    }
}

fn at(windows: &mut Vec<Window>, number: usize) -> &mut Window {
    if windows.len() <= number {
        windows.resize(number + 1, Window::default());
    }
    &mut windows[number]
}

/// Returns the length of windows, such that a run has about a hundred.
fn width(seconds: f64) -> f64 {
    const WIDTHS: [f64; 12] = [0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0, 600.0, 1_800.0];
    WIDTHS.into_iter().find(|width| seconds / width <= 150.0).unwrap_or(3_600.0)
}

impl Recorded {
    fn result(&self, windows: usize) -> Operation {
        let mut all = self.windows.clone();
        all.resize(windows.max(all.len()), Window::default());
        Operation {
            since: self.since,
            count: self.latency.len(),
            errors: self.errors.clone(),
            examples: self.examples.clone(),
            latency: Percentiles::of(&self.latency),
            service: Percentiles::of(&self.service),
            histogram: pairs(&self.latency),
            service_histogram: pairs(&self.service),
            windows: all,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latency_counts_from_when_a_request_was_due() {
        let second = Duration::from_secs(1);
        let mut recorder = Recorder::new(10.0, vec![(Duration::ZERO, second)]);
        let (open, closed) = (recorder.kind("open", Since::Due), recorder.kind("closed", Since::Sent));
        let begin = Instant::now();
        recorder.begin(begin);
        // A stall of two seconds delays every request that was due during it, not only one.
        for late in [2_000, 1_500, 1_000, 500] {
            let due = begin + 5 * second - Duration::from_millis(late);
            let times = Times { due, sent: begin + 5 * second, done: begin + 5 * second + Duration::from_millis(1) };
            recorder.success(open, times);
            recorder.success(closed, times);
        }
        let warm = Times { due: begin, sent: begin, done: begin + second };
        recorder.success(open, warm);
        recorder.failure(open, begin + 9 * second, "HTTP 500", || "failed".into());
        let operations = recorder.operations();
        assert_eq!((operations["open"].count, operations["closed"].count), (4, 4));
        assert!((2_000_000..2_010_000).contains(&operations["open"].latency.max));
        assert!(operations["closed"].latency.max < 1_100 && operations["open"].service.max < 1_100);
        let windows = &operations["open"].windows;
        assert_eq!(windows.iter().map(|window| window.count).sum::<u64>(), 5);
        assert_eq!(windows[windows.len() - 10].errors, 1);
        assert_eq!(operations["open"].errors["HTTP 500"], 1);
        assert_eq!(recorder.recent().1, 1);
        assert_eq!(recorder.recent(), (0, 0, 0));
    }
}
