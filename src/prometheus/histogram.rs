//! Histograms as arrays of counts.
//!
//! The exporter's own histograms keep every sample until the next scrape or sweep, without a bound. Counts are bounded.
//! Values are whole numbers of a small unit (nanoseconds, bytes), so that a sample costs a search and two additions.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::RwLock;

use super::exposition::{go_float, label_text};

/// The unit of a family's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Nanoseconds, shown as seconds.
    Seconds,
    /// Bytes.
    Bytes,
}

impl Unit {
    /// Converts a value to the unit in which it is shown.
    pub fn show(self, value: u64) -> f64 {
        match self {
            Self::Seconds => value as f64 / 1e9,
            Self::Bytes => value as f64,
        }
    }
}

/// The histograms of one name.
#[derive(Debug)]
pub struct Family {
    /// Name.
    pub name: &'static str,
    /// The help text.
    pub help: &'static str,
    /// The unit of the values.
    pub unit: Unit,
    /// The upper bounds of all buckets except the last, ascending, in the small unit.
    pub bounds: &'static [u64],
}

/// A histogram.
#[derive(Debug)]
pub struct Histogram {
    bounds: &'static [u64],
    /// A count for each bound, and one for larger values.
    counts: Box<[AtomicU64]>,
    sum: AtomicU64,
}

impl Histogram {
    /// Creates a histogram of a family. Its owner must render it.
    pub fn of(family: &'static Family) -> Self {
        Self::new(family.bounds)
    }

    fn new(bounds: &'static [u64]) -> Self {
        let counts = (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect();
        Self { bounds, counts, sum: AtomicU64::new(0) }
    }

    /// Counts a value.
    pub fn observe(&self, value: u64) {
        // Most values are small, which makes this faster than a binary search.
        let bucket = self.bounds.iter().position(|bound| value <= *bound).unwrap_or(self.bounds.len());
        self.counts[bucket].fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(value, Ordering::Relaxed);
    }

    /// Returns the number of values in each bucket: one for each bound of the family, and one above the last.
    pub fn counts(&self) -> Vec<u64> {
        self.counts.iter().map(|count| count.load(Ordering::Relaxed)).collect()
    }

    pub(super) fn write(&self, family: &Family, labels: &str, out: &mut String) {
        let name = family.name;
        let comma = if labels.is_empty() { "" } else { "," };
        let mut count = 0;
        for (bound, own) in self.bounds.iter().zip(&self.counts) {
            count += own.load(Ordering::Relaxed);
            let bound = go_float(family.unit.show(*bound));
            let _ = writeln!(out, "{name}_bucket{{{labels}{comma}le=\"{bound}\"}} {count}");
        }
        count += self.counts[self.bounds.len()].load(Ordering::Relaxed);
        let sum = go_float(family.unit.show(self.sum.load(Ordering::Relaxed)));
        let _ = writeln!(out, "{name}_bucket{{{labels}{comma}le=\"+Inf\"}} {count}");
        let (open, close) = if labels.is_empty() { ("", "") } else { ("{", "}") };
        let _ = writeln!(out, "{name}_sum{open}{labels}{close} {sum}");
        let _ = writeln!(out, "{name}_count{open}{labels}{close} {count}");
    }
}

/// All histograms, by family and labels.
#[derive(Debug, Default)]
pub struct Histograms {
    series: RwLock<BTreeMap<&'static str, (&'static Family, Series)>>,
}

/// The histograms of a family, by their labels in the text form.
type Series = BTreeMap<String, Arc<Histogram>>;

impl Histograms {
    /// Returns the histogram with these labels. Creates it on the first call.
    pub fn get(&self, family: &'static Family, labels: &[(&'static str, &str)]) -> Arc<Histogram> {
        let labels = label_text(labels);
        let mut series = self.series.write();
        let (_, of_family) = series.entry(family.name).or_insert_with(|| (family, Series::new()));
        Arc::clone(of_family.entry(labels).or_insert_with(|| Arc::new(Histogram::new(family.bounds))))
    }

    /// Returns the histograms of a family, with the text of their labels.
    pub fn all_of(&self, family: &Family) -> Vec<(String, Arc<Histogram>)> {
        let series = self.series.read();
        let all = series.get(family.name).into_iter().flat_map(|(_, series)| series);
        all.map(|(labels, histogram)| (labels.clone(), Arc::clone(histogram))).collect()
    }

    /// Appends all histograms in the text form.
    pub fn write(&self, out: &mut String) {
        for (family, series) in self.series.read().values() {
            let _ = writeln!(out, "# HELP {} {}\n# TYPE {} histogram", family.name, family.help, family.name);
            for (labels, histogram) in series {
                histogram.write(family, labels, out);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static FAMILY: Family =
        Family { name: "t_seconds", help: "Test.", unit: Unit::Seconds, bounds: &[10_000, 5_000_000, 1_000_000_000] };

    #[test]
    fn buckets_are_cumulative_and_bounds_included() {
        let histograms = Histograms::default();
        let one = histograms.get(&FAMILY, &[("a", "x\"y")]);
        for value in [10_000, 10_001, 5_000_000, 2_000_000_000] {
            one.observe(value);
        }
        histograms.get(&FAMILY, &[("a", "x\"y")]).observe(1);
        let mut text = String::new();
        histograms.write(&mut text);
        assert_eq!(
            text,
            "# HELP t_seconds Test.\n# TYPE t_seconds histogram\n\
             t_seconds_bucket{a=\"x\\\"y\",le=\"1e-05\"} 2\n\
             t_seconds_bucket{a=\"x\\\"y\",le=\"0.005\"} 4\n\
             t_seconds_bucket{a=\"x\\\"y\",le=\"1\"} 4\n\
             t_seconds_bucket{a=\"x\\\"y\",le=\"+Inf\"} 5\n\
             t_seconds_sum{a=\"x\\\"y\"} 2.005020002\n\
             t_seconds_count{a=\"x\\\"y\"} 5\n"
        );
    }
}
