//! Remembers the last entry that each member of a group has acknowledged to its leader.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::types::Vote;

/// The index of the last entry that each replica has acknowledged to this one, the leader, as durable, with the vote by
/// which this replica led then.
#[derive(Clone, Default)]
pub(super) struct Acknowledged(Arc<Mutex<BTreeMap<u64, (Vote, u64)>>>);

impl Acknowledged {
    pub(super) fn note(&self, member: u64, vote: &Vote, index: u64) {
        let mut all = self.0.lock();
        let known = all.entry(member).or_insert((*vote, 0));
        // Under a later leader, the replica may have truncated its log.
        *known = if known.0 == *vote { (*vote, known.1.max(index)) } else { (*vote, index) };
    }

    /// Returns the index of the last entry that a replica acknowledged to a leader with this vote; 0 if it acknowledged
    /// none.
    pub(super) fn to(&self, member: u64, vote: &Vote) -> u64 {
        self.0.lock().get(&member).filter(|known| known.0 == *vote).map_or(0, |known| known.1)
    }
}
