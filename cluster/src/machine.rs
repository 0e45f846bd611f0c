//! What a store needs of the machine that it runs on. Simulations put another in its place.

use std::sync::Arc;

use crate::clock::WallClock;
use crate::peer::{Network, TlsNetwork};
use crate::wal::disk::{Disk, LocalDisk};
use crate::wal::{Drive, Threads};

/// A machine. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Machine {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) network: Arc<dyn Network>,
    pub(crate) clock: WallClock,
    /// Who writes the log.
    pub(crate) drive: Arc<dyn Drive>,
}

impl Machine {
    /// This one.
    pub(crate) fn local() -> Machine {
        Machine::with_disk(Arc::new(LocalDisk::DURABLE))
    }

    /// This one, without waiting for its disk.
    pub(crate) fn throwaway() -> Machine {
        Machine::with_disk(Arc::new(LocalDisk::THROWAWAY))
    }

    /// This one, with another disk.
    pub(crate) fn with_disk(disk: Arc<dyn Disk>) -> Machine {
        Machine { disk, network: Arc::new(TlsNetwork), clock: WallClock::system(), drive: Arc::new(Threads) }
    }
}
