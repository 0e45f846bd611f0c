//! Injects random faults into the members of a fleet, and undoes them.

use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{Rng as _, SeedableRng as _};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc2822;

use crate::fleet::{Endpoints, Fleet};
use crate::support::PATIENCE;

/// How long a fault lasts, and how long the pause before the next one is.
const FAULT: std::ops::Range<Duration> = Duration::from_millis(300)..Duration::from_millis(4_000);
const CALM: std::ops::Range<Duration> = Duration::from_millis(500)..Duration::from_millis(2_000);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// SIGKILL of one member.
    Kill,
    /// SIGKILL of all members, as nearly at the same time as possible.
    KillAll,
    /// SIGTERM of one member after the other; each is started again before the next one ends.
    Roll,
    /// SIGSTOP of one member, and SIGCONT later.
    Pause,
    /// SIGSTOP of all members.
    PauseAll,
    /// No bytes pass between one member and the others.
    Isolate,
    /// No bytes pass from one member to the others.
    Mute,
    /// No bytes pass from the others to one member.
    Deafen,
    /// No bytes pass between two members; a third one reaches both.
    Separate,
    /// SIGKILL of the leader, to which the other members forward writes.
    KillLeader,
    /// The number of shards of some resources changes.
    Divide,
    /// Leadership is transferred to another member.
    Transfer,
    /// One member is drained for a while.
    Drain,
    /// SIGKILL of two members, one of which is the leader.
    KillTwo,
    /// Two members reach each other, but none of the others.
    SplitOff,
    /// One member loses its disk, and a new one of the same name replaces it. In half of the cases the old one is
    /// removed first.
    Replace,
    /// The clock of one member is an hour ahead.
    Ahead,
    /// The clock of one member is an hour behind.
    Behind,
}

const OF_ONE: [Fault; 3] = [Fault::Kill, Fault::Roll, Fault::Pause];
const OF_SEVERAL: [Fault; 14] = [
    Fault::Kill,
    Fault::KillAll,
    Fault::Roll,
    Fault::Pause,
    Fault::PauseAll,
    Fault::Isolate,
    Fault::Mute,
    Fault::Deafen,
    Fault::Separate,
    Fault::KillLeader,
    Fault::Replace,
    Fault::Divide,
    Fault::Transfer,
    Fault::Drain,
];
/// Faults that only five members or more survive. They are injected before all others.
const OF_FIVE: [Fault; 2] = [Fault::KillTwo, Fault::SplitOff];
const OF_CLOCKS: [Fault; 4] = [Fault::Ahead, Fault::Behind, Fault::Roll, Fault::KillLeader];
const HOUR: i32 = 3_600;

/// The faults of one run.
pub struct Schedule {
    random: StdRng,
    until: Instant,
    /// The faults of the current round that have not been injected yet. A round injects each of its faults once.
    waiting: Vec<Fault>,
    /// Whether any fault has been injected.
    is_begun: bool,
}

impl Schedule {
    /// Makes a schedule for this duration. The seed determines the order of faults.
    pub fn new(seed: u64, duration: Duration) -> Schedule {
        Schedule {
            random: StdRng::seed_from_u64(seed),
            until: Instant::now() + duration,
            waiting: Vec::new(),
            is_begun: false,
        }
    }

    pub fn is_over(&self) -> bool {
        Instant::now() >= self.until
    }

    /// Injects one fault, undoes it, and waits until every member is ready. Returns a description for the log.
    pub fn inject(&mut self, fleet: &mut Fleet, endpoints: &Endpoints) -> String {
        std::thread::sleep(self.random.random_range(CALM));
        let fault = self.choose(fleet.size(), fleet.has_clocks());
        let member = match fault {
            Fault::KillLeader | Fault::KillTwo => fleet.leader(endpoints),
            _ => self.random.random_range(0..fleet.size()),
        };
        let duration = self.random.random_range(FAULT);
        let began = Instant::now();
        match fault {
            Fault::Kill | Fault::KillAll | Fault::KillLeader | Fault::KillTwo | Fault::Roll => {
                self.end_processes(fault, fleet, endpoints, member, duration);
            }
            Fault::Divide => {
                let shards = self.random.random_range(1..=8);
                fleet.divide(&[&format!("configmaps={shards}"), &format!("leases={}", 9 - shards)]);
            }
            Fault::Transfer => drop(fleet.transfer(member)),
            Fault::Drain => {
                fleet.drain(member, true);
                std::thread::sleep(duration);
                fleet.drain(member, false);
            }
            Fault::Replace => fleet.replace(member, duration, self.random.random_bool(0.5)),
            Fault::Ahead | Fault::Behind => {
                jump(fleet, endpoints, member, if fault == Fault::Ahead { HOUR } else { -HOUR });
                std::thread::sleep(duration);
                jump(fleet, endpoints, member, 0);
            }
            Fault::Pause | Fault::PauseAll => {
                let paused = if fault == Fault::Pause { member..member + 1 } else { 0..fleet.size() };
                paused.clone().for_each(|number| fleet.pause(number));
                std::thread::sleep(duration);
                paused.for_each(|number| fleet.resume(number));
            }
            Fault::Isolate | Fault::Mute | Fault::Deafen | Fault::Separate | Fault::SplitOff => {
                self.cut(fault, fleet, member, duration);
            }
        }
        fleet.await_ready(endpoints);
        format!("{fault:?} of member {member} for {duration:?}, ready after {:?}", began.elapsed())
    }

    /// Chooses one of the faults that remain in the current round. Begins another round if none remains.
    fn choose(&mut self, members: usize, has_clocks: bool) -> Fault {
        if self.waiting.is_empty() {
            self.waiting = match members {
                _ if has_clocks => OF_CLOCKS.to_vec(),
                1 => OF_ONE.to_vec(),
                5.. if !self.is_begun => OF_FIVE.to_vec(),
                5.. => [&OF_FIVE[..], &OF_SEVERAL].concat(),
                _ => OF_SEVERAL.to_vec(),
            };
            self.is_begun = true;
        }
        let index = self.random.random_range(0..self.waiting.len());
        self.waiting.swap_remove(index)
    }

    fn end_processes(
        &mut self,
        fault: Fault,
        fleet: &mut Fleet,
        endpoints: &Endpoints,
        member: usize,
        duration: Duration,
    ) {
        match fault {
            Fault::Roll => {
                for number in 0..fleet.size() {
                    fleet.terminate(number);
                    fleet.start_member(number);
                    fleet.await_ready(endpoints);
                }
            }
            Fault::KillAll => {
                (0..fleet.size()).for_each(|number| fleet.kill(number));
                (0..fleet.size()).for_each(|number| fleet.start_member(number));
            }
            Fault::KillTwo => {
                let killed = [member, (member + 1) % fleet.size()];
                killed.iter().for_each(|number| fleet.kill(*number));
                std::thread::sleep(duration);
                killed.iter().for_each(|number| fleet.start_member(*number));
            }
            _ => {
                fleet.kill(member);
                // With a single member, no client can do anything while that member is down.
                if fleet.size() > 1 {
                    std::thread::sleep(duration);
                }
                fleet.start_member(member);
            }
        }
    }

    fn cut(&mut self, fault: Fault, fleet: &Fleet, member: usize, duration: Duration) {
        let links = fleet.links().expect("several members");
        let others: Vec<usize> = (0..fleet.size()).filter(|other| *other != member).collect();
        let other = *others.choose(&mut self.random).expect("another member");
        let to: Vec<_> = others.iter().map(|other| (member, *other)).collect();
        let from: Vec<_> = others.iter().map(|other| (*other, member)).collect();
        links.cut(&match fault {
            Fault::Mute => to,
            Fault::Deafen => from,
            Fault::Separate => vec![(member, other), (other, member)],
            Fault::SplitOff => {
                let beyond = others.iter().filter(|beyond| **beyond != other);
                beyond.flat_map(|to| [member, other].map(|from| [(from, *to), (*to, from)])).flatten().collect()
            }
            _ => [to, from].concat(),
        });
        std::thread::sleep(duration);
        links.heal(self.random.random_bool(0.5));
    }
}

/// Sets the clock of a member, and waits until the member's answers show it.
fn jump(fleet: &Fleet, endpoints: &Endpoints, member: usize, seconds: i32) {
    fleet.set_clock(member, seconds);
    let deadline = Instant::now() + PATIENCE;
    loop {
        let answer = endpoints.request(member, "GET", "/livez", "", PATIENCE);
        let date = answer.and_then(|answer| OffsetDateTime::parse(answer.header("date")?, &Rfc2822).ok());
        let now = OffsetDateTime::now_utc();
        if date.is_some_and(|date| ((date - now).whole_seconds() - i64::from(seconds)).abs() < i64::from(HOUR) / 2) {
            return;
        }
        assert!(Instant::now() < deadline, "the clock of member {member} does not jump: {date:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}
