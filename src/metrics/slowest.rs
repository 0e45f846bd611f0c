//! The slowest recent requests.
//!
//! A request that is no slower than the kept ones costs two loads of atomics. Only a slower one, or the first one after
//! the oldest kept one has expired, takes a lock.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::limits;

/// A slow request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SlowRequest {
    /// The time of the answer, in seconds since 1970.
    pub at_seconds: f64,
    /// Its duration, in seconds.
    pub seconds: f64,
    /// The verb, as in the metrics of requests.
    pub verb: String,
    /// The resource, with its group and subresource, as in `apps/deployments/scale`.
    pub resource: String,
    /// Its path without the query, cut to [`limits::SLOW_REQUEST_PATH_CHARACTERS`].
    pub path: String,
    /// HTTP status code.
    pub code: u16,
    /// Bytes of its answer.
    pub bytes: u64,
    /// Its header `User-Agent`, cut to [`limits::SLOW_REQUEST_USER_AGENT_CHARACTERS`].
    pub user_agent: String,
}

struct KeptRequest {
    took: u64,
    /// The time of its end, in seconds since `began`.
    at: u64,
    request: SlowRequest,
}

/// Keeps the slowest requests of a sliding window of time.
pub struct Slowest {
    began: Instant,
    /// The duration above which requests are kept, in nanoseconds.
    threshold: AtomicU64,
    /// The time at which the oldest kept request expires, in seconds since `began`.
    expires_at: AtomicU64,
    kept: Mutex<Vec<KeptRequest>>,
}

impl Default for Slowest {
    fn default() -> Self {
        let (threshold, expires_at) = (AtomicU64::new(0), AtomicU64::new(u64::MAX));
        Self { began: Instant::now(), threshold, expires_at, kept: Mutex::default() }
    }
}

impl Slowest {
    fn seconds(&self, at: Instant) -> u64 {
        at.saturating_duration_since(self.began).as_secs()
    }

    /// Keeps a request that ended `at` if it is one of the slowest. Only then is `describe` called.
    pub fn ended(&self, at: Instant, took: Duration, describe: impl FnOnce() -> SlowRequest) {
        let nanoseconds = took.as_nanos() as u64;
        let now = self.seconds(at);
        if nanoseconds <= self.threshold.load(Ordering::Relaxed) && now < self.expires_at.load(Ordering::Relaxed) {
            return;
        }
        self.keep(KeptRequest { took: nanoseconds, at: now, request: describe() }, now);
    }

    fn keep(&self, new: KeptRequest, now: u64) {
        let mut kept = self.kept.lock();
        kept.push(new);
        self.tidy(&mut kept, now);
    }

    /// Drops expired requests and those beyond the bound, and sets the threshold for new ones.
    fn tidy(&self, kept: &mut Vec<KeptRequest>, now: u64) {
        let window = limits::SLOW_REQUESTS_WINDOW.as_secs();
        kept.retain(|it| it.at + window > now);
        kept.sort_by_key(|it| std::cmp::Reverse(it.took));
        kept.truncate(limits::SLOW_REQUESTS);
        let is_full = kept.len() == limits::SLOW_REQUESTS;
        let threshold = kept.last().filter(|_| is_full).map_or(0, |it| it.took);
        self.threshold.store(threshold, Ordering::Relaxed);
        let expires_at = kept.iter().map(|it| it.at + window).min();
        self.expires_at.store(expires_at.unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Returns the kept requests of the window, the slowest first.
    pub fn all(&self, now: Instant) -> Vec<SlowRequest> {
        let mut kept = self.kept.lock();
        self.tidy(&mut kept, self.seconds(now));
        kept.iter().map(|it| it.request.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slow(path: &str) -> SlowRequest {
        let (verb, resource, user_agent) = ("GET".into(), "pods".into(), String::new());
        SlowRequest {
            at_seconds: 0.0,
            seconds: 0.0,
            verb,
            resource,
            path: path.into(),
            code: 200,
            bytes: 0,
            user_agent,
        }
    }

    #[test]
    fn the_slowest_of_a_window_are_kept() {
        let slowest = Slowest::default();
        let begin = Instant::now();
        let ms = Duration::from_millis;
        for took in 1..=100 {
            slowest.ended(begin, ms(took), || slow(&took.to_string()));
        }
        let paths: Vec<_> = slowest.all(begin).into_iter().map(|it| it.path).collect();
        assert_eq!((paths.len(), &*paths[0]), (limits::SLOW_REQUESTS, "100"));
        slowest.ended(begin, ms(2), || panic!("it is not kept"));
        let later = begin + limits::SLOW_REQUESTS_WINDOW + ms(2_000);
        slowest.ended(later, ms(2), || slow("later"));
        let paths: Vec<_> = slowest.all(later).into_iter().map(|it| it.path).collect();
        assert_eq!(paths, ["later"], "the earlier ones have expired");
        assert!(slowest.all(later + limits::SLOW_REQUESTS_WINDOW + ms(2_000)).is_empty());
    }
}
