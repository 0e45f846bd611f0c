//! Authentication and authorization.

use std::sync::Arc;
use std::time::Duration;

use metrics::Counter;

use crate::prometheus::Histogram;
use crate::prometheus::Meter;
use crate::prometheus::families;

/// Users that are counted by name. All others count as one, since the number of names has no bound.
const KNOWN_USERS: [&str; 3] = ["admin", "kubelet", "system:serviceaccount:kube-system:default"];
const OTHER_USER: &str = "other";

/// The number and the durations of one outcome.
struct OutcomeMetrics {
    count: Counter,
    duration: Arc<Histogram>,
}

impl OutcomeMetrics {
    fn count(&self, took: Duration) {
        self.count.increment(1);
        self.duration.observe(took.as_nanos() as u64);
    }
}

/// Counts the outcomes of authentication and authorization.
pub struct Access {
    authenticated: OutcomeMetrics,
    unknown: OutcomeMetrics,
    allowed: OutcomeMetrics,
    refused: OutcomeMetrics,
    users: Vec<(&'static str, Counter)>,
    other: Counter,
}

impl Access {
    pub(super) fn new(meter: &Meter) -> Self {
        let outcome = |name, family, result| OutcomeMetrics {
            count: meter.counter(name, &[("result", result)]),
            duration: meter.histogram(family, &[("result", result)]),
        };
        let found = |result| outcome(families::AUTHENTICATIONS, &families::AUTHENTICATION_DURATION, result);
        let decided = |result| outcome(families::AUTHORIZATIONS, &families::AUTHORIZATION_DURATION, result);
        let user = |name| meter.counter(families::USERS, &[("username", name)]);
        Self {
            authenticated: found("success"),
            unknown: found("error"),
            allowed: decided("allowed"),
            refused: decided("no-opinion"),
            users: KNOWN_USERS.map(|name| (name, user(name))).into(),
            other: user(OTHER_USER),
        }
    }

    /// Counts a request whose user was identified.
    pub fn authenticated(&self, user: &str, took: Duration) {
        self.authenticated.count(took);
        let known = self.users.iter().find(|(name, _)| *name == user);
        known.map_or(&self.other, |(_, counter)| counter).increment(1);
    }

    /// Counts a request with credentials that are not valid.
    pub fn unknown(&self, took: Duration) {
        self.unknown.count(took);
    }

    /// Counts a decision.
    pub fn decided(&self, allowed: bool, took: Duration) {
        if allowed { &self.allowed } else { &self.refused }.count(took);
    }
}
