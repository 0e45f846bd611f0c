//! Compares how many members two replicas reach.

/// Returns whether a replica that is connected with `other` voters in both directions should lead instead of one that
/// is connected with `own`. Both counts include the replica itself; `voters` is the number of all voters. A replica
/// that reaches no majority in both directions does not lead better than any other, whatever it reaches.
pub(crate) fn exceeds(other: u32, own: u32, voters: usize) -> bool {
    other > own && 2 * other as usize > voters
}

#[cfg(test)]
#[path = "reach_tests.rs"]
mod tests;
