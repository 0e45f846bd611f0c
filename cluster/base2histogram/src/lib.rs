//! What openraft asks of the crate of this name: histograms of batch sizes, which it shows only with its feature
//! `runtime-stats`, that is off here.
//!
//! The published crate makes tables for histograms of every width when the first is made: 26 MB that are never given
//! back, more than all else that an idle server keeps. So histograms here count nothing.

use std::fmt;
use std::marker::PhantomData;

/// A distribution that is not kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram<T = ()>(PhantomData<T>);

impl<T> Histogram<T> {
    /// An empty one.
    pub fn new() -> Histogram<T> {
        Histogram(PhantomData)
    }

    /// Is told a value.
    pub fn record(&mut self, _: u64) {}

    /// Is told a value that came so many times.
    pub fn record_n(&mut self, _: u64, _: u64) {}

    /// What is known of the values: nothing.
    pub fn percentile_stats(&self) -> PercentileStats {
        PercentileStats::default()
    }
}

/// What is known of a distribution.
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

/// A drawing of distributions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AsciiChart;

impl AsciiChart {
    /// An empty one.
    pub fn new() -> AsciiChart {
        AsciiChart
    }

    /// Is told a distribution.
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
