//! Requests by type, with quantiles of their time.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::metrics::route::slash_joined;
use crate::prometheus::{Meter, families, read_labels};

/// Requests of one type.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Requests {
    /// The verb, as Kubernetes counts it.
    pub verb: String,
    /// The resource, with its group and subresource, as in `apps/deployments/scale`.
    pub resource: String,
    /// Their number since the server started.
    pub count: u64,
    /// Median of their durations, in seconds.
    pub p50: f64,
    /// 99th percentile of their durations, in seconds.
    pub p99: f64,
    /// The number in each bucket of durations: one bucket for each bound, and one above the last.
    pub buckets: Vec<u64>,
}

impl Requests {
    /// Returns the requests of a type, from their buckets of durations.
    pub fn of(verb: String, resource: String, buckets: Vec<u64>, bounds: &[f64]) -> Self {
        let quantile = |q| quantile(bounds, &buckets, q);
        let (count, p50, p99) = (buckets.iter().sum(), quantile(0.5), quantile(0.99));
        Self { verb, resource, count, p50, p99, buckets }
    }
}

/// Returns the bounds of the buckets of requests, in seconds.
pub fn request_bounds() -> Vec<f64> {
    let family = &families::REQUEST_DURATION;
    family.bounds.iter().map(|bound| family.unit.show(*bound)).collect()
}

/// Returns all counted types, the most frequent first, without long-running requests: their clients decide their
/// duration.
pub fn requests_by_type(meter: &Meter) -> Vec<Requests> {
    let bounds = request_bounds();
    let mut types = BTreeMap::<(String, String), Vec<u64>>::new();
    for (labels, histogram) in meter.all_of(&families::REQUEST_DURATION) {
        let labels = read_labels(&labels);
        let label = |name| labels.iter().find(|(label, _)| *label == name).map_or("", |(_, value)| value);
        let verb = label("verb");
        if matches!(verb, "WATCH" | "WATCHLIST" | "CONNECT") {
            continue;
        }
        let resource = slash_joined(["group", "resource", "subresource"].map(label));
        let sums = types.entry((verb.to_owned(), resource)).or_insert_with(|| vec![0; bounds.len() + 1]);
        sums.iter_mut().zip(histogram.counts()).for_each(|(sum, count)| *sum += count);
    }
    let all = types.into_iter().map(|((verb, resource), counts)| Requests::of(verb, resource, counts, &bounds));
    let mut all: Vec<_> = all.filter(|requests| requests.count > 0).collect();
    all.sort_by_key(|requests| std::cmp::Reverse(requests.count));
    all
}

/// Returns a quantile as Prometheus estimates it: values are spread evenly within their bucket, and values above the
/// greatest bound count as that bound.
pub fn quantile(bounds: &[f64], buckets: &[u64], q: f64) -> f64 {
    let rank = q * buckets.iter().sum::<u64>() as f64;
    let (mut lower, mut before) = (0.0, 0.0);
    for (upper, count) in bounds.iter().zip(buckets) {
        let count = *count as f64;
        if count > 0.0 && before + count >= rank {
            return lower + (upper - lower) * (rank - before) / count;
        }
        (lower, before) = (*upper, before + count);
    }
    if before < rank { lower } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_estimated_within_buckets() {
        let (bounds, buckets) = ([0.1, 0.2, 0.4], [0, 50, 50, 0]);
        let close = |q: f64, wanted: f64| (quantile(&bounds, &buckets, q) - wanted).abs() < 1e-9;
        assert!(close(0.5, 0.2) && close(0.75, 0.3) && close(1.0, 0.4));
        assert!((quantile(&[0.1], &[1, 99], 0.99) - 0.1).abs() < 1e-9);
        assert!(quantile(&[0.1], &[0, 0], 0.5).abs() < 1e-9);
    }

    #[test]
    fn series_of_one_type_are_added() {
        let meter = Meter::default();
        for (verb, scope) in [("GET", "a"), ("GET", "b"), ("GET", "b"), ("WATCH", "a")] {
            let labels = [("group", "apps"), ("resource", "deployments"), ("scope", scope), ("verb", verb)];
            meter.histogram(&families::REQUEST_DURATION, &labels).observe(1_000);
        }
        meter.histogram(&families::REQUEST_DURATION, &[("resource", "pods"), ("verb", "LIST")]);
        let found = requests_by_type(&meter);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((&*found[0].verb, &*found[0].resource, found[0].count), ("GET", "apps/deployments", 3));
        assert!(found[0].p99 <= 0.005);
    }
}
