//! Queues of keys. A key waits once, however often it is added, and no two workers process the same key at the same
//! time.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::fmt::Debug;
use std::hash::Hash;
use std::time::Duration;

use futures_util::future::join_all;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::limits;
use crate::metrics::queues::QueueMetrics;
use crate::status::ApiResult;

/// Whether a key is attempted again after a successful attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Requeue {
    /// Not until it is added again.
    Never,
    /// After this time.
    After(Duration),
}

/// A queue of keys. The number of different keys bounds it.
pub struct Queue<K> {
    state: Mutex<State<K>>,
    added: Notify,
    measured: QueueMetrics,
}

struct State<K> {
    /// Keys that workers can take, and since when.
    ready: VecDeque<(K, Instant)>,
    /// The keys in `ready`.
    waiting: HashSet<K>,
    /// Keys that workers are processing.
    busy: HashSet<K>,
    /// Keys that were added while a worker was processing them.
    again: HashSet<K>,
    /// Keys that were put off while a worker was processing them.
    put_off: HashSet<K>,
    /// Keys that become ready later, and when.
    delayed: BTreeSet<(Instant, K)>,
    due: HashMap<K, Instant>,
    failures: HashMap<K, u32>,
}

impl<K: Clone + Eq + Hash + Ord + Debug> Queue<K> {
    /// Returns an empty queue.
    pub fn new(measured: QueueMetrics) -> Self {
        let state = State {
            ready: VecDeque::new(),
            waiting: HashSet::new(),
            busy: HashSet::new(),
            again: HashSet::new(),
            put_off: HashSet::new(),
            delayed: BTreeSet::new(),
            due: HashMap::new(),
            failures: HashMap::new(),
        };
        Self { state: Mutex::new(state), added: Notify::new(), measured }
    }

    /// Adds a key.
    pub fn add(&self, key: K) {
        let waiting = {
            let mut state = self.state.lock();
            state.add(key);
            state.ready.len()
        };
        self.measured.added(waiting);
        self.added.notify_one();
    }

    /// Adds a key after a delay, or earlier if it is already due earlier.
    pub fn add_after(&self, key: K, delay: Duration) {
        self.state.lock().delay(key, Instant::now() + delay);
        self.added.notify_one();
    }

    /// Adds a key after a delay and not before, even if it was due earlier or a worker is processing it.
    pub fn put_off(&self, key: K, delay: Duration) {
        self.state.lock().put_off(key, Instant::now() + delay);
        self.added.notify_one();
    }

    /// Calls `attempt` for each key, for up to `workers` keys concurrently, for ever. Failed attempts are retried with
    /// growing delays.
    pub async fn work<F: Future<Output = ApiResult<Requeue>>>(&self, workers: usize, attempt: impl Fn(K) -> F) {
        join_all((0..workers).map(|_| async {
            loop {
                let key = self.next().await;
                let began = Instant::now();
                let outcome = attempt(key.clone()).await;
                self.measured.finished(began.elapsed(), outcome.is_err());
                if let Err(error) = &outcome {
                    tracing::debug!(?key, %error, "attempt failed");
                }
                self.finish(key, outcome.ok());
            }
        }))
        .await;
    }

    /// Waits for the next key. The caller must give it back by [`Queue::finish`].
    async fn next(&self) -> K {
        loop {
            let due = {
                let mut state = self.state.lock();
                let now = Instant::now();
                state.ripen(now);
                if let Some((key, since)) = state.take() {
                    self.measured.taken(state.ready.len(), now.saturating_duration_since(since));
                    return key;
                }
                state.delayed.first().map(|(due, _)| *due)
            };
            match due {
                Some(due) => drop(tokio::time::timeout_at(due, self.added.notified()).await),
                None => self.added.notified().await,
            }
        }
    }

    /// Gives a key back. `then` is `None` if the attempt failed.
    fn finish(&self, key: K, then: Option<Requeue>) {
        let mut state = self.state.lock();
        state.busy.remove(&key);
        let delay = match then {
            Some(then) => {
                state.failures.remove(&key);
                match then {
                    Requeue::Never => None,
                    Requeue::After(delay) => Some(delay),
                }
            }
            None => {
                let failures = state.failures.entry(key.clone()).or_default();
                let delay = backoff(*failures);
                *failures += 1;
                Some(delay)
            }
        };
        let put_off = state.put_off.remove(&key);
        if let Some(delay) = delay.filter(|_| !put_off) {
            state.delay(key.clone(), Instant::now() + delay);
        }
        if state.again.remove(&key) {
            state.add(key);
        }
        drop(state);
        self.added.notify_one();
    }
}

fn backoff(failures: u32) -> Duration {
    limits::CONTROLLER_BACKOFF_MIN.saturating_mul(1 << failures.min(16)).min(limits::CONTROLLER_BACKOFF)
}

impl<K: Clone + Eq + Hash + Ord> State<K> {
    fn add(&mut self, key: K) {
        if let Some(due) = self.due.remove(&key) {
            self.delayed.remove(&(due, key.clone()));
        }
        if self.busy.contains(&key) {
            self.again.insert(key);
        } else if self.waiting.insert(key.clone()) {
            self.ready.push_back((key, Instant::now()));
        }
    }

    fn delay(&mut self, key: K, due: Instant) {
        if self.waiting.contains(&key) || self.due.get(&key).is_some_and(|earlier| *earlier <= due) {
            return;
        }
        self.set_due(key, due);
    }

    fn put_off(&mut self, key: K, due: Instant) {
        if self.waiting.remove(&key) {
            self.ready.retain(|(ready, _)| *ready != key);
        }
        self.again.remove(&key);
        if self.busy.contains(&key) {
            self.put_off.insert(key.clone());
        }
        self.set_due(key, due);
    }

    fn set_due(&mut self, key: K, due: Instant) {
        if let Some(other) = self.due.insert(key.clone(), due) {
            self.delayed.remove(&(other, key.clone()));
        }
        self.delayed.insert((due, key));
    }

    fn ripen(&mut self, now: Instant) {
        while let Some((due, key)) = self.delayed.pop_first() {
            if due > now {
                self.delayed.insert((due, key));
                return;
            }
            self.due.remove(&key);
            self.add(key);
        }
    }

    fn take(&mut self) -> Option<(K, Instant)> {
        let (key, since) = self.ready.pop_front()?;
        self.waiting.remove(&key);
        self.busy.insert(key.clone());
        Some((key, since))
    }
}

impl<K> Drop for Queue<K> {
    fn drop(&mut self) {
        self.measured.gone();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Metrics;

    fn measured() -> QueueMetrics {
        QueueMetrics::named(Metrics::default().meter(), "test")
    }

    #[actix_web::test]
    async fn a_key_waits_once_and_comes_back_when_added_meanwhile() {
        let queue = Queue::new(measured());
        queue.add(1);
        queue.add(1);
        queue.add(2);
        assert_eq!(queue.next().await, 1);
        queue.add(1);
        assert_eq!(queue.next().await, 2);
        assert!(queue.state.lock().ready.is_empty(), "nobody else gets a key that a worker has");
        queue.finish(1, Some(Requeue::Never));
        assert_eq!(queue.next().await, 1);
    }

    #[actix_web::test]
    async fn failures_come_back_later_and_later() {
        let queue = Queue::new(measured());
        queue.add("a");
        let begun = Instant::now();
        for _ in 0..3 {
            let key = queue.next().await;
            queue.finish(key, None);
        }
        assert_eq!(queue.next().await, "a");
        assert!(begun.elapsed() >= limits::CONTROLLER_BACKOFF_MIN * 7);
        queue.finish("a", Some(Requeue::After(Duration::from_secs(60))));
        queue.add("a");
        assert_eq!(queue.next().await, "a", "what is added does not wait for its delay");
        assert!(queue.state.lock().delayed.is_empty() && queue.state.lock().failures.is_empty());
        assert_eq!(backoff(40), limits::CONTROLLER_BACKOFF);
    }

    #[tokio::test(start_paused = true)]
    async fn a_postponed_key_is_not_attempted_earlier() {
        let queue = Queue::new(measured());
        let (begun, later) = (Instant::now(), Duration::from_secs(1));
        queue.add("ready");
        queue.put_off("ready", later);
        queue.add_after("delayed", Duration::ZERO);
        queue.put_off("delayed", later);
        for (key, then) in [("failed", None), ("again", Some(Requeue::After(Duration::ZERO)))] {
            queue.add(key);
            assert_eq!(queue.next().await, key);
            queue.add(key);
            queue.put_off(key, later);
            queue.finish(key, then);
        }
        let mut taken = Vec::new();
        for _ in 0..4 {
            taken.push(queue.next().await);
            assert!(begun.elapsed() >= later, "{taken:?}");
        }
        taken.sort_unstable();
        assert_eq!(taken, ["again", "delayed", "failed", "ready"]);
        queue.put_off("first", later);
        queue.add("first");
        assert_eq!(queue.next().await, "first", "whoever adds it wants it now");
        taken.push("first");
        taken.into_iter().for_each(|key| queue.finish(key, Some(Requeue::Never)));
        let state = queue.state.lock();
        assert!(state.put_off.is_empty() && state.due.is_empty() && state.delayed.is_empty());
    }
}
