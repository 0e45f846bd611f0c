//! The metrics of the server at `/metrics`, under the names and labels of Kubernetes for the same quantities.
//!
//! Frequent events are counted on handles that were made once ([`requests`], [`access`], [`watches`], [`admission`],
//! [`queues`]): counters and gauges are those of the crate `metrics`, distributions are arrays of counts. Values that
//! exist anyway are read at each scrape ([`process`], [`store`]).
//!
//! Labels are bounded: they come from the served resources, never from a client's request. The names of policies and
//! webhooks, which clients choose, have a limit of their own.

pub mod access;
pub mod admission;
pub mod clients;
pub mod policies;
pub mod process;
pub mod queues;
pub mod requests;
pub mod route;
pub mod slowest;
mod store;
pub mod surroundings;
pub mod watches;

use std::sync::Arc;

use flotilla_cluster::Store;

use crate::limits;
use crate::prometheus::{Meter, Page, families, sorted};
use crate::served::Resources;

/// All metrics of this server.
pub struct Metrics {
    meter: Arc<Meter>,
    process: process::Process,
    /// Requests.
    pub requests: requests::Requests,
    /// Authentication and authorization.
    pub access: access::Access,
    /// Admission of writes, and the writes themselves.
    pub admission: admission::Admission,
    /// The slowest recent requests.
    pub slowest: slowest::Slowest,
    clients: clients::Clients,
}

impl std::fmt::Debug for Metrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::with(Arc::default())
    }
}

impl Metrics {
    /// Returns metrics that are shown beside those that a meter has already.
    pub fn with(meter: Arc<Meter>) -> Self {
        for family in families::FROM_THE_START {
            meter.counter(family, &[]).increment(0);
        }
        Self {
            process: process::Process::begin(),
            requests: requests::Requests::new(&meter, limits::REQUEST_SERIES),
            access: access::Access::new(&meter),
            admission: admission::Admission::default(),
            slowest: slowest::Slowest::default(),
            clients: clients::Clients::default(),
            meter,
        }
    }
}

impl Metrics {
    /// Returns the meter, with which other parts make their series.
    pub fn meter(&self) -> &Meter {
        &self.meter
    }

    /// Returns the meter for parts that outlive the metrics.
    pub const fn shared_meter(&self) -> &Arc<Meter> {
        &self.meter
    }

    /// Counts a request of a controller to the server at an address.
    pub fn asked_by_controller(&self, host: &str, method: &'static str, code: u16) {
        self.clients.count(&self.meter, host, method, code);
    }

    /// Returns the counter of stalls of threads of a kind.
    pub fn stalls(&self, kind: &'static str) -> metrics::Counter {
        self.meter.counter(families::STALLS, &[("thread", kind)])
    }

    /// Returns all metrics in the text format, with those of the store and those that `more` adds.
    pub fn render(&self, store: &Store, resources: &Resources, more: impl FnOnce(&mut Page)) -> String {
        let mut page = Page(self.meter.render());
        self.process.write(&mut page);
        store::write(store, resources, &mut page);
        more(&mut page);
        sorted(&page.0)
    }
}
