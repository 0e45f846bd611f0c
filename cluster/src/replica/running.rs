//! The parts of a running store that its handles use.

use std::sync::Arc;

use tokio::sync::watch;

use super::forming::identity::IdentityFile;
use super::groups::Groups;
use super::leading::placement::Placement;
use super::standing::Standing;
use crate::peer::Peers;
use crate::wal::Wal;

/// The parts of a store that were started on its thread.
pub(crate) struct Running {
    /// Id of this replica.
    pub(crate) id: u64,
    pub(crate) identity: Arc<IdentityFile>,
    /// The connections to other replicas; `None` on a store that has no others.
    pub(crate) peers: Option<Arc<dyn Peers>>,
    pub(crate) groups: Groups,
    pub(crate) wal: Wal,
    /// The groups that this replica should lead.
    pub(crate) placement: Arc<Placement>,
    /// The standing of this replica in its cluster: now, and after every change.
    pub(crate) standing: watch::Receiver<Standing>,
}
