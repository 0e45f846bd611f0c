//! What the members of a group have told their leader.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::types::Vote;

/// What each replica has told this one, as its leader, to be durable: with the vote by which this one led, the index of
/// the last entry.
#[derive(Clone, Default)]
pub(super) struct Acknowledged(Arc<Mutex<BTreeMap<u64, (Vote, u64)>>>);

impl Acknowledged {
    pub(super) fn note(&self, member: u64, vote: &Vote, index: u64) {
        let mut all = self.0.lock();
        let known = all.entry(member).or_insert((*vote, 0));
        // Under another leader since, it may have given up what it had.
        *known = if known.0 == *vote { (*vote, known.1.max(index)) } else { (*vote, index) };
    }

    /// What a replica told a leader of this vote; 0 for nothing.
    pub(super) fn to(&self, member: u64, vote: &Vote) -> u64 {
        self.0.lock().get(&member).filter(|known| known.0 == *vote).map_or(0, |known| known.1)
    }
}
