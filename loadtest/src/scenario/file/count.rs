//! Counts in a scenario, such as those of clients and objects.

use crate::limits;

/// Scales a count. A count above zero stays above zero.
pub(super) fn scale(count: &mut usize, factor: f64) {
    *count = ((*count as f64 * factor).ceil() as usize).max(usize::from(*count > 0));
}

/// Checks that a count is at least one and not too large. `Err` states its name, `what`, and the bounds.
pub(super) fn check(what: &str, count: usize) -> Result<(), String> {
    if (1..=limits::SCENARIO_COUNT_MAX).contains(&count) {
        return Ok(());
    }
    Err(format!("{what} is {count}, not from 1 to {}", limits::SCENARIO_COUNT_MAX))
}
