//! What of a store lives on its thread.

use std::sync::Arc;

use tokio::sync::watch;

use super::groups::Groups;
use super::identity::IdentityFile;
use super::placement::Placement;
use super::standing::Standing;
use crate::peer::Peers;
use crate::wal::Wal;

/// What was started on the thread of the store.
pub(crate) struct Running {
    /// Id of this replica.
    pub(crate) id: u64,
    pub(crate) identity: Arc<IdentityFile>,
    /// How other replicas are reached; none when there are to be none.
    pub(crate) peers: Option<Arc<dyn Peers>>,
    pub(crate) groups: Groups,
    pub(crate) wal: Wal,
    /// What it is to lead.
    pub(crate) placement: Arc<Placement>,
    /// What this replica is to its cluster.
    pub(crate) standing: watch::Receiver<Standing>,
}
