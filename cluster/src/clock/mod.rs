//! The clock by which revisions are assigned.
//!
//! A hybrid logical clock (Kulkarni et al., "Logical Physical Clocks"): it follows the wall clock forward and never
//! back, and what others say of theirs, so that members whose wall clocks differ soon assign by the foremost of them.
//! Every frame between members tells what its sender's clock shows, which is a promise: no revision up to there will be
//! assigned by it any more. A leader acknowledges a write, and a replica shows what is most recent, only when every
//! other member has promised that much ([`HybridClock::is_promised`]). So whoever was told of a revision gets larger
//! ones from then on, of whatever group.
//!
//! Between two frames the clocks of others go on as this one does, as far as machines count seconds alike
//! ([`CLOCK_DRIFT_PARTS`]). So a promise is mostly known without asking for it.

mod group;
mod promises;
mod wall;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

pub(crate) use self::group::{Close, GroupClock};
use self::promises::{Due, Promises};
pub(crate) use self::wall::WallClock;
use crate::Revision;
use crate::limits::CLOCK_LEAD_MAX;

/// The clock of this replica; all its groups assign revisions by it. Cheap to clone.
#[derive(Clone)]
pub(crate) struct HybridClock(Arc<State>);

struct State {
    wall: WallClock,
    start: Instant,
    /// What the clock showed, or would have shown, at the start.
    origin: AtomicU64,
    /// The largest revision that is known here to be assigned, in any group. It need not be committed: too large a
    /// number does no harm.
    latest: AtomicU64,
    /// Revisions before this one were the time longer ago than the history goes back.
    outdated: AtomicU64,
    /// How many groups assign revisions by it.
    groups: AtomicUsize,
    promises: Mutex<Promises>,
    /// Told whenever a promise comes.
    promised: Notify,
    /// How many wait for that.
    waiting: AtomicUsize,
}

/// What a clock shows to others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Told {
    /// The time, as the revision that would be assigned.
    pub(crate) now: u64,
    /// The largest revision that is known to be assigned, when that is ahead of the time; otherwise 0.
    pub(crate) latest: u64,
}

/// Whose clock something was told of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Teller {
    /// The member.
    pub(crate) member: u64,
    /// Tells its processes apart: the clock of a new one may be behind that of the one before.
    pub(crate) life: u64,
}

impl HybridClock {
    /// A clock that goes forward by this one.
    pub(crate) fn new(wall: WallClock) -> HybridClock {
        HybridClock(Arc::new(State {
            wall,
            start: Instant::now(),
            origin: AtomicU64::default(),
            latest: AtomicU64::default(),
            outdated: AtomicU64::default(),
            groups: AtomicUsize::default(),
            promises: Mutex::default(),
            promised: Notify::new(),
            waiting: AtomicUsize::default(),
        }))
    }

    /// The time, as the smallest revision that may be assigned now. Never less than before.
    pub(crate) fn now(&self) -> Revision {
        let wall = Revision::from_unix_ms(self.0.wall.unix_ms());
        let elapsed = self.elapsed(); // after the wall clock: a pause in between must not set this one forward
        if seeded!(HastyLeader) {
            return wall;
        }
        if wall < Revision::LAST {
            self.follow(wall.get(), elapsed);
        }
        Revision::new(self.0.origin.load(Ordering::Acquire) + elapsed)
    }

    /// How far the wall clock of this machine is behind: others have shown a later time, or it did so itself.
    pub(crate) fn behind(&self) -> Duration {
        let wall = Revision::from_unix_ms(self.0.wall.unix_ms());
        Revision::duration(self.now().get().saturating_sub(wall.get()))
    }

    /// The largest revision that is known to be assigned.
    pub(crate) fn latest(&self) -> Revision {
        Revision::new(self.0.latest.load(Ordering::Acquire))
    }

    /// Revisions before this one were told to nobody within the history window, whether or not anything has changed
    /// since: clients may not name them any more.
    pub(crate) fn outdated(&self) -> Revision {
        Revision::new(self.0.outdated.load(Ordering::Acquire))
    }

    /// That is so up to a revision.
    pub(crate) fn outdate(&self, revision: Revision) {
        self.0.outdated.fetch_max(revision.get(), Ordering::AcqRel);
    }

    /// A revision was assigned. One that nothing can follow is no reason to assign nothing any more.
    pub(crate) fn learn(&self, revision: Revision) {
        if revision >= Revision::LAST {
            return;
        }
        self.0.latest.fetch_max(revision.get(), Ordering::AcqRel);
        // A little ahead are those who assign more than one for each moment. Further ahead is only whose clock is.
        let elapsed = self.elapsed();
        let now = self.0.origin.load(Ordering::Acquire) + elapsed;
        if revision.get() > now + Revision::span(CLOCK_LEAD_MAX) {
            self.follow(revision.get(), elapsed);
        }
    }

    /// One more group assigns revisions by it.
    pub(crate) fn serve(&self) {
        self.0.groups.fetch_add(1, Ordering::AcqRel);
    }

    /// Whether several groups assign revisions: those of one group rise whatever clocks say.
    pub(crate) fn is_shared(&self) -> bool {
        self.0.groups.load(Ordering::Acquire) > 1
    }

    /// What others are told: whatever is assigned from now on is larger. That holds because revisions are assigned on
    /// the thread on which this is told.
    pub(crate) fn tell(&self) -> Told {
        let (now, latest) = (self.now().get(), self.latest().get());
        Told { now, latest: if latest > now { latest } else { 0 } }
    }

    /// Another one was told of. `is_answer`: by an answer to what this replica asked.
    pub(crate) fn hear(&self, teller: Teller, told: Told, is_answer: bool) {
        if told.now == 0 || told.now >= Revision::LAST.get() {
            return;
        }
        let elapsed = self.elapsed();
        self.follow(told.now, elapsed);
        self.learn(Revision::new(told.latest));
        self.0.promises.lock().hear(teller, told, elapsed, is_answer);
        self.wake();
    }

    /// A process of a member is there, by a connection that was made. What one before it has promised is void.
    pub(crate) fn meet(&self, teller: Teller) {
        let elapsed = self.elapsed();
        self.0.promises.lock().meet(teller, elapsed);
    }

    /// Whether no other member assigns a revision up to this one any more, as far as they need be asked: one that is
    /// silent, deaf or gone is none that leads.
    pub(crate) fn is_promised(&self, revision: Revision) -> bool {
        self.0.promises.lock().owing(revision, self.elapsed()).next().is_none()
    }

    /// The members that have not promised that yet.
    pub(crate) fn owing(&self, revision: Revision) -> Vec<u64> {
        self.0.promises.lock().owing(revision, self.elapsed()).collect()
    }

    /// Waits until a member has.
    pub(crate) async fn promised(&self, member: u64, revision: Revision) {
        let _waiting = Waiting::begin(&self.0.waiting);
        loop {
            let promised = self.0.promised.notified();
            tokio::pin!(promised);
            promised.as_mut().enable(); // before looking
            let Due::In(ticks) = self.0.promises.lock().due(member, revision, self.elapsed()) else { return };
            let _ = timeout_at(Instant::now() + Revision::duration(ticks), promised).await;
        }
    }

    /// A member did not answer in time, whatever it says by itself, or no connection with it is left: until it answers
    /// something, or comes back, it is none that leads.
    pub(crate) fn give_up(&self, member: u64) {
        self.0.promises.lock().give_up(member);
        self.wake();
    }

    /// These are the members of all groups, as far as is known here: others lead nothing.
    pub(crate) fn know(&self, members: &BTreeSet<u64>) {
        self.0.promises.lock().know(members, self.elapsed());
    }

    fn wake(&self) {
        if self.0.waiting.load(Ordering::Acquire) > 0 {
            self.0.promised.notify_waiters();
        }
    }

    /// Shows at least this much at a time since the start.
    fn follow(&self, shown: u64, elapsed: u64) {
        let origin = shown.saturating_sub(elapsed);
        if self.0.origin.load(Ordering::Acquire) < origin {
            self.0.origin.fetch_max(origin, Ordering::AcqRel);
        }
    }

    /// How long the clock has been going, as revisions.
    fn elapsed(&self) -> u64 {
        Revision::span(self.0.start.elapsed())
    }
}

#[cfg(test)]
impl Default for HybridClock {
    fn default() -> HybridClock {
        HybridClock::new(WallClock::system())
    }
}

/// Somebody waits, until this is dropped.
struct Waiting<'a>(&'a AtomicUsize);

impl Waiting<'_> {
    fn begin(count: &AtomicUsize) -> Waiting<'_> {
        count.fetch_add(1, Ordering::AcqRel);
        Waiting(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A clock that can be set, in milliseconds.
    fn settable(unix_ms: u64) -> (Arc<AtomicU64>, HybridClock) {
        let wall = Arc::new(AtomicU64::new(unix_ms));
        let shown = wall.clone();
        (wall, HybridClock::new(WallClock::new(move || shown.load(Ordering::Relaxed))))
    }

    const BEGIN_MS: u64 = 1_790_000_000_000;
    const HOUR_MS: u64 = 3_600_000;

    #[tokio::test(start_paused = true)]
    async fn goes_forward_with_the_wall_clock_and_never_back() {
        let (wall, clock) = settable(BEGIN_MS);
        assert_eq!(clock.now(), Revision::from_unix_ms(BEGIN_MS));
        wall.store(BEGIN_MS - HOUR_MS, Ordering::Relaxed);
        tokio::time::advance(Duration::from_millis(5)).await;
        assert_eq!(clock.now(), Revision::from_unix_ms(BEGIN_MS + 5));
        assert_eq!(clock.behind(), Duration::from_millis(HOUR_MS + 5));
        wall.store(BEGIN_MS + HOUR_MS, Ordering::Relaxed);
        assert_eq!(clock.now(), Revision::from_unix_ms(BEGIN_MS + HOUR_MS));
        wall.store(u64::MAX, Ordering::Relaxed);
        assert_eq!(clock.now(), Revision::from_unix_ms(BEGIN_MS + HOUR_MS), "it uses up no revisions");
    }

    #[tokio::test(start_paused = true)]
    async fn follows_the_foremost_of_the_others() {
        let ((_, behind), (_, ahead)) = (settable(BEGIN_MS), settable(BEGIN_MS + HOUR_MS));
        let (one, other) = (Teller { member: 1, life: 1 }, Teller { member: 2, life: 1 });
        behind.hear(other, ahead.tell(), false);
        ahead.hear(one, behind.tell(), false);
        assert_eq!(behind.now(), ahead.now());
        assert!(behind.is_promised(ahead.now()));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(behind.now(), ahead.now(), "both go on alike");
        let absurd = Told { now: Revision::LAST.get(), latest: 0 };
        behind.hear(other, absurd, false);
        assert_eq!(behind.now(), ahead.now());
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_known_to_be_assigned_is_told_and_far_ahead_is_the_time() {
        let (_, clock) = settable(BEGIN_MS);
        let near = Revision::new(clock.now().get() + 1_000);
        clock.learn(near);
        assert_eq!(clock.now(), Revision::from_unix_ms(BEGIN_MS));
        assert_eq!(clock.tell(), Told { now: clock.now().get(), latest: near.get() });
        let far = Revision::from_unix_ms(BEGIN_MS + HOUR_MS);
        clock.learn(far);
        assert_eq!((clock.now(), clock.tell().latest), (far, 0));
        clock.learn(Revision::LAST);
        assert_eq!(clock.latest(), far);
    }

    #[tokio::test(start_paused = true)]
    async fn a_promise_is_waited_for() {
        let ((_, behind), (wall, ahead)) = (settable(BEGIN_MS), settable(BEGIN_MS));
        let teller = Teller { member: 1, life: 1 };
        ahead.meet(teller);
        ahead.hear(teller, behind.tell(), false);
        wall.fetch_add(50, Ordering::Relaxed);
        let (assigned, begin) = (ahead.now(), Instant::now());
        assert!(!ahead.is_promised(assigned));
        ahead.promised(1, assigned).await; // by what it would show by itself after that time
        assert!(begin.elapsed() > Duration::from_millis(50) && begin.elapsed() < Duration::from_millis(60));
        wall.fetch_add(HOUR_MS, Ordering::Relaxed);
        let (assigned, begin) = (ahead.now(), Instant::now());
        let told = async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            behind.hear(Teller { member: 2, life: 1 }, ahead.tell(), false);
            ahead.hear(teller, behind.tell(), false);
        };
        tokio::join!(ahead.promised(1, assigned), told);
        assert_eq!(begin.elapsed(), Duration::from_millis(20));
    }
}
