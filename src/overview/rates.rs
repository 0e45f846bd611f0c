//! Rates of events between two overviews of a member.

use std::collections::HashMap;

use super::requests::quantile;
use super::view::Overview;

/// Rates of events between two overviews of a member.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rates {
    /// Time between the two, in seconds.
    pub seconds: f64,
    /// Requests per second.
    pub requests_per_second: f64,
    /// Processors that the process kept busy.
    pub processors: f64,
    /// Bytes written to the log per second.
    pub log_bytes_per_second: f64,
    /// Mean time of an fsync of the log. `None` if there was none.
    pub fsync_seconds: Option<f64>,
    /// Types of requests, the most frequent first.
    pub requests: Vec<Rate>,
    /// Resources with events or followers: the most events first, then the most followers.
    pub resources: Vec<ResourceRate>,
}

/// Requests of one type between two overviews.
#[derive(Debug, Clone, PartialEq)]
pub struct Rate {
    /// The verb.
    pub verb: String,
    /// The resource, with its group and subresource.
    pub resource: String,
    /// Requests per second.
    pub per_second: f64,
    /// Median of their durations, in seconds.
    pub p50: f64,
    /// 99th percentile of their durations, in seconds.
    pub p99: f64,
}

/// Watches of a resource between two overviews.
#[derive(Debug, Clone, PartialEq)]
pub struct ResourceRate {
    /// The resource.
    pub resource: String,
    /// Watches and controllers that follow it.
    pub followers: u64,
    /// Events sent to watches per second.
    pub events_per_second: f64,
}

impl Rates {
    /// Computes the rates from `earlier` to `later`. If the server restarted in between, the rates are those since that
    /// start.
    pub fn between(earlier: &Overview, later: &Overview) -> Self {
        let is_restarted = later.uptime_seconds < earlier.uptime_seconds;
        let before = (!is_restarted).then_some(earlier);
        let seconds = later.uptime_seconds - before.map_or(0.0, |it| it.uptime_seconds);
        let per_second = |count: f64| if seconds > 0.0 { count / seconds } else { 0.0 };
        let grown = |of: fn(&Overview) -> u64| (of(later) - before.map_or(0, of).min(of(later))) as f64;
        let fsyncs = grown(|it| it.log.fsyncs);
        let fsync_seconds = later.log.fsync_seconds - before.map_or(0.0, |it| it.log.fsync_seconds);
        let requests = requests(before, later, per_second);
        Self {
            seconds,
            requests_per_second: requests.iter().fold(0.0, |sum, rate| sum + rate.per_second),
            processors: per_second(later.processor_seconds - before.map_or(0.0, |it| it.processor_seconds)),
            log_bytes_per_second: per_second(grown(|it| it.log.written_bytes)),
            fsync_seconds: (fsyncs > 0.0).then(|| fsync_seconds / fsyncs),
            requests,
            resources: resources(before, later, per_second),
        }
    }
}

fn requests(before: Option<&Overview>, later: &Overview, per_second: impl Fn(f64) -> f64) -> Vec<Rate> {
    let known = before.into_iter().flat_map(|it| &it.requests);
    let known: HashMap<_, _> = known.map(|it| ((&*it.verb, &*it.resource), &it.buckets)).collect();
    let mut rates: Vec<Rate> = Vec::new();
    for now in &later.requests {
        let mut buckets = now.buckets.clone();
        if let Some(earlier) = known.get(&(&*now.verb, &*now.resource)) {
            buckets.iter_mut().zip(*earlier).for_each(|(count, before)| *count = count.saturating_sub(*before));
        }
        let count = buckets.iter().sum::<u64>();
        if count > 0 {
            let quantile = |q| quantile(&later.request_bounds_seconds, &buckets, q);
            rates.push(Rate {
                verb: now.verb.clone(),
                resource: now.resource.clone(),
                per_second: per_second(count as f64),
                p50: quantile(0.5),
                p99: quantile(0.99),
            });
        }
    }
    rates.sort_by(|a, b| b.per_second.total_cmp(&a.per_second));
    rates
}

fn resources(before: Option<&Overview>, later: &Overview, per_second: impl Fn(f64) -> f64) -> Vec<ResourceRate> {
    let known = before.into_iter().flat_map(|it| &it.resources);
    let known: HashMap<_, _> = known.map(|it| (&*it.resource, it.events)).collect();
    let rate = |now: &super::view::ResourceView| {
        let events = now.events.saturating_sub(known.get(&*now.resource).copied().unwrap_or_default());
        let events_per_second = per_second(events as f64);
        ResourceRate { resource: now.resource.clone(), followers: now.followers, events_per_second }
    };
    let mut rates: Vec<_> = later.resources.iter().map(rate).collect();
    rates.retain(|it| it.events_per_second > 0.0 || it.followers > 0);
    rates.sort_by(|a, b| (b.events_per_second.total_cmp(&a.events_per_second)).then(b.followers.cmp(&a.followers)));
    rates
}

#[cfg(test)]
mod tests {
    use super::super::example;
    use super::super::requests::Requests;
    use super::*;

    #[test]
    fn counters_that_grew_become_rates() {
        let earlier = example();
        let mut later = example();
        later.uptime_seconds += 2.0;
        later.log.fsyncs += 10;
        later.log.fsync_seconds += 0.05;
        later.resources[0].events += 8;
        let bounds = later.request_bounds_seconds.clone();
        later.requests = vec![
            Requests::of("GET".into(), "pods".into(), vec![90, 12, 0, 0], &bounds),
            Requests::of("POST".into(), "pods".into(), vec![6, 0, 0, 0], &bounds),
        ];
        let rates = Rates::between(&earlier, &later);
        assert_eq!((rates.seconds, rates.requests_per_second), (2.0, 4.0));
        assert_eq!((&*rates.requests[0].verb, rates.requests[0].per_second), ("POST", 3.0));
        assert!(rates.requests[1].p50 > 0.005, "both were in the second bucket");
        assert_eq!(rates.resources[0].events_per_second, 4.0);
        assert!(rates.fsync_seconds.is_some_and(|mean| (mean - 0.005).abs() < 1e-9));
    }

    #[test]
    fn a_restarted_server_counts_from_zero() {
        let (earlier, mut later) = (example(), example());
        later.uptime_seconds = 10.0;
        let rates = Rates::between(&earlier, &later);
        assert_eq!((rates.seconds, rates.requests_per_second), (10.0, 10.0));
        assert_eq!(Rates::between(&later, &later).requests_per_second, 0.0);
    }
}
