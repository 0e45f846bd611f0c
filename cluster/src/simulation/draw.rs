//! Random choices from the seed of a simulation.

use crate::chance;

/// Draws a number below a bound, which must not be 0.
pub(super) fn below(bound: u64) -> u64 {
    chance::number() % bound
}

/// Draws a number from a range.
pub(super) fn within(range: std::ops::Range<u64>) -> u64 {
    range.start + below(range.end - range.start)
}

/// Returns true with a probability of one in `times`.
pub(super) fn once_in(times: u64) -> bool {
    below(times) == 0
}

/// Draws one of several.
pub(super) fn one_of<T>(choices: &[T]) -> &T {
    &choices[below(choices.len() as u64) as usize]
}

/// Shuffles a list.
pub(super) fn shuffle<T>(list: &mut [T]) {
    for last in (1..list.len()).rev() {
        list.swap(last, below(last as u64 + 1) as usize);
    }
}
