//! The clock by which revisions are assigned.
//!
//! A hybrid logical clock (Kulkarni et al., "Logical Physical Clocks"): it follows the wall clock forward but never
//! back, and it follows the clocks of other members, so that members whose wall clocks differ soon assign revisions by
//! the one that is furthest ahead. Every frame between members contains a reading of the sender's clock. That is a
//! promise: the sender will assign no revision up to it any more. A leader acknowledges a write, and a replica answers
//! a consistent read, only when every other member has promised to assign larger revisions
//! ([`HybridClock::is_promised`]). A client that has received a revision therefore receives larger ones later, from
//! every group.
//!
//! Between two frames the clock of another member is assumed to advance like this one, within the drift that machines
//! may have ([`CLOCK_DRIFT_PARTS`]). So a promise is mostly known without asking for it.

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
use self::promises::{PromiseDue, Promises};
pub(crate) use self::wall::WallClock;
use crate::Revision;
use crate::limits::CLOCK_LEAD_MAX;

/// The clock of this replica, by which all its groups assign revisions. Cheap to clone.
#[derive(Clone)]
pub(crate) struct HybridClock(Arc<State>);

struct State {
    wall: WallClock,
    start: Instant,
    /// The reading of the clock at the start, raised whenever the clock is set forward.
    origin: AtomicU64,
    /// The largest revision that is known here to have been assigned, in any group. It need not be committed: a number
    /// that is too large does no harm.
    latest: AtomicU64,
    /// The clock passed all revisions below this one longer ago than the history window.
    outdated: AtomicU64,
    /// The number of groups that assign revisions by this clock.
    groups: AtomicUsize,
    promises: Mutex<Promises>,
    /// Notified whenever a promise arrives.
    promise_arrived: Notify,
    /// The number of tasks that wait for that.
    waiting: AtomicUsize,
}

/// The state of a clock, as it is sent to other members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClockReading {
    /// The time, as the smallest revision that may be assigned.
    pub(crate) now: u64,
    /// The largest revision that is known to have been assigned, if it is ahead of the time; otherwise 0.
    pub(crate) latest: u64,
}

/// A process of a member, which reports its clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MemberProcess {
    /// The id of the member.
    pub(crate) member: u64,
    /// Distinguishes the processes of a member: the clock of a new one may be behind that of the former.
    pub(crate) life: u64,
}

impl HybridClock {
    /// Returns a clock that follows the given wall clock.
    pub(crate) fn new(wall: WallClock) -> HybridClock {
        HybridClock(Arc::new(State {
            wall,
            start: Instant::now(),
            origin: AtomicU64::default(),
            latest: AtomicU64::default(),
            outdated: AtomicU64::default(),
            groups: AtomicUsize::default(),
            promises: Mutex::default(),
            promise_arrived: Notify::new(),
            waiting: AtomicUsize::default(),
        }))
    }

    /// Returns the time, as the smallest revision that may be assigned now. It never goes back.
    pub(crate) fn now(&self) -> Revision {
        let wall = Revision::from_unix_ms(self.0.wall.unix_ms());
        let elapsed = self.elapsed(); // read after the wall clock: a pause in between must not set this clock forward
        if seeded!(HastyLeader) {
            return wall;
        }
        if wall < Revision::LAST {
            self.follow(wall.get(), elapsed);
        }
        Revision::new(self.0.origin.load(Ordering::Acquire) + elapsed)
    }

    /// Returns how far this machine's wall clock is behind the latest time that it, or another member, has shown.
    pub(crate) fn behind(&self) -> Duration {
        let wall = Revision::from_unix_ms(self.0.wall.unix_ms());
        Revision::duration(self.now().get().saturating_sub(wall.get()))
    }

    /// Returns the largest revision that is known to have been assigned.
    pub(crate) fn latest(&self) -> Revision {
        Revision::new(self.0.latest.load(Ordering::Acquire))
    }

    /// Returns the revision below which revisions are outdated: clients have not received them within the history
    /// window, whether or not anything has changed since, and may not name them any more.
    pub(crate) fn outdated(&self) -> Revision {
        Revision::new(self.0.outdated.load(Ordering::Acquire))
    }

    /// Marks revisions below this one as outdated.
    pub(crate) fn outdate(&self, revision: Revision) {
        self.0.outdated.fetch_max(revision.get(), Ordering::AcqRel);
    }

    /// Records that a revision was assigned. Ignores the last possible revision, so that groups can go on assigning.
    pub(crate) fn learn(&self, revision: Revision) {
        if revision >= Revision::LAST {
            return;
        }
        self.0.latest.fetch_max(revision.get(), Ordering::AcqRel);
        // Groups that assign more revisions than fit into a moment get a little ahead of the clock. A revision that is
        // further ahead comes from a member whose clock is ahead.
        let elapsed = self.elapsed();
        let now = self.0.origin.load(Ordering::Acquire) + elapsed;
        if revision.get() > now + Revision::span(CLOCK_LEAD_MAX) {
            self.follow(revision.get(), elapsed);
        }
    }

    /// Counts one more group that assigns revisions by this clock.
    pub(crate) fn serve(&self) {
        self.0.groups.fetch_add(1, Ordering::AcqRel);
    }

    /// Returns whether several groups assign revisions. Those of a single group rise whatever the clocks show.
    pub(crate) fn is_shared(&self) -> bool {
        self.0.groups.load(Ordering::Acquire) > 1
    }

    /// Returns the reading that is sent to other members. It is a promise: every revision that is assigned from now on
    /// is larger. That holds because revisions are assigned on the thread that calls this.
    pub(crate) fn reading(&self) -> ClockReading {
        let (now, latest) = (self.now().get(), self.latest().get());
        ClockReading { now, latest: if latest > now { latest } else { 0 } }
    }

    /// Records a reading of the clock of another process. `is_answer` says whether the reading came with an answer to a
    /// call of this replica.
    pub(crate) fn receive(&self, process: MemberProcess, reading: ClockReading, is_answer: bool) {
        if reading.now == 0 || reading.now >= Revision::LAST.get() {
            return;
        }
        let elapsed = self.elapsed();
        self.follow(reading.now, elapsed);
        self.learn(Revision::new(reading.latest));
        self.0.promises.lock().receive(process, reading, elapsed, is_answer);
        self.wake();
    }

    /// Records that a new connection was made to a process of a member. Promises of its former processes become void.
    pub(crate) fn note_connection(&self, process: MemberProcess) {
        let elapsed = self.elapsed();
        self.0.promises.lock().note_connection(process, elapsed);
    }

    /// Returns whether no other member will assign a revision up to this one. Members that are silent, do not answer or
    /// have left need not promise it, since they cannot lead.
    pub(crate) fn is_promised(&self, revision: Revision) -> bool {
        self.0.promises.lock().owing(revision, self.elapsed()).next().is_none()
    }

    /// Returns the members that have yet to promise that they assign no revision up to this one.
    pub(crate) fn owing(&self, revision: Revision) -> Vec<u64> {
        self.0.promises.lock().owing(revision, self.elapsed()).collect()
    }

    /// Waits until a member has promised that it assigns no revision up to this one, or need not promise it any more.
    pub(crate) async fn wait_promised(&self, member: u64, revision: Revision) {
        let _waiting = WaitingTask::begin(&self.0.waiting);
        loop {
            let arrived = self.0.promise_arrived.notified();
            tokio::pin!(arrived);
            arrived.as_mut().enable(); // before looking, so that no promise is missed
            let PromiseDue::In(ticks) = self.0.promises.lock().due(member, revision, self.elapsed()) else { return };
            let _ = timeout_at(Instant::now() + Revision::duration(ticks), arrived).await;
        }
    }

    /// Records that a member did not answer in time, although it may still send, or that no connection to it is left.
    /// It is considered unable to lead until it answers something or connects again.
    pub(crate) fn give_up(&self, member: u64) {
        self.0.promises.lock().give_up(member);
        self.wake();
    }

    /// Sets the members of all groups, as far as they are known here. Other replicas lead nothing.
    pub(crate) fn set_members(&self, members: &BTreeSet<u64>) {
        self.0.promises.lock().set_members(members, self.elapsed());
    }

    fn wake(&self) {
        if self.0.waiting.load(Ordering::Acquire) > 0 {
            self.0.promise_arrived.notify_waiters();
        }
    }

    /// Sets the clock forward so that it shows at least `shown` at the time `elapsed` since the start.
    fn follow(&self, shown: u64, elapsed: u64) {
        let origin = shown.saturating_sub(elapsed);
        if self.0.origin.load(Ordering::Acquire) < origin {
            self.0.origin.fetch_max(origin, Ordering::AcqRel);
        }
    }

    /// Returns the time since the start, as a span of revisions.
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

/// Counts a waiting task until it is dropped.
struct WaitingTask<'a>(&'a AtomicUsize);

impl WaitingTask<'_> {
    fn begin(count: &AtomicUsize) -> WaitingTask<'_> {
        count.fetch_add(1, Ordering::AcqRel);
        WaitingTask(count)
    }
}

impl Drop for WaitingTask<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a clock and the wall time in milliseconds that it follows, which a test sets.
    fn settable(unix_ms: u64) -> (Arc<AtomicU64>, HybridClock) {
        let wall = Arc::new(AtomicU64::new(unix_ms));
        let shown = wall.clone();
        (wall, HybridClock::new(WallClock::new(move || shown.load(Ordering::Relaxed))))
    }

    const BEGIN_MS: u64 = 1_790_000_000_000;
    const HOUR_MS: u64 = 3_600_000;

    #[tokio::test(start_paused = true)]
    async fn the_clock_follows_the_wall_clock_and_never_goes_back() {
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
    async fn the_clock_follows_the_member_that_is_furthest_ahead() {
        let ((_, behind), (_, ahead)) = (settable(BEGIN_MS), settable(BEGIN_MS + HOUR_MS));
        let (one, other) = (MemberProcess { member: 1, life: 1 }, MemberProcess { member: 2, life: 1 });
        behind.receive(other, ahead.reading(), false);
        ahead.receive(one, behind.reading(), false);
        assert_eq!(behind.now(), ahead.now());
        assert!(behind.is_promised(ahead.now()));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(behind.now(), ahead.now(), "both go on alike");
        let absurd = ClockReading { now: Revision::LAST.get(), latest: 0 };
        behind.receive(other, absurd, false);
        assert_eq!(behind.now(), ahead.now());
    }

    #[tokio::test(start_paused = true)]
    async fn a_reading_tells_the_largest_assigned_revision_and_the_clock_follows_only_distant_ones() {
        let (_, clock) = settable(BEGIN_MS);
        let near = Revision::new(clock.now().get() + 1_000);
        clock.learn(near);
        assert_eq!(clock.now(), Revision::from_unix_ms(BEGIN_MS));
        assert_eq!(clock.reading(), ClockReading { now: clock.now().get(), latest: near.get() });
        let far = Revision::from_unix_ms(BEGIN_MS + HOUR_MS);
        clock.learn(far);
        assert_eq!((clock.now(), clock.reading().latest), (far, 0));
        clock.learn(Revision::LAST);
        assert_eq!(clock.latest(), far);
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_ends_when_the_promise_arrives() {
        let ((_, behind), (wall, ahead)) = (settable(BEGIN_MS), settable(BEGIN_MS));
        let process = MemberProcess { member: 1, life: 1 };
        ahead.note_connection(process);
        ahead.receive(process, behind.reading(), false);
        wall.fetch_add(50, Ordering::Relaxed);
        let (assigned, begin) = (ahead.now(), Instant::now());
        assert!(!ahead.is_promised(assigned));
        ahead.wait_promised(1, assigned).await; // the other clock is assumed to have advanced
        assert!(begin.elapsed() > Duration::from_millis(50) && begin.elapsed() < Duration::from_millis(60));
        wall.fetch_add(HOUR_MS, Ordering::Relaxed);
        let (assigned, begin) = (ahead.now(), Instant::now());
        let reading = async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            behind.receive(MemberProcess { member: 2, life: 1 }, ahead.reading(), false);
            ahead.receive(process, behind.reading(), false);
        };
        tokio::join!(ahead.wait_promised(1, assigned), reading);
        assert_eq!(begin.elapsed(), Duration::from_millis(20));
    }
}
