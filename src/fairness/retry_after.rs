//! How long refused clients should wait before they try again. The more clients are refused, the longer.

use std::collections::VecDeque;

use crate::limits;

/// The refusals of a level, by the second.
#[derive(Debug)]
pub struct RetryAfter {
    /// Seconds that clients are asked to wait now.
    seconds: u64,
    /// When `seconds` last rose. `None` if it never did.
    raised: Option<u64>,
    now: u64,
    refused_now: u64,
    /// Earlier seconds, each with its refusals.
    before: VecDeque<(u64, u64)>,
}

impl Default for RetryAfter {
    fn default() -> Self {
        Self { seconds: 1, raised: None, now: 0, refused_now: 0, before: VecDeque::new() }
    }
}

impl RetryAfter {
    /// Records a refusal in this second, and returns how many seconds its client should wait.
    pub fn refused(&mut self, now: u64) -> u64 {
        if now == self.now {
            self.refused_now += 1;
            return self.seconds;
        }
        self.before.push_back((self.now, self.refused_now));
        while self.before.front().is_some_and(|(second, _)| now.saturating_sub(*second) > limits::RETRY_AFTER_SECONDS) {
            self.before.pop_front();
        }
        (self.now, self.refused_now) = (now, 1);
        self.adapt();
        self.seconds
    }

    /// Adapts `seconds` to the refusals in the last `seconds`. After three refusals a second or more, doubles it, at
    /// most once in that time. After fewer than one refusal a second, shortens it by one.
    fn adapt(&mut self) {
        let recent = self.before.iter().filter(|(second, _)| self.now.saturating_sub(*second) <= self.seconds);
        let refused: u64 = recent.map(|(_, refused)| refused).sum();
        let may_rise = self.raised.is_none_or(|raised| self.now.saturating_sub(raised) >= self.seconds);
        if may_rise && refused >= 3 * self.seconds {
            self.seconds = (2 * self.seconds).min(limits::RETRY_AFTER_SECONDS);
            self.raised = Some(self.now);
        } else if refused < self.seconds && self.seconds > 1 {
            self.seconds -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_refusals_make_clients_wait_longer() {
        let mut refused = RetryAfter::default();
        let mut at = |second, count: usize| (0..count).map(|_| refused.refused(second)).last().unwrap_or_default();
        assert_eq!(at(100, 50), 1, "the first second tells nothing yet");
        assert_eq!(at(101, 50), 2);
        assert_eq!(at(102, 50), 2, "it rises once in that time");
        assert_eq!(at(103, 50), 4);
        for second in 104..250 {
            at(second, 200);
        }
        assert_eq!(at(250, 1), 32);
        assert_eq!(at(300, 1), 31, "no client had been refused for a long time");
        for second in 0..40 {
            at(400 + 100 * second, 1);
        }
        assert_eq!(at(9_000, 1), 1);
    }
}
