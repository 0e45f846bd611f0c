//! What revisions are known here to be assigned, of whatever group.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::Revision;

/// The largest revision that is known on this replica to be assigned, in any group; all groups share one. Whoever
/// assigns the next one goes above it, so that revisions follow the order of cause and effect also between groups
/// whose leaders' clocks differ (Kulkarni et al., "Logical Physical Clocks").
///
/// What is known need not be committed: too large a number does no harm.
#[derive(Clone, Debug, Default)]
pub(crate) struct Latest(Arc<AtomicU64>);

impl Latest {
    /// The largest one.
    pub(crate) fn get(&self) -> Revision {
        Revision::new(self.0.load(Ordering::Acquire))
    }

    /// A revision was assigned. One that nothing can follow is no reason to assign nothing any more.
    pub(crate) fn learn(&self, revision: Revision) {
        if revision < Revision::LAST {
            self.0.fetch_max(revision.get(), Ordering::AcqRel);
        }
    }
}
