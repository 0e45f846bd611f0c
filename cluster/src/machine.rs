//! The parts of the machine that a store uses: disk, network, clock. Simulations replace them.

use std::sync::Arc;

use crate::clock::WallClock;
use crate::disk::{Disk, LocalDisk};
use crate::peer::{Network, TlsNetwork};
use crate::wal::{LogRunner, Threads};

/// A machine. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Machine {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) network: Arc<dyn Network>,
    pub(crate) clock: WallClock,
    /// Starts the thread that writes the log.
    pub(crate) runner: Arc<dyn LogRunner>,
}

impl Machine {
    /// Returns this machine.
    pub(crate) fn local() -> Machine {
        Machine::with_disk(Arc::new(LocalDisk::DURABLE))
    }

    /// Returns this machine with a disk whose fsync does nothing.
    pub(crate) fn throwaway() -> Machine {
        Machine::with_disk(Arc::new(LocalDisk::THROWAWAY))
    }

    /// Returns this machine with another disk.
    pub(crate) fn with_disk(disk: Arc<dyn Disk>) -> Machine {
        Machine { disk, network: Arc::new(TlsNetwork), clock: WallClock::system(), runner: Arc::new(Threads) }
    }
}
