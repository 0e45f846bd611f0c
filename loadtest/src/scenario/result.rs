//! The result of a run, stored as JSON with a version of its schema.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use super::check::Violations;
use crate::report;

/// The version of the schema. A result of another version is refused.
pub const SCHEMA: u32 = 1;

/// The number of histogram buckets for each factor of ten.
const BUCKETS_PER_DECADE: f64 = 20.0;

/// The reason why a result cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read or written.
    #[error("{0}: {1}")]
    File(String, #[source] std::io::Error),
    /// The file is not a result.
    #[error("{0} is not a result: {1}")]
    Json(String, #[source] serde_json::Error),
    /// The file has another version of the schema.
    #[error("{0} has version {1} of the schema; this harness reads version {SCHEMA}")]
    Schema(String, u32),
    /// The results are not parts of one run.
    #[error("the results do not belong together: {0}")]
    Apart(String),
}

/// Everything that is known about a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RunResult {
    /// The version of the schema.
    pub schema: u32,
    /// The name of the scenario.
    pub scenario: String,
    /// The scenario's description.
    pub about: String,
    /// The text of the scenario's file. Together with `changes`, it lets the run be repeated.
    pub definition: String,
    /// The options `--set`, `--scale` and `--seconds`.
    pub changes: Vec<String>,
    /// The seed of random choices.
    pub seed: u64,
    /// The number of this part and the number of parts. `[1, 1]` for a whole scenario.
    pub part: [u32; 2],
    /// When the first phase started, in microseconds of Unix time.
    pub started_micros: u64,
    /// The length of all phases, in seconds.
    pub seconds: f64,
    /// The length of a window, in seconds.
    pub window_seconds: f64,
    /// The server's version.
    pub server: String,
    /// The phases.
    pub phases: Vec<PhaseResult>,
    /// The operations by name.
    pub operations: BTreeMap<String, Operation>,
    /// How late the harness sent the requests of open loops, as pairs of microseconds and count.
    pub lag: Vec<(u64, u64)>,
    /// Samples of the processes, one for each window or each second, whichever is longer.
    pub samples: Vec<Sample>,
    /// The results of the checks.
    pub checks: Checks,
    /// Whether the run was aborted at its time limit.
    pub gave_up: bool,
}

/// A phase of a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PhaseResult {
    /// The name.
    pub name: String,
    /// The start in seconds.
    pub from: f64,
    /// The end in seconds.
    pub to: f64,
    /// The load at the start and at the end.
    pub load: [f64; 2],
    /// Whether totals leave it out.
    pub warmup: bool,
}

/// The time from which the latency of an operation is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Since {
    /// The time at which the operation was due, even if the harness sent it late (open loop).
    Due,
    /// The time at which the request was sent (closed loop).
    Sent,
}

/// The figures of one kind of operation.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Operation {
    /// The time from which the latency is measured.
    pub since: Since,
    /// The number of successes, without warmup.
    pub count: u64,
    /// The number of failures of each sort, with warmup.
    pub errors: BTreeMap<String, u64>,
    /// Descriptions of the first failures.
    pub examples: Vec<String>,
    /// The latency in microseconds.
    pub latency: Percentiles,
    /// The time from sending to the end of the answer, in microseconds. Equals `latency` in a closed loop.
    pub service: Percentiles,
    /// Latencies, as pairs of microseconds and count, with a precision of three digits.
    pub histogram: Vec<(u64, u64)>,
    /// Times from sending to the end of the answer, in the same form.
    pub service_histogram: Vec<(u64, u64)>,
    /// The figures of each window. An operation belongs to the window in which it was due. The setup is left out.
    pub windows: Vec<Window>,
}

/// Percentiles of a time in microseconds.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Percentiles {
    /// The mean.
    pub mean: f64,
    /// The median.
    pub p50: u64,
    /// The 90th percentile.
    pub p90: u64,
    /// The 99th percentile.
    pub p99: u64,
    /// The 99.9th percentile.
    pub p999: u64,
    /// The largest value.
    pub max: u64,
}

/// The operations that were due in one period.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Window {
    /// The number of successes.
    pub count: u64,
    /// The number of failures.
    pub errors: u64,
    /// The largest latency in microseconds.
    pub max: u64,
    /// Latencies, as pairs of bucket and count. Bucket b ends at 10^(b/20) microseconds.
    pub buckets: Vec<(u16, u32)>,
}

/// The CPU time and memory of the processes at one time.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Sample {
    /// Seconds since the start of the first phase.
    pub at: f64,
    /// CPU seconds of the server so far, if known.
    pub server_cpu_seconds: Option<f64>,
    /// Resident memory of the server in bytes, if known.
    pub server_resident_bytes: Option<u64>,
    /// CPU seconds of the harness so far.
    pub own_cpu_seconds: f64,
    /// Resident memory of the harness in bytes.
    pub own_resident_bytes: u64,
    /// The number of open watches.
    pub watches: u64,
}

/// The results of the checks.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Checks {
    /// The number of checked events.
    pub events: u64,
    /// The number of watches that were compared with a list at the end.
    pub compared: u64,
    /// The number of watches.
    pub watches: u64,
    /// The number of answers whose bodies or revisions were checked.
    pub answers: u64,
    /// How many times a watch had to list again, because the server's history did not reach back to its revision.
    pub expired: u64,
    /// How many times a watch was resumed after it or its connection had ended.
    pub resumed: u64,
    /// The violations.
    pub violations: Violations,
}

impl Percentiles {
    /// Returns the percentiles of a histogram.
    pub fn of(histogram: &Histogram<u64>) -> Self {
        let at = |quantile| histogram.value_at_quantile(quantile);
        Self {
            mean: (histogram.mean() * 10.0).round() / 10.0,
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
            max: histogram.max(),
        }
    }
}

/// Returns the values of a histogram as pairs of value and count.
pub fn pairs(histogram: &Histogram<u64>) -> Vec<(u64, u64)> {
    histogram.iter_recorded().map(|value| (value.value_iterated_to(), value.count_at_value())).collect()
}

/// Returns the histogram of pairs of value and count.
pub fn histogram(pairs: &[(u64, u64)]) -> Histogram<u64> {
    let mut histogram = report::histogram();
    for (value, count) in pairs {
        histogram.saturating_record_n(*value, *count);
    }
    histogram
}

impl Window {
    /// Returns the bucket of a latency in microseconds.
    pub fn bucket(micros: u64) -> u16 {
        ((micros.max(1) as f64).log10() * BUCKETS_PER_DECADE).ceil() as u16
    }

    /// Returns the end of a bucket, in microseconds.
    pub fn end(bucket: u16) -> f64 {
        10f64.powf(f64::from(bucket) / BUCKETS_PER_DECADE)
    }

    /// Counts a success with this latency.
    pub fn record(&mut self, micros: u64) {
        self.count += 1;
        self.max = self.max.max(micros);
        self.add(Self::bucket(micros), 1);
    }

    fn add(&mut self, bucket: u16, count: u32) {
        match self.buckets.binary_search_by_key(&bucket, |(bucket, _)| *bucket) {
            Ok(at) => self.buckets[at].1 += count,
            Err(at) => self.buckets.insert(at, (bucket, count)),
        }
    }

    /// Adds the figures of another window.
    pub fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.errors += other.errors;
        self.max = self.max.max(other.max);
        other.buckets.iter().for_each(|(bucket, count)| self.add(*bucket, *count));
    }

    /// Returns a percentile in microseconds. `None` if the window has no success.
    pub fn quantile(&self, quantile: f64) -> Option<f64> {
        let rank = (self.count as f64 * quantile).ceil().max(1.0) as u64;
        let mut below = 0;
        for (bucket, count) in &self.buckets {
            below += u64::from(*count);
            if below >= rank {
                return Some(Self::end(*bucket).min(self.max as f64));
            }
        }
        None
    }
}

impl Operation {
    /// Returns the number of all failures.
    pub fn errors_total(&self) -> u64 {
        self.errors.values().sum()
    }
}

impl RunResult {
    /// Reads a result from a file.
    ///
    /// # Errors
    /// Fails if the file cannot be read, or is no result of this version.
    pub fn read(path: &std::path::Path) -> Result<Self, Error> {
        let name = path.display().to_string();
        let bytes = std::fs::read(path).map_err(|error| Error::File(name.clone(), error))?;
        #[derive(Deserialize)]
        struct Version {
            schema: u32,
        }
        let version: Version = serde_json::from_slice(&bytes).map_err(|error| Error::Json(name.clone(), error))?;
        if version.schema != SCHEMA {
            return Err(Error::Schema(name, version.schema));
        }
        serde_json::from_slice(&bytes).map_err(|error| Error::Json(name, error))
    }

    /// Writes the result to a file.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn write(&self, path: &std::path::Path) -> Result<(), Error> {
        let name = path.display().to_string();
        let text = serde_json::to_vec(self).map_err(|error| Error::Json(name.clone(), error))?;
        std::fs::write(path, text).map_err(|error| Error::File(name, error))
    }

    /// Returns the number of failures of all operations.
    pub fn errors_total(&self) -> u64 {
        self.operations.values().map(Operation::errors_total).sum()
    }

    /// Returns whether nothing failed, no promise was broken, and the run was not aborted.
    pub fn is_clean(&self) -> bool {
        self.errors_total() == 0 && self.checks.violations.total() == 0 && !self.gave_up
    }

    /// Returns the length of all phases that count, in seconds.
    pub fn counted_seconds(&self) -> f64 {
        let counted = self.phases.iter().filter(|phase| !phase.warmup).map(|phase| phase.to - phase.from).sum::<f64>();
        if counted > 0.0 { counted } else { self.seconds }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn window_percentiles_are_exact_to_a_bucket() {
        let mut window = Window::default();
        (1..=1_000).for_each(|micros| window.record(micros * 10));
        for (quantile, micros) in [(0.5, 5_000.0), (0.99, 9_900.0), (1.0, 10_000.0)] {
            let found = window.quantile(quantile).unwrap();
            assert!((found / micros - 1.0f64).abs() < 0.13, "{quantile}: {found}");
        }
        assert_eq!(Window::default().quantile(0.5), None);
    }

    #[test]
    fn histograms_survive_storage() {
        let mut before = report::histogram();
        for micros in [1, 999, 1_500, 1_500, 77_000, 2_500_000] {
            before.record(micros).unwrap();
        }
        let after = histogram(&pairs(&before));
        for quantile in [0.1, 0.5, 0.9, 1.0] {
            let (before, after) = (before.value_at_quantile(quantile), after.value_at_quantile(quantile));
            assert!(before.abs_diff(after) * 500 <= before, "{quantile}: {before} {after}");
        }
    }
}
