//! Counts of the requests of a FlowSchema, and their metrics.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::flow::Reason;
use super::level::Level;
use crate::prometheus::families::{FLOW_EXECUTION_DURATION, FLOW_WAIT_DURATION};
use crate::prometheus::{Histogram, Page};

/// The counts of a FlowSchema and a level.
#[derive(Debug)]
pub struct Counts {
    /// Requests that got a seat.
    dispatched: AtomicU64,
    /// Requests that have given their seat back.
    left: AtomicU64,
    waiting: AtomicU64,
    refused: [AtomicU64; Reason::ALL.len()],
    /// How long requests waited: those that got a seat, and those that got none.
    waited: [Histogram; 2],
    /// How long requests had their seats, and how long watches took to begin.
    took: [Histogram; 2],
}

impl Default for Counts {
    fn default() -> Self {
        Self {
            dispatched: AtomicU64::new(0),
            left: AtomicU64::new(0),
            waiting: AtomicU64::new(0),
            refused: Default::default(),
            waited: [&FLOW_WAIT_DURATION; 2].map(Histogram::of),
            took: [&FLOW_EXECUTION_DURATION; 2].map(Histogram::of),
        }
    }
}

fn add(count: &AtomicU64) {
    count.fetch_add(1, Ordering::Relaxed);
}

fn get(count: &AtomicU64) -> u64 {
    count.load(Ordering::Relaxed)
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl Counts {
    /// Records that a request got a seat and did not wait.
    pub(super) fn seated_at_once(&self, is_exempt: bool) {
        add(&self.dispatched);
        if !is_exempt {
            self.waited[0].observe(0);
        }
    }

    /// Records that a request waits.
    pub(super) fn waits(&self) {
        add(&self.waiting);
    }

    /// Records that a request waits no longer: it has a seat.
    pub(super) fn seated_after(&self, waited: Duration) {
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        add(&self.dispatched);
        self.waited[0].observe(nanos(waited));
    }

    /// Records that a request waits no longer, and got no seat.
    pub(super) fn left_after(&self, waited: Duration, why: Reason) {
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        self.refused(why);
        self.waited[1].observe(nanos(waited));
    }

    /// Records that a request got no seat.
    pub(super) fn refused(&self, why: Reason) {
        add(&self.refused[why as usize]);
    }

    /// Records that a request gave its seat back.
    pub(super) fn left(&self, took: Duration, is_watch: bool) {
        add(&self.left);
        self.took[usize::from(is_watch)].observe(nanos(took));
    }

    /// Returns the number of requests that got a seat.
    pub fn dispatched(&self) -> u64 {
        get(&self.dispatched)
    }

    /// Returns the number of requests that wait.
    pub fn waiting(&self) -> u64 {
        get(&self.waiting)
    }

    /// Returns whether there was any request.
    pub fn are_used(&self) -> bool {
        self.dispatched() + self.waiting() > 0 || self.refused.iter().any(|refused| get(refused) > 0)
    }

    /// Returns the number of requests that have a seat.
    pub fn executing(&self) -> u64 {
        self.dispatched().saturating_sub(get(&self.left))
    }

    /// Returns the number of requests that got no seat for a reason.
    pub fn refused_for(&self, why: Reason) -> u64 {
        get(&self.refused[why as usize])
    }
}

/// The counts of a FlowSchema, with the names of the FlowSchema and of its level.
pub(super) type Named<'c> = (&'c str, &'c str, &'c Counts);

/// The name of a gauge, its help text, and how its value is read.
type Gauge<T, V> = (&'static str, &'static str, fn(&T) -> V);

/// Appends the metrics of FlowSchemas.
pub(super) fn write(page: &mut Page, flows: &[Named<'_>]) {
    let counter = "apiserver_flowcontrol_dispatched_requests_total";
    let mut samples = page.counter(counter, "Requests that got a seat of their level.");
    flows.iter().for_each(|flow| samples.sample(&labels(flow), flow.2.dispatched() as f64));
    let counter = "apiserver_flowcontrol_rejected_requests_total";
    let mut samples = page.counter(counter, "Requests that got no seat, by reason.");
    for flow in flows {
        for why in Reason::ALL.into_iter().filter(|why| flow.2.refused_for(*why) > 0) {
            let [schema, level] = labels(flow);
            samples.sample(&[schema, level, ("reason", why.name())], flow.2.refused_for(why) as f64);
        }
    }
    let gauges: [Gauge<Counts, u64>; 3] = [
        ("apiserver_flowcontrol_current_inqueue_requests", "Requests that wait for a seat.", Counts::waiting),
        ("apiserver_flowcontrol_current_executing_requests", "Requests that have a seat.", Counts::executing),
        ("apiserver_flowcontrol_current_executing_seats", "Seats that requests have: one each.", Counts::executing),
    ];
    for (name, help, value) in gauges {
        let mut samples = page.gauge(name, help);
        flows.iter().for_each(|flow| samples.sample(&labels(flow), value(flow.2) as f64));
    }
    write_times(page, flows);
}

/// Appends how long requests waited, and how long they had their seats.
fn write_times(page: &mut Page, flows: &[Named<'_>]) {
    let is_used = |times: &Histogram| times.counts().iter().any(|count| *count > 0);
    let (mut waited, mut took) = (Vec::new(), Vec::new());
    for flow in flows {
        let [schema, level] = labels(flow);
        for (execute, times) in ["true", "false"].into_iter().zip(&flow.2.waited).filter(|(_, times)| is_used(times)) {
            waited.push(([("execute", execute), schema, level], times));
        }
        for (sort, times) in ["regular", "watch"].into_iter().zip(&flow.2.took).filter(|(_, times)| is_used(times)) {
            took.push(([schema, level, ("type", sort)], times));
        }
    }
    page.histograms(&FLOW_WAIT_DURATION, &waited);
    page.histograms(&FLOW_EXECUTION_DURATION, &took);
}

fn labels<'c>((schema, level, _): &Named<'c>) -> [(&'static str, &'c str); 2] {
    [("flow_schema", *schema), ("priority_level", *level)]
}

/// Appends the limits of levels.
pub(super) fn write_limits(page: &mut Page, levels: &[Arc<Level>]) {
    let gauges: [Gauge<Level, u32>; 4] = [
        ("apiserver_flowcontrol_nominal_limit_seats", "A level's own seats.", |level| level.limit().nominal),
        ("apiserver_flowcontrol_lower_limit_seats", "A level's own seats that it does not lend.", |level| {
            level.limit().nominal.saturating_sub(level.limit().lendable)
        }),
        ("apiserver_flowcontrol_upper_limit_seats", "A level's own seats and the most that it may borrow.", |level| {
            level.limit().most
        }),
        ("apiserver_flowcontrol_current_limit_seats", "A level's own seats and those that it has borrowed.", |level| {
            level.limit().nominal.max(level.executing())
        }),
    ];
    for (name, help, value) in gauges {
        let mut samples = page.gauge(name, help);
        levels.iter().for_each(|level| samples.sample(&[("priority_level", &level.name)], f64::from(value(level))));
    }
}
