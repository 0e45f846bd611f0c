//! Requests of this server's own controllers.

use std::collections::HashMap;

use metrics::Counter;
use parking_lot::Mutex;

use crate::prometheus::Meter;
use crate::prometheus::families;

/// Counts the requests of the embedded controllers in the metric that Kubernetes has for those of clients. There are a
/// few dozen combinations of method and code.
pub struct Clients(Mutex<HashMap<(&'static str, u16), Counter>>);

impl Default for Clients {
    fn default() -> Self {
        Self(Mutex::new(HashMap::new()))
    }
}

impl Clients {
    /// Counts a request to the server at `host`, which is the address of this server.
    pub fn count(&self, meter: &Meter, host: &str, method: &'static str, code: u16) {
        let mut counters = self.0.lock();
        let counter = counters.entry((method, code)).or_insert_with(|| {
            let labels = [("code", &*code.to_string()), ("host", host), ("method", method)];
            meter.counter(families::CLIENT_REQUESTS, &labels)
        });
        counter.increment(1);
    }
}
