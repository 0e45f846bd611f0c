//! Events of watches.

use std::sync::Arc;

use metrics::Counter;

use super::Metrics;
use crate::prometheus::Histogram;
use crate::prometheus::families;
use crate::served::Served;

/// The handles of the watches of a resource.
pub struct WatchEvents {
    count: Counter,
    size: Arc<Histogram>,
}

impl WatchEvents {
    /// Returns the handles of a resource in a version.
    pub fn of(metrics: &Metrics, served: &Served) -> Self {
        let version = &*served.resource.version;
        let labels = [("group", served.group()), ("resource", &*served.resource.name), ("version", version)];
        Self {
            count: metrics.meter().counter(families::WATCH_EVENTS, &labels),
            size: metrics.meter().histogram(&families::WATCH_EVENTS_SIZES, &labels),
        }
    }

    /// Counts an event.
    pub fn sent(&self, bytes: usize) {
        self.count.increment(1);
        self.size.observe(bytes as u64);
    }
}
