//! What the server tells about itself at `/metrics`, under the names and labels that Kubernetes has for the same.
//!
//! What happens often is counted on handles that were made once ([`requests`], [`access`], [`watches`], [`admission`],
//! [`queues`]): counters and gauges are those of the crate `metrics`, distributions are arrays of counts. What has a
//! value anyway is read when somebody asks ([`process`], [`store`]).
//!
//! Labels are bounded: they come from what is served, never from what a client sends.

pub mod access;
pub mod admission;
pub mod clients;
pub mod policies;
pub mod process;
pub mod queues;
pub mod requests;
pub mod slowest;
mod store;
pub mod surroundings;
pub mod watches;

use std::sync::Arc;

use flotilla_cluster::Store;

use crate::limits;
use crate::prometheus::{Meter, Page, families, sorted};
use crate::served::Resources;

/// Everything that is measured in this server.
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
        let meter = Arc::<Meter>::default();
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
    /// Where series of other parts are made.
    pub fn meter(&self) -> &Meter {
        &self.meter
    }

    /// The same, for those who count after this is gone.
    pub const fn shared_meter(&self) -> &Arc<Meter> {
        &self.meter
    }

    /// Counts a request that a controller made of the server at an address.
    pub fn asked_by_controller(&self, host: &str, method: &'static str, code: u16) {
        self.clients.count(&self.meter, host, method, code);
    }

    /// How often a thread of a kind did not come back.
    pub fn stalls(&self, kind: &'static str) -> metrics::Counter {
        self.meter.counter(families::STALLS, &[("thread", kind)])
    }

    /// Everything in the text form, with what the store tells of what is served, and what `more` adds.
    pub fn render(&self, store: &Store, resources: &Resources, more: impl FnOnce(&mut Page)) -> String {
        let mut page = Page(self.meter.render());
        self.process.write(&mut page);
        store::write(store, resources, &mut page);
        more(&mut page);
        sorted(&page.0)
    }
}
