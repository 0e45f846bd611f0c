//! Requests: their number, duration, and size of answers.
//!
//! A request finds the handles of its labels by one look-up in a map. The map is replaced only when a new combination
//! turns up: a request formats nothing and takes no lock.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use metrics::{Counter, Gauge};
use parking_lot::Mutex;

use super::route::{Route, SeriesKey, Verb};
use crate::prometheus::Histogram;
use crate::prometheus::Meter;
use crate::prometheus::families;

/// The handles of one combination of labels.
struct Series {
    count: Counter,
    duration: Arc<Histogram>,
    /// `None` for requests that do not count for service levels.
    sli_duration: Option<Arc<Histogram>>,
    /// `None` for requests that do not read.
    size: Option<Arc<Histogram>>,
    /// Keeps the resource alive whose address is in the key. `None` for custom resources, whose key has no address.
    _of: Option<Route>,
}

impl Series {
    fn make(meter: &Meter, route: &Route, code: u16) -> Self {
        let labels = route.labels();
        let mut with_dry_run = vec![("dry_run", route.dry_run().name())];
        with_dry_run.extend(labels);
        with_dry_run.sort_unstable();
        let code = code.to_string();
        let mut counted = vec![("code", &*code)];
        counted.extend(&with_dry_run);
        let of = |family| meter.histogram(family, &labels);
        Self {
            count: meter.counter(families::REQUESTS, &counted),
            duration: meter.histogram(&families::REQUEST_DURATION, &with_dry_run),
            sli_duration: (route.verb() != Verb::Watch).then(|| of(&families::REQUEST_SLI_DURATION)),
            size: route.verb().reads().then(|| of(&families::RESPONSE_SIZES)),
            _of: Some(route).filter(|route| !route.is_custom()).cloned(),
        }
    }
}

/// All requests.
pub struct Requests {
    series: ArcSwap<HashMap<SeriesKey, Arc<Series>>>,
    growing: Mutex<()>,
    most: usize,
    refused: Counter,
}

impl Requests {
    /// Returns metrics with at most `most` combinations of labels.
    pub(super) fn new(meter: &Meter, most: usize) -> Self {
        let refused = meter.counter(families::SERIES_REFUSED, &[]);
        Self { series: ArcSwap::default(), growing: Mutex::new(()), most, refused }
    }

    /// Counts a request that was answered.
    pub fn answered(&self, meter: &Meter, route: &Route, code: u16, took: Duration, bytes: u64) {
        let key = route.key(code);
        let known = self.series.load();
        let Some(series) = known.get(&key) else {
            drop(known);
            if self.learn(meter, route, code, key) {
                self.answered(meter, route, code, took, bytes);
            }
            return;
        };
        let took = took.as_nanos() as u64;
        series.count.increment(1);
        series.duration.observe(took);
        if let Some(duration) = &series.sli_duration {
            duration.observe(took);
        }
        if let Some(size) = &series.size {
            size.observe(bytes);
        }
    }

    /// Counts a request that the server refused, or gave up, to protect itself.
    pub fn terminated(&self, meter: &Meter, route: &Route, code: u16) {
        let text = code.to_string();
        let mut labels = vec![("code", &*text)];
        labels.extend(route.labels());
        meter.counter(families::TERMINATIONS, &labels).increment(1);
        if code == 429 {
            labels.push(("dry_run", route.dry_run().name()));
            labels.sort_unstable();
            meter.counter(families::REQUESTS, &labels).increment(1);
        }
    }

    /// Returns the gauge of open requests of a route.
    pub fn long_running(&self, meter: &Meter, route: &Route) -> Gauge {
        meter.gauge(families::LONG_RUNNING, &route.labels())
    }

    /// Makes the handles of a new combination. Returns false above the bound.
    fn learn(&self, meter: &Meter, route: &Route, code: u16, key: SeriesKey) -> bool {
        let _growing = self.growing.lock();
        let known = self.series.load_full();
        if known.contains_key(&key) {
            return true;
        }
        if known.len() >= self.most {
            self.refused.increment(1);
            return false;
        }
        let mut more = HashMap::clone(&known);
        more.insert(key, Arc::new(Series::make(meter, route, code)));
        self.series.store(Arc::new(more));
        true
    }
}

#[cfg(test)]
mod tests {
    use flotilla_proto::value;

    use super::super::route::{DryRun, Scope};
    use super::*;
    use crate::custom::Definition;
    use crate::served::Resources;

    #[test]
    fn custom_resources_keep_their_counts_when_their_definition_changes() {
        let meter = Meter::default();
        let (requests, resources) = (Requests::new(&meter, 1), Resources::builtin());
        let definition = value!({
            "spec": {"group": "example.com", "scope": "Cluster", "versions": [
                {"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}
            ]},
            "status": {
                "acceptedNames": {"plural": "things", "kind": "Thing"},
                "conditions": [{"type": "Established", "status": "True"}]
            }
        });
        for _ in 0..3 {
            let read = Definition::of(&definition).map(Arc::new);
            let served = resources.define(read.iter()).remove(0);
            let (verb, scope) = (Verb::Get, Scope::Resource);
            let route = Route::Resource { served, subresource: None, verb, scope, dry_run: DryRun::No };
            requests.answered(&meter, &route, 200, Duration::from_millis(1), 10);
        }
        let text = meter.render();
        let counted = text.lines().find(|line| line.starts_with("apiserver_request_total{"));
        assert!(counted.is_some_and(|line| line.contains("resource=\"things\"") && line.ends_with(" 3")), "{text}");
    }

    #[test]
    fn combinations_are_bounded() {
        let meter = Meter::default();
        let requests = Requests::new(&meter, 2);
        let route = Route::Document("apis");
        for code in [200, 201, 200, 202, 203] {
            requests.answered(&meter, &route, code, Duration::from_millis(1), 10);
        }
        let text = meter.render();
        let line = |code: &str| {
            let labels = format!("code=\"{code}\",component=\"apiserver\",dry_run=\"\"");
            text.lines().find(|line| line.starts_with("apiserver_request_total{") && line.contains(&labels))
        };
        assert!(line("200").is_some_and(|line| line.ends_with(" 2")), "{text}");
        assert!(line("201").is_some_and(|line| line.ends_with(" 1")), "{text}");
        assert!(line("202").is_none() && line("203").is_none(), "{text}");
        assert!(text.contains("\nflotilla_request_series_refused_total 2\n"), "{text}");
        assert!(text.contains("apiserver_response_sizes_sum{component=\"apiserver\",group=\"\",resource=\"\",scope=\"\",subresource=\"apis\",verb=\"GET\",version=\"\"} 30\n"), "{text}");
    }
}
