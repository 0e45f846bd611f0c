//! Random numbers. A simulation draws them from its seed.

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
