//! Queues of the embedded controllers.

use std::sync::Arc;
use std::time::Duration;

use metrics::{Counter, Gauge};

use crate::prometheus::Histogram;
use crate::prometheus::Meter;
use crate::prometheus::families;

/// The handles of one queue.
#[derive(Clone)]
pub struct QueueMetrics {
    depth: Gauge,
    added: Counter,
    retried: Counter,
    waited: Arc<Histogram>,
    worked: Arc<Histogram>,
}

impl QueueMetrics {
    /// Returns the handles of the queue of this name.
    pub fn named(meter: &Meter, name: &str) -> Self {
        let labels = [("name", name)];
        Self {
            depth: meter.gauge(families::QUEUE_DEPTH, &labels),
            added: meter.counter(families::QUEUE_ADDS, &labels),
            retried: meter.counter(families::QUEUE_RETRIES, &labels),
            waited: meter.histogram(&families::QUEUE_DURATION, &labels),
            worked: meter.histogram(&families::WORK_DURATION, &labels),
        }
    }

    /// Records that a key waits from now on.
    pub fn added(&self, waiting: usize) {
        self.added.increment(1);
        self.depth.set(waiting as f64);
    }

    /// Records that no key waits any more: the queue is gone.
    pub fn gone(&self) {
        self.depth.set(0.0);
    }

    /// Records that a waiting key was taken.
    pub fn taken(&self, waiting: usize, waited: Duration) {
        self.depth.set(waiting as f64);
        self.waited.observe(waited.as_nanos() as u64);
    }

    /// Records that an attempt on a key ended.
    pub fn finished(&self, worked: Duration, failed: bool) {
        self.worked.observe(worked.as_nanos() as u64);
        if failed {
            self.retried.increment(1);
        }
    }
}
