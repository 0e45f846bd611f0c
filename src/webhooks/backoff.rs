//! The growing waits between calls to a webhook, as clients of Kubernetes have them.

use std::time::Duration;

use rand::Rng as _;

/// The ratio of each wait to the one before.
const FACTOR: f64 = 1.5;
/// The largest part of a wait that is added at random.
const JITTER: f64 = 0.2;

/// The waits before the calls that follow the first one.
#[derive(Debug)]
pub struct Backoff {
    next: Duration,
}

impl Backoff {
    /// Returns waits that begin with this one.
    pub const fn new(first: Duration) -> Self {
        Self { next: first }
    }

    /// Returns the next wait, with its random part.
    pub fn wait(&mut self) -> Duration {
        let wait = self.next.mul_f64(1.0 + JITTER * rand::rng().random::<f64>());
        self.next = self.next.mul_f64(FACTOR);
        wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_and_have_a_random_part() {
        let mut backoff = Backoff::new(Duration::from_millis(100));
        for (least, most) in [(100, 120), (150, 180), (225, 270)] {
            let wait = backoff.wait();
            assert!((Duration::from_millis(least)..=Duration::from_millis(most)).contains(&wait), "{wait:?}");
        }
    }
}
