//! Requests by type, with quantiles of their time.

use std::collections::BTreeMap;

use serde::Serialize;

use super::samples;

/// Requests of one type.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Requests {
    /// The verb, as Kubernetes counts it.
    pub verb: String,
    /// The resource, with its group and subresource, as in `apps/deployments/scale`.
    pub resource: String,
    /// How many there were since the server started.
    pub count: f64,
    /// Half of them took so long at most, in seconds.
    pub p50: f64,
    /// All of them but one in a hundred took so long at most, in seconds.
    pub p99: f64,
}

/// Cumulated counts by the upper bounds of buckets, in the order in which the server writes them: ascending.
type Buckets = Vec<(f64, f64)>;

/// All types that a page of metrics has, the most frequent first. Watches and connections are none: they last.
pub fn by_type(page: &str) -> Vec<Requests> {
    let mut types = BTreeMap::<(String, String), Buckets>::new();
    for sample in samples::named(page, "apiserver_request_duration_seconds_bucket") {
        let (verb, Ok(bound)) = (sample.label("verb"), sample.label("le").parse::<f64>()) else { continue };
        if matches!(verb, "WATCH" | "WATCHLIST" | "CONNECT") {
            continue;
        }
        let parts = ["group", "resource", "subresource"].map(|label| sample.label(label));
        let resource = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/");
        let buckets = types.entry((verb.to_owned(), resource)).or_default();
        match buckets.iter_mut().find(|(there, _)| *there == bound) {
            Some((_, count)) => *count += sample.value,
            None => buckets.push((bound, sample.value)),
        }
    }
    let mut all: Vec<_> = types.into_iter().map(|((verb, resource), buckets)| of(verb, resource, &buckets)).collect();
    all.sort_by(|a, b| b.count.total_cmp(&a.count));
    all
}

fn of(verb: String, resource: String, buckets: &Buckets) -> Requests {
    let count = buckets.last().map_or(0.0, |(_, count)| *count);
    Requests { verb, resource, count, p50: quantile(buckets, 0.5), p99: quantile(buckets, 0.99) }
}

/// A quantile as Prometheus estimates it: evenly spread within a bucket, and the greatest finite bound beyond that.
fn quantile(buckets: &Buckets, q: f64) -> f64 {
    let rank = q * buckets.last().map_or(0.0, |(_, count)| *count);
    let (mut lower, mut before) = (0.0, 0.0);
    for (upper, count) in buckets {
        if *count >= rank && *count > before && upper.is_finite() {
            return lower + (upper - lower) * (rank - before) / (count - before);
        }
        if upper.is_finite() {
            (lower, before) = (*upper, *count);
        }
    }
    lower
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_estimated_within_buckets() {
        let buckets = vec![(0.1, 0.0), (0.2, 50.0), (0.4, 100.0), (f64::INFINITY, 100.0)];
        assert!((quantile(&buckets, 0.5) - 0.2).abs() < 1e-9);
        assert!((quantile(&buckets, 0.75) - 0.3).abs() < 1e-9);
        let beyond = vec![(0.1, 1.0), (f64::INFINITY, 100.0)];
        assert!((quantile(&beyond, 0.99) - 0.1).abs() < 1e-9);
        assert!(quantile(&Vec::new(), 0.5).abs() < 1e-9);
    }

    #[test]
    fn series_of_one_type_are_added() {
        let line = |verb: &str, code: &str, le: &str, count: u32| {
            let labels =
                format!("verb=\"{verb}\",scope=\"{code}\",group=\"apps\",resource=\"deployments\",le=\"{le}\"");
            format!("apiserver_request_duration_seconds_bucket{{{labels}}} {count}\n")
        };
        let page = [
            line("GET", "a", "0.1", 1),
            line("GET", "a", "+Inf", 1),
            line("GET", "b", "0.1", 2),
            line("GET", "b", "+Inf", 3),
            line("WATCH", "a", "+Inf", 9),
        ];
        let found = by_type(&page.concat());
        assert_eq!(found.len(), 1);
        assert_eq!((&*found[0].verb, &*found[0].resource, found[0].count), ("GET", "apps/deployments", 4.0));
    }
}
