//! Notices threads that do not come back: what is computed on one of them keeps everybody waiting who is served there.
//!
//! Each thread notes what it is about to do, and answers when it is asked, which it cannot while it computes. A thread
//! of this module asks, and tells of those that have not answered in time, with what they noted.

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

use self::judge::{Judge, Seldom, Verdict};
pub use self::work::{Stage, Work};
use crate::limits;
use crate::metrics::Metrics;

thread_local! {
    /// What this thread says of itself, if somebody listens.
    static HERE: Cell<Option<&'static Thread>> = const { Cell::new(None) };
}

/// What a thread says of itself. There are as many as threads, and they are never given back.
#[derive(Default)]
struct Thread {
    kind: &'static str,
    /// What it does, as bits of [`Work`].
    work: AtomicU64,
    asked: AtomicU64,
    answered: AtomicU64,
    task: AtomicWaker,
}

/// Does a part of some work: what it is, until this returns.
pub fn during<T>(work: &mut Work, part: impl FnOnce() -> T) -> T {
    let Some(here) = HERE.get() else { return part() };
    here.work.store(work.bits(), Ordering::Relaxed);
    let done = part();
    *work = Work::of_bits(here.work.load(Ordering::Relaxed));
    here.work.store(0, Ordering::Relaxed);
    done
}

/// Notes what is done from here on, of what [`during`] surrounds.
pub fn note(work: Work) {
    if let Some(here) = HERE.get() {
        here.work.store(work.bits(), Ordering::Relaxed);
    }
}

/// Watches threads. Clones are the same.
#[derive(Clone, Default)]
pub struct Watchdog(Arc<Threads>);

#[derive(Default)]
struct Threads(Mutex<Vec<(&'static Thread, Judge)>>);

impl std::fmt::Debug for Watchdog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watchdog").finish_non_exhaustive()
    }
}

impl Watchdog {
    /// What a thread runs beside its work to be watched; `kind` says what it is for.
    pub fn attend(&self, kind: &'static str) -> LocalBoxFuture<'static, ()> {
        self.attendant(kind)()
    }

    /// Makes that for whoever starts the thread.
    pub fn attendant(&self, kind: &'static str) -> impl Fn() -> LocalBoxFuture<'static, ()> + Send + Sync + use<> {
        let threads = Arc::downgrade(&self.0);
        move || attend(kind, threads.clone())
    }

    /// Begins to watch, for as long as there is a clone of this. `describe` says what resource a work is about.
    ///
    /// # Errors
    /// When there can be no thread for that.
    pub fn start(
        &self,
        metrics: &Metrics,
        describe: impl Fn(Work) -> Option<String> + Send + 'static,
    ) -> std::io::Result<()> {
        let counters = KINDS.map(|kind| (kind, metrics.stalls(kind)));
        let threads = Arc::downgrade(&self.0);
        let run = move || watch(&threads, &counters, &describe);
        std::thread::Builder::new().name("watchdog".into()).spawn(run).map(drop)
    }
}

/// Answers for a thread what it is asked.
fn attend(kind: &'static str, threads: Weak<Threads>) -> LocalBoxFuture<'static, ()> {
    Box::pin(async move {
        let Some(watched) = threads.upgrade() else { return };
        let thread: &'static Thread = Box::leak(Box::new(Thread { kind, ..Thread::default() }));
        watched.0.lock().push((thread, Judge::default()));
        drop(watched);
        HERE.set(Some(thread));
        let _gone = Gone(thread, threads);
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
/// The thread of the store.
pub const STORE: &str = "store";
const KINDS: [&str; 2] = [WORKER, STORE];

/// A thread that has ended is not asked any more.
struct Gone(&'static Thread, Weak<Threads>);

impl Drop for Gone {
    fn drop(&mut self) {
        HERE.set(None);
        if let Some(threads) = self.1.upgrade() {
            threads.0.lock().retain(|(thread, _)| !std::ptr::eq(*thread, self.0));
        }
    }
}

fn watch(threads: &Weak<Threads>, counters: &[(&str, Counter)], describe: &dyn Fn(Work) -> Option<String>) {
    let (began, mut seldom) = (Instant::now(), Seldom::default());
    let mut last = Duration::ZERO;
    loop {
        std::thread::sleep(limits::WATCHDOG_INTERVAL);
        let Some(threads) = threads.upgrade() else { return };
        let now = began.elapsed();
        // Where all threads stood still, as those of a machine that was paused, none of them is to blame.
        let paused = now - last > 3 * limits::WATCHDOG_INTERVAL;
        last = now;
        for (thread, judge) in threads.0.lock().iter_mut() {
            let work = Work::of_bits(thread.work.load(Ordering::Relaxed));
            match judge.look(now, paused, thread.answered.load(Ordering::Acquire), work) {
                Verdict::Fine => {}
                Verdict::Ask(number) => {
                    thread.asked.store(number, Ordering::Release);
                    thread.task.wake();
                }
                Verdict::Stalled(since) => {
                    let counter = counters.iter().find(|(kind, _)| *kind == thread.kind);
                    counter.iter().for_each(|(_, counter)| counter.increment(1));
                    if let Some(others) = seldom.may_tell(now) {
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
                            "a thread does not come back"
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
    fn what_a_thread_does_is_noted_while_it_does() {
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
    fn who_is_not_watched_works_all_the_same() {
        let mut work = Work::new(Stage::Sending, "GET", None);
        note(work);
        assert_eq!(during(&mut work, || 1), 1);
    }
}
