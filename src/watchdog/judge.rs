//! Decides when a thread counts as stalled, and when to log that.

use std::time::Duration;

use super::Work;
use crate::limits;

/// The next action about a thread.
#[derive(Debug, PartialEq, Eq)]
pub enum ThreadAction {
    /// Nothing.
    Fine,
    /// Ask the thread to answer with this number.
    Ask(u64),
    /// Report that the thread has not answered for this long. A stall is reported once.
    Stalled(Duration),
}

/// The state of watching one thread.
#[derive(Debug, Default)]
pub struct ThreadState {
    asked: u64,
    /// When the thread was asked last.
    since: Duration,
    /// Whether the present stall was reported.
    is_reported: bool,
    /// The work that the thread noted at the last check, and how many checks have found its last question answered.
    work: Work,
    same: u32,
}

impl ThreadState {
    /// Checks a thread by its last answer and its present work. `paused` means that the whole machine may have stopped
    /// meanwhile.
    pub fn look(&mut self, now: Duration, paused: bool, answered: u64, work: Work) -> ThreadAction {
        let is_busy = std::mem::replace(&mut self.work, work) != work || work != Work::default();
        if answered == self.asked {
            self.is_reported = false;
            self.same += 1;
            // Idle threads are rarely woken for an answer.
            if !is_busy && self.same < limits::WATCHDOG_IDLE_LOOKS {
                return ThreadAction::Fine;
            }
            (self.asked, self.since, self.same) = (self.asked + 1, now, 0);
            return ThreadAction::Ask(self.asked);
        }
        if paused {
            self.since = now;
        }
        let waited = now.saturating_sub(self.since);
        if self.is_reported || waited < limits::STALL {
            return ThreadAction::Fine;
        }
        self.is_reported = true;
        ThreadAction::Stalled(waited)
    }
}

/// Bounds how often stalls are logged.
#[derive(Debug, Default)]
pub struct LogLimiter {
    next: Duration,
    others: u64,
}

impl LogLimiter {
    /// Returns how many stalls were not logged since the last one that was. Returns `None` if this one must not be
    /// logged.
    pub fn admit(&mut self, now: Duration) -> Option<u64> {
        if now < self.next {
            self.others += 1;
            return None;
        }
        self.next = now + limits::STALL_LOG_INTERVAL;
        Some(std::mem::take(&mut self.others))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Stage;
    use super::*;

    /// A thread and its state, with a clock that only the test moves.
    struct Simulated {
        now: Duration,
        judge: ThreadState,
        asked: u64,
        answered: u64,
        stalls: Vec<u128>,
    }

    impl Simulated {
        fn new() -> Self {
            Self { now: Duration::ZERO, judge: ThreadState::default(), asked: 0, answered: 0, stalls: Vec::new() }
        }

        /// Checks the thread after each of `times` intervals. A thread that answers does so between two checks.
        fn look(&mut self, times: u32, answers: bool, paused: bool, work: Work) -> u32 {
            let mut asked = 0;
            for _ in 0..times {
                self.now += limits::WATCHDOG_INTERVAL;
                if answers {
                    self.answered = self.asked;
                }
                match self.judge.look(self.now, paused, self.answered, work) {
                    ThreadAction::Fine => {}
                    ThreadAction::Ask(number) => (self.asked, asked) = (number, asked + 1),
                    ThreadAction::Stalled(since) => self.stalls.push(since.as_millis()),
                }
            }
            asked
        }
    }

    fn busy() -> Work {
        Work::new(Stage::Answering, "GET", None)
    }

    #[test]
    fn a_stalled_thread_is_reported_once() {
        let mut thread = Simulated::new();
        assert_eq!(thread.look(10, true, false, busy()), 10);
        assert!(thread.stalls.is_empty());
        thread.look(1, false, false, busy());
        assert!(thread.stalls.is_empty(), "not yet");
        thread.look(50, false, false, busy());
        assert_eq!(thread.stalls, [limits::STALL.as_millis()]);
        thread.look(10, true, false, busy());
        thread.look(3, false, false, busy());
        assert_eq!(thread.stalls.len(), 2, "and again the next time");
    }

    #[test]
    fn an_idle_thread_is_rarely_woken() {
        let mut thread = Simulated::new();
        let asked = thread.look(10 * limits::WATCHDOG_IDLE_LOOKS, true, false, Work::default());
        assert!((9..=11).contains(&asked), "{asked}");
        assert!(thread.stalls.is_empty());
    }

    #[test]
    fn no_stall_is_reported_after_a_pause_of_the_machine() {
        let mut thread = Simulated::new();
        thread.look(5, true, false, busy());
        thread.now += Duration::from_secs(60);
        thread.look(1, false, true, busy());
        assert!(thread.stalls.is_empty());
        thread.look(3, false, false, busy());
        assert_eq!(thread.stalls.len(), 1, "a stall that lasts is reported");
    }

    #[test]
    fn log_lines_about_stalls_are_limited() {
        let mut limiter = LogLimiter::default();
        let admitted: Vec<u64> =
            (0..50).filter_map(|time| limiter.admit(limits::STALL_LOG_INTERVAL * time / 10)).collect();
        assert_eq!(admitted, [0, 9, 9, 9, 9]);
    }
}
