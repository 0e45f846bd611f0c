//! Rates of events: the limits for all events, for those of one namespace, of one user, and of one source about one
//! object (Configuration of `eventratelimit.admission.k8s.io`).

use std::collections::{BTreeMap, HashMap};
use std::time::Instant;

use flotilla_proto::value::Value;
use parking_lot::Mutex;

use crate::field::{Errors, Path};
use crate::limits;

const KINDS: [(&str, LimitType); 4] = [
    ("Namespace", LimitType::Namespace),
    ("Server", LimitType::Server),
    ("SourceAndObject", LimitType::SourceAndObject),
    ("User", LimitType::User),
];

/// The property that the events of one limit share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LimitType {
    /// Nothing.
    Server,
    /// The namespace.
    Namespace,
    /// The user who writes them.
    User,
    /// Their source, and the object that they are about.
    SourceAndObject,
}

/// The limits.
#[derive(Debug, Default)]
pub struct EventRates(Vec<Limit>);

#[derive(Debug)]
struct Limit {
    kind: LimitType,
    per_second: f64,
    burst: f64,
    /// The largest number of keys that are remembered. A key that was forgotten has its whole burst again.
    keys_max: usize,
    keys: Mutex<Keys>,
}

/// The rest of the limit for each key that was used lately.
#[derive(Debug, Default)]
struct Keys {
    left: HashMap<String, Left>,
    /// The keys in the order of their last use.
    by_use: BTreeMap<u64, String>,
    uses: u64,
}

#[derive(Debug)]
struct Left {
    events: f64,
    at: Instant,
    used: u64,
}

impl EventRates {
    /// Reads the limits; adds an error for each that is wrong.
    pub fn read(document: &Value, errors: &mut Errors) -> Self {
        let root = Path::root("limits");
        let list = document.list_at(&["limits"]);
        if list.is_empty() {
            errors.invalid(&root, document.at(&["limits"]), "must not be empty");
        }
        Self(list.iter().enumerate().filter_map(|(at, limit)| Limit::read(limit, &root.index(at), errors)).collect())
    }

    /// Returns whether no limit is configured.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Counts an event. `Err` names the limits that it exceeds.
    pub fn accept(&self, event: &Value, namespace: &str, user: &str, now: Instant) -> Result<(), String> {
        let mut exceeded: Vec<String> = Vec::new();
        for limit in &self.0 {
            let key = limit.kind.key(event, namespace, user);
            if !limit.take(&key, now) {
                exceeded.push(format!("limit reached on type {} for key {key}", limit.kind.name()));
            }
        }
        match exceeded.len() {
            0 => Ok(()),
            1 => Err(exceeded.swap_remove(0)),
            _ => Err(format!("[{}]", exceeded.join(", "))),
        }
    }
}

impl LimitType {
    fn name(self) -> &'static str {
        KINDS.iter().find(|(_, kind)| *kind == self).map_or("", |(name, _)| name)
    }

    fn key(self, event: &Value, namespace: &str, user: &str) -> String {
        match self {
            Self::Server => String::new(),
            Self::Namespace => namespace.to_owned(),
            Self::User => user.to_owned(),
            Self::SourceAndObject => {
                let source = ["component", "host"].map(|field| event.str_at(&["source", field]));
                let object = ["kind", "namespace", "name", "uid", "apiVersion"];
                let object = object.map(|field| event.str_at(&["involvedObject", field]));
                source.into_iter().chain(object).collect()
            }
        }
    }
}

impl Limit {
    fn read(limit: &Value, path: &Path<'_>, errors: &mut Errors) -> Option<Self> {
        let name = limit.str_at(&["type"]);
        let kind = KINDS.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind);
        if kind.is_none() {
            errors.not_supported(&path.child("type"), name, &KINDS.map(|(name, _)| name));
        }
        let mut number = |field: &str, is_right: fn(i64) -> bool, why: &str| {
            let number = limit.at(&[field]).as_int().unwrap_or(0);
            if !is_right(number) {
                errors.invalid(&path.child(field), &Value::from(number), why);
            }
            number
        };
        let burst = number("burst", |burst| burst > 0, "must be positive");
        let per_second = number("qps", |rate| rate > 0, "must be positive");
        let keys_max = match kind {
            Some(LimitType::Server) => 1,
            _ => number("cacheSize", |size| size >= 0, "must not be negative"),
        };
        let keys_max = usize::try_from(keys_max).ok().filter(|max| *max > 0).unwrap_or(limits::EVENT_RATE_KEYS);
        Some(Self { kind: kind?, per_second: per_second as f64, burst: burst as f64, keys_max, keys: Mutex::default() })
    }

    /// Takes one event from the rest of a key's limit. Returns false if less than one event is left.
    fn take(&self, key: &str, now: Instant) -> bool {
        let mut keys = self.keys.lock();
        let Keys { left, by_use, uses } = &mut *keys;
        *uses += 1;
        if let Some(left) = left.get_mut(key) {
            let earned = now.saturating_duration_since(left.at).as_secs_f64() * self.per_second;
            left.events = (left.events + earned).min(self.burst);
            left.at = now;
            let key = by_use.remove(&left.used).unwrap_or_else(|| key.to_owned());
            left.used = *uses;
            by_use.insert(*uses, key);
        } else {
            left.insert(key.to_owned(), Left { events: self.burst, at: now, used: *uses });
            by_use.insert(*uses, key.to_owned());
            if left.len() > self.keys_max
                && let Some((_, oldest)) = by_use.pop_first()
            {
                left.remove(&oldest);
            }
        }
        let Some(left) = left.get_mut(key).filter(|left| left.events >= 1.0) else { return false };
        left.events -= 1.0;
        true
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use flotilla_proto::value;

    use super::*;

    fn rates(limits: Value) -> (EventRates, Vec<String>) {
        let mut errors = Errors::default();
        let rates = EventRates::read(&value!({"limits": limits}), &mut errors);
        (rates, errors.0.iter().map(|error| error.field.clone()).collect())
    }

    fn event(name: &str) -> Value {
        value!({"source": {"component": "kubelet"}, "involvedObject": {"kind": "Pod", "name": name}})
    }

    #[test]
    fn a_spent_burst_comes_back_at_the_rate() {
        let (rates, errors) = rates(value!([{"type": "Namespace", "qps": 2, "burst": 3}]));
        assert!(errors.is_empty());
        let (began, event) = (Instant::now(), event("a"));
        let accept =
            |namespace: &str, after: u64| rates.accept(&event, namespace, "ann", began + Duration::from_millis(after));
        assert!((0..3).all(|_| accept("one", 0).is_ok()));
        assert_eq!(accept("one", 0).unwrap_err(), "limit reached on type Namespace for key one");
        assert!(accept("other", 0).is_ok());
        assert!(accept("one", 499).is_err() && accept("one", 500).is_ok() && accept("one", 501).is_err());
        assert!((0..3).all(|_| accept("one", 60_000).is_ok()) && accept("one", 60_000).is_err());
    }

    #[test]
    fn every_limit_counts() {
        let (rates, _) = rates(value!([
            {"type": "Server", "qps": 1, "burst": 2}, {"type": "User", "qps": 1, "burst": 1},
            {"type": "SourceAndObject", "qps": 1, "burst": 1},
        ]));
        let now = Instant::now();
        assert!(rates.accept(&event("a"), "n", "ann", now).is_ok());
        assert!(rates.accept(&event("b"), "n", "bob", now).is_ok());
        let expected = "[limit reached on type Server for key , limit reached on type User for key ann, \
            limit reached on type SourceAndObject for key kubeletPoda]";
        assert_eq!(rates.accept(&event("a"), "n", "ann", now).unwrap_err(), expected);
    }

    #[test]
    fn the_least_recently_used_key_is_forgotten() {
        let (rates, _) = rates(value!([{"type": "User", "qps": 1, "burst": 1, "cacheSize": 2}]));
        let now = Instant::now();
        let accept = |user: &str| rates.accept(&event("a"), "n", user, now).is_ok();
        assert!(accept("a") && accept("b") && !accept("a"));
        assert!(accept("c"), "b is forgotten");
        assert!(!accept("a") && accept("b"));
    }

    #[test]
    fn wrong_limits_are_named() {
        assert_eq!(rates(value!([])).1, ["limits"]);
        let (_, errors) = rates(value!([{"type": "Pod", "burst": 1, "cacheSize": (-1)}]));
        assert_eq!(errors, ["limits[0].type", "limits[0].qps", "limits[0].cacheSize"]);
    }
}
