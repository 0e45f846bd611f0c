//! What a run found, as it is kept: JSON of a schema with a version.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use super::check::Violations;
use crate::report;

/// The version of the schema. Readers refuse any other.
pub const SCHEMA: u32 = 1;

/// Buckets of windows in a decade of microseconds.
const BUCKETS_PER_DECADE: f64 = 20.0;

/// Why a result cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file.
    #[error("{0}: {1}")]
    File(String, #[source] std::io::Error),
    /// Its JSON.
    #[error("{0} is no result: {1}")]
    Json(String, #[source] serde_json::Error),
    /// Its version.
    #[error("{0} has version {1} of the schema; this harness reads version {SCHEMA}")]
    Schema(String, u32),
    /// Results that do not belong together.
    #[error("the results do not belong together: {0}")]
    Apart(String),
}

/// Everything that is known of a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RunResult {
    /// Version of the schema.
    pub schema: u32,
    /// Name of the scenario.
    pub scenario: String,
    /// What it is about.
    pub about: String,
    /// The scenario's file and what the command line changed of it, so that the run can be repeated.
    pub definition: String,
    /// `--set`, `--scale` and `--seconds`, in words.
    pub changes: Vec<String>,
    /// What chance was drawn from.
    pub seed: u64,
    /// Which part of how many; `[1, 1]` for a whole.
    pub part: [u32; 2],
    /// When the first phase began, in microseconds of Unix time.
    pub started_micros: u64,
    /// Seconds of all phases.
    pub seconds: f64,
    /// Width of windows in seconds.
    pub window_seconds: f64,
    /// What `/version` says of the server.
    pub server: String,
    /// Phases.
    pub phases: Vec<PhaseResult>,
    /// What was asked, by name.
    pub operations: BTreeMap<String, Operation>,
    /// How much later than due the harness sent requests of rates: pairs of microseconds and how often.
    pub lag: Vec<(u64, u64)>,
    /// What processes used, once a window or a second, whichever is longer.
    pub samples: Vec<Sample>,
    /// What was checked.
    pub checks: Checks,
    /// Whether the harness was stopped by its time limit.
    pub gave_up: bool,
}

/// A phase as it was.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PhaseResult {
    /// Name.
    pub name: String,
    /// Start in seconds.
    pub from: f64,
    /// End in seconds.
    pub to: f64,
    /// Load at the start and at the end.
    pub load: [f64; 2],
    /// Whether it is left out of totals.
    pub warmup: bool,
}

/// From when the latency of an operation counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Since {
    /// From when it was due, whether the harness or the server was late (open loop).
    Due,
    /// From when it was sent (closed loop).
    Sent,
}

/// One kind of operation.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Operation {
    /// From when its latency counts.
    pub since: Since,
    /// How many succeeded, warmup left out.
    pub count: u64,
    /// How many failed, by how; warmup included.
    pub errors: BTreeMap<String, u64>,
    /// The first failures, in words.
    pub examples: Vec<String>,
    /// Latency in microseconds.
    pub latency: Percentiles,
    /// Time from sending to the end of the answer, in microseconds; the same as `latency` in a closed loop.
    pub service: Percentiles,
    /// Latencies, as pairs of microseconds and how often, exact to three digits.
    pub histogram: Vec<(u64, u64)>,
    /// Times of service, alike.
    pub service_histogram: Vec<(u64, u64)>,
    /// What happened over time, by when it was due; without what happened before the first phase.
    pub windows: Vec<Window>,
}

/// Percentiles of a time in microseconds.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Percentiles {
    /// Mean.
    pub mean: f64,
    /// Median.
    pub p50: u64,
    /// 90th.
    pub p90: u64,
    /// 99th.
    pub p99: u64,
    /// 99.9th.
    pub p999: u64,
    /// The longest.
    pub max: u64,
}

/// What was due in a stretch of time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Window {
    /// Successes.
    pub count: u64,
    /// Failures.
    pub errors: u64,
    /// The longest latency in microseconds.
    pub max: u64,
    /// Latencies, as pairs of bucket and how often; bucket b ends at 10^(b/20) microseconds.
    pub buckets: Vec<(u16, u32)>,
}

/// What processes use.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Sample {
    /// Seconds since the first phase began.
    pub at: f64,
    /// CPU seconds of the server so far, if they are known.
    pub server_cpu_seconds: Option<f64>,
    /// Resident memory of the server in bytes, if it is known.
    pub server_resident_bytes: Option<u64>,
    /// CPU seconds of the harness so far.
    pub own_cpu_seconds: f64,
    /// Resident memory of the harness in bytes.
    pub own_resident_bytes: u64,
    /// Watches that are open.
    pub watches: u64,
}

/// What was checked, and what was wrong.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Checks {
    /// Events of watches that were looked at.
    pub events: u64,
    /// Watches whose objects were compared with a list in the end.
    pub compared: u64,
    /// Watches that there were.
    pub watches: u64,
    /// Answers whose bodies or revisions were looked at.
    pub answers: u64,
    /// Watches that had to list again, because the server had forgotten where they were.
    pub expired: u64,
    /// Watches that lost their connection or were ended, and went on.
    pub resumed: u64,
    /// Promises that were broken.
    pub violations: Violations,
}

impl Percentiles {
    /// Those of a histogram.
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

/// The pairs of a histogram.
pub fn pairs(histogram: &Histogram<u64>) -> Vec<(u64, u64)> {
    histogram.iter_recorded().map(|value| (value.value_iterated_to(), value.count_at_value())).collect()
}

/// The histogram of pairs.
pub fn histogram(pairs: &[(u64, u64)]) -> Histogram<u64> {
    let mut histogram = report::histogram();
    for (value, count) in pairs {
        histogram.saturating_record_n(*value, *count);
    }
    histogram
}

impl Window {
    /// The bucket of a latency in microseconds.
    pub fn bucket(micros: u64) -> u16 {
        ((micros.max(1) as f64).log10() * BUCKETS_PER_DECADE).ceil() as u16
    }

    /// Where a bucket ends, in microseconds.
    pub fn end(bucket: u16) -> f64 {
        10f64.powf(f64::from(bucket) / BUCKETS_PER_DECADE)
    }

    /// Notes a success.
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

    /// Adds what another one counted.
    pub fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.errors += other.errors;
        self.max = self.max.max(other.max);
        other.buckets.iter().for_each(|(bucket, count)| self.add(*bucket, *count));
    }

    /// A percentile in microseconds; `None` where nothing succeeded.
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
    /// Failures of every kind.
    pub fn errors_total(&self) -> u64 {
        self.errors.values().sum()
    }
}

impl RunResult {
    /// Reads one from a file.
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

    /// Writes it to a file.
    pub fn write(&self, path: &std::path::Path) -> Result<(), Error> {
        let name = path.display().to_string();
        let text = serde_json::to_vec(self).map_err(|error| Error::Json(name.clone(), error))?;
        std::fs::write(path, text).map_err(|error| Error::File(name, error))
    }

    /// Failed operations of every kind.
    pub fn errors_total(&self) -> u64 {
        self.operations.values().map(Operation::errors_total).sum()
    }

    /// Whether nothing failed and no promise was broken.
    pub fn is_clean(&self) -> bool {
        self.errors_total() == 0 && self.checks.violations.total() == 0 && !self.gave_up
    }

    /// Seconds of phases that count.
    pub fn counted_seconds(&self) -> f64 {
        let counted = self.phases.iter().filter(|phase| !phase.warmup).map(|phase| phase.to - phase.from).sum::<f64>();
        if counted > 0.0 { counted } else { self.seconds }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_tell_percentiles_within_a_bucket() {
        let mut window = Window::default();
        (1..=1_000).for_each(|micros| window.record(micros * 10));
        for (quantile, micros) in [(0.5, 5_000.0), (0.99, 9_900.0), (1.0, 10_000.0)] {
            let told = window.quantile(quantile).unwrap();
            assert!((told / micros - 1.0f64).abs() < 0.13, "{quantile}: {told}");
        }
        assert_eq!(Window::default().quantile(0.5), None);
    }

    #[test]
    fn histograms_survive_being_kept() {
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
