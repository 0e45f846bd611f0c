//! When requests are due: rates, multiplied by the load of each phase.

use super::file::{Phase, Scenario};

/// A period in which the load changes evenly.
#[derive(Debug, Clone)]
struct Ramp {
    start: f64,
    seconds: f64,
    from: f64,
    to: f64,
}

/// The load over time, in seconds since the start of the first phase.
#[derive(Debug, Clone)]
pub struct Load {
    stretches: Vec<Ramp>,
}

impl Load {
    /// Returns the load of a scenario.
    pub fn of(scenario: &Scenario) -> Self {
        Self::over(&scenario.phases)
    }

    fn over(phases: &[Phase]) -> Self {
        let mut start = 0.0;
        let stretches = phases.iter().map(|phase| {
            let [from, to] = phase.load.ends();
            let stretch = Ramp { start, seconds: phase.seconds, from, to };
            start += phase.seconds;
            stretch
        });
        Self { stretches: stretches.collect() }
    }

    /// Returns the end of the last phase, in seconds.
    pub fn seconds(&self) -> f64 {
        self.stretches.last().map_or(0.0, |last| last.start + last.seconds)
    }

    /// Returns the number of the phase at a time. After the end, returns the last one.
    pub fn phase(&self, at: f64) -> usize {
        let found = self.stretches.iter().position(|stretch| at < stretch.start + stretch.seconds);
        found.unwrap_or(self.stretches.len().saturating_sub(1))
    }

    /// Returns the load at a time.
    pub fn at(&self, at: f64) -> f64 {
        let stretch = &self.stretches[self.phase(at)];
        if stretch.seconds <= 0.0 {
            return stretch.to;
        }
        stretch.from + (stretch.to - stretch.from) * ((at - stretch.start) / stretch.seconds).clamp(0.0, 1.0)
    }

    /// Returns the time at which the integral of the load reaches `amount`, in seconds. `None` if it never does.
    pub fn when(&self, mut amount: f64) -> Option<f64> {
        for stretch in &self.stretches {
            let all = stretch.seconds * (stretch.from + stretch.to) / 2.0;
            if amount < all {
                // The integral of a line with this slope: from * t + slope * t^2 / 2.
                let slope = (stretch.to - stretch.from) / stretch.seconds;
                let root = (stretch.from * stretch.from + 2.0 * slope * amount).max(0.0).sqrt();
                // This form avoids cancellation for small slopes.
                return Some(stretch.start + 2.0 * amount / (stretch.from + root).max(f64::MIN_POSITIVE));
            }
            amount -= all;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::file::phase::Factor;
    use super::*;

    fn load(phases: &[(f64, [f64; 2])]) -> Load {
        let phase = |(seconds, ends): &(f64, [f64; 2])| Phase {
            name: String::new(),
            seconds: *seconds,
            load: Factor::Ramp(*ends),
            warmup: false,
            reconnect: false,
        };
        Load::over(&phases.iter().map(phase).collect::<Vec<_>>())
    }

    #[test]
    fn requests_of_a_steady_rate_are_due_evenly() {
        let load = load(&[(10.0, [2.0, 2.0])]);
        for (amount, when) in [(0.0, 0.0), (1.0, 0.5), (19.0, 9.5)] {
            assert!((load.when(amount).unwrap() - when).abs() < 1e-9, "{amount}");
        }
        assert_eq!(load.when(20.0), None);
    }

    #[test]
    fn requests_of_a_ramp_follow_its_integral() {
        let load = load(&[(10.0, [0.0, 1.0]), (5.0, [1.0, 1.0]), (10.0, [1.0, 0.0])]);
        for (amount, when) in [(5.0 / 4.0, 5.0), (5.0, 10.0), (7.5, 12.5), (13.75, 20.0)] {
            assert!((load.when(amount).unwrap() - when).abs() < 1e-9, "{amount}: {:?}", load.when(amount));
        }
        assert_eq!(load.when(15.0), None);
        assert_eq!([load.at(5.0), load.at(12.0), load.at(20.0), load.at(99.0)], [0.5, 1.0, 0.5, 0.0]);
        assert_eq!([load.phase(0.0), load.phase(10.0), load.phase(99.0)], [0, 1, 2]);
    }

    #[test]
    fn nothing_is_due_while_there_is_no_load() {
        let load = load(&[(5.0, [0.0, 0.0]), (5.0, [1.0, 1.0])]);
        assert_eq!(load.when(0.0), Some(5.0));
    }
}
