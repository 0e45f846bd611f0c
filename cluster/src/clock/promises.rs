//! Promises of other members about the revisions that they will assign.

use std::collections::{BTreeMap, BTreeSet};

use super::{ClockReading, MemberProcess};
use crate::Revision;
use crate::limits::{CLOCK_ABSENCE_MAX, CLOCK_DRIFT_PARTS, PEER_MEMBERS_MAX, PEER_SILENCE_MAX};

/// When a member will have given a promise. Times in this file are spans of revisions ([`Revision::span`]) since this
/// replica started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PromiseDue {
    /// The promise is given, or not needed.
    Now,
    /// After this further span, if nothing is received before.
    In(u64),
}

/// The promise of every member.
#[derive(Debug, Default)]
pub(super) struct Promises(BTreeMap<u64, Promise>);

#[derive(Debug)]
struct Promise {
    /// The process of the member that gave it.
    life: u64,
    /// The reading of its clock at `at`. Of all its reports, this one implies the most advanced clock for now.
    shown: u64,
    /// The time of this replica at which that report arrived.
    at: u64,
    /// The largest revision that the member knew to be assigned.
    latest: u64,
    /// When the member was last heard from.
    last_received: u64,
    /// Whether the member does not answer calls.
    is_unresponsive: bool,
    /// Since when the member is in no group, as far as is known here.
    absent: Option<u64>,
}

impl Promise {
    fn new(life: u64, now: u64) -> Promise {
        Promise { life, shown: 0, at: now, latest: 0, last_received: now, is_unresponsive: false, absent: None }
    }

    /// Returns the least that the member's clock can show by now.
    fn shows(&self, now: u64) -> u64 {
        let since = now.saturating_sub(self.at);
        self.shown + since - since / CLOCK_DRIFT_PARTS
    }

    fn due(&self, revision: u64, now: u64) -> PromiseDue {
        let silent_at = self.last_received + Revision::span(PEER_SILENCE_MAX);
        let has_left = self.absent.is_some_and(|since| since + Revision::span(CLOCK_ABSENCE_MAX) <= now);
        if has_left || self.is_unresponsive || silent_at <= now || self.latest.max(self.shows(now)) >= revision {
            return PromiseDue::Now;
        }
        // The inverse of `shows`, which subtracts the drift: one of `CLOCK_DRIFT_PARTS` parts of the elapsed time.
        let missing = revision - self.shows(now);
        let passes_in = missing + missing / (CLOCK_DRIFT_PARTS - 1) + 1;
        PromiseDue::In(passes_in.min(silent_at - now))
    }
}

impl Promises {
    /// Records that a process of a member is connected. Promises of its former processes become void.
    pub(super) fn note_connection(&mut self, process: MemberProcess, now: u64) {
        if self.0.len() >= PEER_MEMBERS_MAX && !self.0.contains_key(&process.member) {
            self.0.retain(|_, promise| promise.last_received + Revision::span(PEER_SILENCE_MAX) > now);
        }
        let promise = self.0.entry(process.member).or_insert_with(|| Promise::new(process.life, now));
        if promise.life != process.life {
            *promise = Promise::new(process.life, now);
        }
        // Connecting takes an answer from the member, so it does respond.
        (promise.last_received, promise.is_unresponsive) = (now, false);
    }

    /// Sets the members of all groups, as far as they are known here.
    pub(super) fn set_members(&mut self, members: &BTreeSet<u64>, now: u64) {
        for (member, promise) in &mut self.0 {
            promise.absent = (!members.contains(member)).then(|| promise.absent.unwrap_or(now));
        }
    }

    /// Records a reading of the clock of a process of a member.
    pub(super) fn receive(&mut self, process: MemberProcess, reading: ClockReading, now: u64, is_answer: bool) {
        // A late message of a process that has ended promises nothing.
        let Some(promise) = self.0.get_mut(&process.member).filter(|promise| promise.life == process.life) else {
            return;
        };
        if reading.now >= promise.shows(now) {
            (promise.shown, promise.at) = (reading.now, now);
        }
        promise.latest = promise.latest.max(reading.latest);
        promise.last_received = now;
        promise.is_unresponsive &= !is_answer;
    }

    /// Records that a member does not answer.
    pub(super) fn give_up(&mut self, member: u64) {
        self.0.entry(member).and_modify(|promise| promise.is_unresponsive = true);
    }

    /// Returns when a member will have promised to assign nothing up to a revision. Members that never sent anything,
    /// are silent or do not answer need not promise.
    pub(super) fn due(&self, member: u64, revision: Revision, now: u64) -> PromiseDue {
        self.0.get(&member).map_or(PromiseDue::Now, |promise| promise.due(revision.get(), now))
    }

    /// Returns the members that have yet to promise to assign nothing up to a revision.
    pub(super) fn owing(&self, revision: Revision, now: u64) -> impl Iterator<Item = u64> {
        let owing = self.0.iter().filter(move |(_, promise)| promise.due(revision.get(), now) != PromiseDue::Now);
        owing.map(|(member, _)| *member)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: MemberProcess = MemberProcess { member: 1, life: 1 };
    /// One millisecond.
    const MS: u64 = 1 << 18;

    fn reading(now: u64) -> ClockReading {
        ClockReading { now, latest: 0 }
    }

    fn due(promises: &Promises, revision: u64, now: u64) -> PromiseDue {
        promises.due(1, Revision::new(revision), now)
    }

    #[test]
    fn the_clock_of_a_member_is_assumed_to_advance_within_the_drift() {
        let mut promises = Promises::default();
        promises.note_connection(ONE, 0);
        promises.receive(ONE, reading(1_000 * MS), 10 * MS, true);
        assert_eq!(due(&promises, 1_000 * MS, 10 * MS), PromiseDue::Now);
        let PromiseDue::In(ticks) = due(&promises, 1_070 * MS, 10 * MS) else { panic!("it is promised already") };
        assert!((80 * MS..=81 * MS).contains(&ticks), "{ticks}");
        assert_eq!(due(&promises, 1_070 * MS, 10 * MS + ticks), PromiseDue::Now);
        assert_ne!(due(&promises, 1_070 * MS, 10 * MS + ticks - MS), PromiseDue::Now);
    }

    #[test]
    fn a_delayed_reading_promises_nothing_new() {
        let mut promises = Promises::default();
        promises.note_connection(ONE, 0);
        promises.receive(ONE, reading(1_000 * MS), 0, true);
        promises.receive(ONE, reading(1_001 * MS), 80 * MS, true);
        assert_eq!(due(&promises, 1_070 * MS, 80 * MS), PromiseDue::Now);
        promises.receive(ONE, ClockReading { now: 1, latest: 2_000 * MS }, 80 * MS, true);
        assert_eq!(due(&promises, 2_000 * MS, 80 * MS), PromiseDue::Now);
    }

    #[test]
    fn promises_of_a_former_process_are_void() {
        let mut promises = Promises::default();
        promises.note_connection(ONE, 0);
        promises.receive(ONE, reading(1_000 * MS), 0, true);
        let reborn = MemberProcess { life: 2, ..ONE };
        promises.note_connection(reborn, 0);
        promises.receive(ONE, reading(1_000 * MS), 0, true); // it comes late
        promises.receive(reborn, reading(10 * MS), 0, true);
        assert_ne!(due(&promises, 1_000 * MS, 0), PromiseDue::Now);
        promises.note_connection(reborn, 0);
        assert_eq!(due(&promises, 10 * MS, 0), PromiseDue::Now, "a further connection changes nothing");
    }

    #[test]
    fn nobody_waits_for_a_silent_or_unresponsive_replica() {
        let mut promises = Promises::default();
        assert_eq!(due(&promises, 1, 0), PromiseDue::Now, "nobody knows it");
        promises.note_connection(ONE, 0);
        promises.receive(ONE, reading(1), 0, false);
        let (far, silence) = (1_000_000 * MS, Revision::span(PEER_SILENCE_MAX));
        assert_eq!(due(&promises, far, 0), PromiseDue::In(silence));
        assert_eq!(due(&promises, far, silence), PromiseDue::Now);
        promises.receive(ONE, reading(2), silence, false);
        assert_ne!(due(&promises, far, silence), PromiseDue::Now);
        promises.give_up(1);
        assert_eq!(due(&promises, far, silence), PromiseDue::Now);
        promises.receive(ONE, reading(3), silence, false);
        assert_eq!(due(&promises, far, silence), PromiseDue::Now, "it hears nothing still");
        promises.receive(ONE, reading(4), silence, true);
        assert_ne!(due(&promises, far, silence), PromiseDue::Now);
        assert_eq!(promises.owing(Revision::new(far), silence).collect::<Vec<_>>(), [1]);
        promises.give_up(1);
        promises.note_connection(ONE, 2 * silence);
        assert_ne!(due(&promises, far, 2 * silence), PromiseDue::Now, "it is back");
    }

    #[test]
    fn nobody_waits_for_a_replica_that_is_in_no_group() {
        let (mut promises, far) = (Promises::default(), 1_000_000 * MS);
        let mut heard_at = |now: u64, members: &[u64]| {
            promises.note_connection(ONE, now);
            promises.set_members(&members.iter().copied().collect(), now);
            due(&promises, far, now)
        };
        let absence = Revision::span(CLOCK_ABSENCE_MAX);
        assert_ne!(heard_at(0, &[1, 2]), PromiseDue::Now);
        assert_ne!(heard_at(MS, &[2]), PromiseDue::Now, "what this replica knows may be behind");
        assert_eq!(heard_at(MS + absence, &[2]), PromiseDue::Now);
        assert_ne!(heard_at(2 * MS + absence, &[1, 2]), PromiseDue::Now, "it is admitted again");
    }
}
