//! What a store needs of the machine that it runs on. Simulations put another in its place.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

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

/// A clock that people set: it may be off, and it may jump. Cheap to clone.
#[derive(Clone)]
pub(crate) struct WallClock(Arc<dyn Fn() -> u64 + Send + Sync>);

impl WallClock {
    /// The clock of this machine.
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads it")]
    pub(crate) fn system() -> WallClock {
        WallClock::new(|| SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64))
    }

    /// A clock that shows what this answers, in milliseconds since 1970.
    pub(crate) fn new(unix_ms: impl Fn() -> u64 + Send + Sync + 'static) -> WallClock {
        WallClock(Arc::new(unix_ms))
    }

    /// Milliseconds since 1970.
    pub(crate) fn unix_ms(&self) -> u64 {
        (self.0)()
    }
}
