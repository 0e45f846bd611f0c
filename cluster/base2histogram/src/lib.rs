//! Replaces the crate of the same name, on which openraft depends. openraft uses these histograms of batch sizes only
//! with its feature `runtime-stats`, which is off here.
//!
//! When the first histogram is made, the published crate builds tables for histograms of every width: 26 MB that are
//! never freed, more than everything else that an idle server keeps. The histograms here count nothing.

use std::fmt;
use std::marker::PhantomData;

/// A histogram that keeps nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram<T = ()>(PhantomData<T>);

impl<T> Histogram<T> {
    /// Returns an empty histogram.
    pub fn new() -> Histogram<T> {
        Histogram(PhantomData)
    }

    /// Ignores a value.
    pub fn record(&mut self, _: u64) {}

    /// Ignores a value that occurred several times.
    pub fn record_n(&mut self, _: u64, _: u64) {}

    /// Returns empty statistics.
    pub fn percentile_stats(&self) -> PercentileStats {
        PercentileStats::default()
    }
}

/// Statistics of a distribution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say which percentiles they are")]
pub struct PercentileStats {
    pub samples: u64,
    pub p0_1: u64,
    pub p1: u64,
    pub p5: u64,
    pub p10: u64,
    pub p50: u64,
    pub p90: u64,
    pub p99: u64,
    pub p99_9: u64,
}

/// A chart of distributions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AsciiChart;

impl AsciiChart {
    /// Returns an empty chart.
    pub fn new() -> AsciiChart {
        AsciiChart
    }

    /// Ignores a distribution.
    pub fn add(self, _: &str, _: Histogram) -> AsciiChart {
        self
    }
}

impl fmt::Display for AsciiChart {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }
}

impl fmt::Display for PercentileStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} samples", self.samples)
    }
}
