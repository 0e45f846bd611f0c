//! Random numbers. A simulation draws them from its seed.

/// Any number.
pub(crate) fn number() -> u64 {
    #[cfg(test)]
    if let Some(drawn) = crate::simulation::chance::drawn() {
        return drawn;
    }
    rand::random()
}

/// A number from 0 up to and without 1.
pub(crate) fn fraction() -> f64 {
    (number() >> 11) as f64 / (1_u64 << 53) as f64
}
