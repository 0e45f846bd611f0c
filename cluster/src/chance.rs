//! Random numbers. A simulation draws them from its seed.

#[cfg(test)]
use rand::{Rng, SeedableRng, rngs::SmallRng};

/// Draws any number.
pub(crate) fn number() -> u64 {
    #[cfg(test)]
    if let Some(drawn) = crate::simulation::chance::drawn() {
        return drawn;
    }
    rand::random()
}

/// Draws a number from 0 up to, but not including, 1.
pub(crate) fn fraction() -> f64 {
    (number() >> 11) as f64 / (1_u64 << 53) as f64
}

/// Random numbers of a test, the same for the same seed.
#[cfg(test)]
#[derive(Debug)]
pub(crate) struct Random(SmallRng);

#[cfg(test)]
impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(SmallRng::seed_from_u64(seed))
    }

    /// Draws a number from 0 up to, but not including, `bound`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0.random_range(0..bound)
    }
}
