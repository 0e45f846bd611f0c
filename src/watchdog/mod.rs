//! Detects stalled threads. A task that computes for long delays all clients that the same thread serves.
//!
//! Each thread notes its present work, and answers when it is asked. It cannot answer while a task computes. A thread
//! of this module asks, and logs the threads that did not answer in time, with the work that they noted.

mod judge;
mod work;

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::task::Poll;
use std::time::{Duration, Instant};

use futures_util::future::{self, LocalBoxFuture};
use futures_util::task::AtomicWaker;
use metrics::Counter;
use parking_lot::Mutex;

use self::judge::{LogLimiter, ThreadAction, ThreadState};
pub use self::work::{Stage, Work};
use crate::limits;
use crate::metrics::Metrics;
use crate::tasks;

thread_local! {
    /// The state of the current thread, if a watchdog watches it.
    static HERE: Cell<Option<&'static Thread>> = const { Cell::new(None) };
}

/// The state that a thread shares with the watchdog. It is never freed; each thread has one.
#[derive(Default)]
struct Thread {
    kind: &'static str,
    /// Its present work, as bits of [`Work`].
    work: AtomicU64,
    /// Number of the last question to the thread.
    asked: AtomicU64,
    /// Number of the last question that the thread has answered.
    answered: AtomicU64,
    task: AtomicWaker,
}

/// Runs a part of some work, and notes the work while that part runs.
pub fn during<T>(work: &mut Work, part: impl FnOnce() -> T) -> T {
    let Some(here) = HERE.get() else { return part() };
    here.work.store(work.bits(), Ordering::Relaxed);
    let done = part();
    *work = Work::of_bits(here.work.load(Ordering::Relaxed));
    here.work.store(0, Ordering::Relaxed);
    done
}

/// Changes the work that the surrounding [`during`] has noted.
pub fn note(work: Work) {
    if let Some(here) = HERE.get() {
        here.work.store(work.bits(), Ordering::Relaxed);
    }
}

/// Watches threads. Clones share the same threads.
#[derive(Clone, Default)]
pub struct Watchdog(Arc<Threads>);

#[derive(Default)]
struct Threads(Mutex<Vec<(&'static Thread, ThreadState)>>);

impl std::fmt::Debug for Watchdog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watchdog").finish_non_exhaustive()
    }
}

impl Watchdog {
    /// Returns a future. While it is polled, the watchdog watches the thread. `kind` names the work of the thread.
    pub fn attend(&self, kind: &'static str) -> LocalBoxFuture<'static, ()> {
        self.attendant(kind)()
    }

    /// Returns a function that makes this future, for code that starts threads.
    pub fn attendant(&self, kind: &'static str) -> impl Fn() -> LocalBoxFuture<'static, ()> + Send + Sync + use<> {
        let threads = Arc::downgrade(&self.0);
        move || attend(kind, threads.clone())
    }

    /// Starts the thread that watches. It ends once all clones of this are dropped. `describe` returns the resource
    /// that some work concerns.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start(
        &self,
        metrics: &Metrics,
        describe: impl Fn(Work) -> Option<String> + Send + 'static,
    ) -> std::io::Result<()> {
        let counters = KINDS.map(|kind| (kind, metrics.stalls(kind)));
        let threads = Arc::downgrade(&self.0);
        let run = move || watch(&threads, &counters, &describe);
        tasks::thread("watchdog", None, run).map(drop)
    }
}

/// Answers the watchdog on behalf of a thread.
fn attend(kind: &'static str, threads: Weak<Threads>) -> LocalBoxFuture<'static, ()> {
    Box::pin(async move {
        let Some(watched) = threads.upgrade() else { return };
        let thread: &'static Thread = Box::leak(Box::new(Thread { kind, ..Thread::default() }));
        watched.0.lock().push((thread, ThreadState::default()));
        drop(watched);
        HERE.set(Some(thread));
        let _gone = Unwatch(thread, threads);
        future::poll_fn(|cx| {
            thread.task.register(cx.waker());
            thread.answered.store(thread.asked.load(Ordering::Acquire), Ordering::Release);
            Poll::<()>::Pending
        })
        .await;
    })
}

/// Threads that serve HTTP.
pub const WORKER: &str = "worker";
/// The thread that runs the store.
pub const STORE: &str = "store";
const KINDS: [&str; 2] = [WORKER, STORE];

/// Stops watching a thread when it ends.
struct Unwatch(&'static Thread, Weak<Threads>);

impl Drop for Unwatch {
    fn drop(&mut self) {
        HERE.set(None);
        if let Some(threads) = self.1.upgrade() {
            threads.0.lock().retain(|(thread, _)| !std::ptr::eq(*thread, self.0));
        }
    }
}

fn watch(threads: &Weak<Threads>, counters: &[(&str, Counter)], describe: &dyn Fn(Work) -> Option<String>) {
    let (began, mut limiter) = (Instant::now(), LogLimiter::default());
    let mut last = Duration::ZERO;
    loop {
        std::thread::sleep(limits::WATCHDOG_INTERVAL);
        let Some(threads) = threads.upgrade() else { return };
        let now = began.elapsed();
        // If the watchdog itself was late, the whole machine may have been paused; then no thread is to blame.
        let paused = now - last > 3 * limits::WATCHDOG_INTERVAL;
        last = now;
        for (thread, judge) in threads.0.lock().iter_mut() {
            let work = Work::of_bits(thread.work.load(Ordering::Relaxed));
            match judge.look(now, paused, thread.answered.load(Ordering::Acquire), work) {
                ThreadAction::Fine => {}
                ThreadAction::Ask(number) => {
                    thread.asked.store(number, Ordering::Release);
                    thread.task.wake();
                }
                ThreadAction::Stalled(since) => {
                    let counter = counters.iter().find(|(kind, _)| *kind == thread.kind);
                    counter.iter().for_each(|(_, counter)| counter.increment(1));
                    if let Some(others) = limiter.admit(now) {
                        let (stage, method, resource) = (work.stage(), work.method(), describe(work));
                        let resource = resource.as_deref().unwrap_or("none");
                        let milliseconds = since.as_millis() as u64;
                        let thread = thread.kind;
                        tracing::warn!(
                            thread,
                            milliseconds,
                            stage,
                            method,
                            resource,
                            others,
                            "a task blocks its thread"
                        );
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_notes_its_work_only_while_it_runs() {
        let (watchdog, system) = (Watchdog::default(), actix_web::rt::System::new());
        system.block_on(async {
            let attending = actix_web::rt::spawn(watchdog.attend(WORKER));
            actix_web::rt::task::yield_now().await;
            let thread = HERE.get().unwrap();
            let seen = || Work::of_bits(thread.work.load(Ordering::Relaxed));
            let mut work = Work::new(Stage::Arriving, "GET", None);
            during(&mut work, || {
                assert_eq!(seen().stage(), Stage::Arriving.name());
                note(Work::new(Stage::Answering, "GET", None));
                assert_eq!(seen().stage(), Stage::Answering.name());
            });
            assert_eq!((work.stage(), seen().bits()), (Stage::Answering.name(), 0));
            thread.asked.store(7, Ordering::Release);
            thread.task.wake();
            actix_web::rt::task::yield_now().await;
            assert_eq!(thread.answered.load(Ordering::Acquire), 7);
            attending.abort();
            let _ = attending.await;
            assert!(HERE.get().is_none() && watchdog.0.0.lock().is_empty());
        });
    }

    #[test]
    fn a_thread_that_is_not_watched_still_works() {
        let mut work = Work::new(Stage::Sending, "GET", None);
        note(work);
        assert_eq!(during(&mut work, || 1), 1);
    }
}
