//! Runs openraft's own test suite for implementations of its storage.

use std::path::PathBuf;
use std::sync::Arc;

use openraft::StorageError;
use openraft::testing::log::{StoreBuilder, Suite};

use super::log_store::LogStore;
use super::state_machine::StateMachine;
use super::types::TypeConfig;
use crate::Options;
use crate::clock::HybridClock;
use crate::disk::simulated::SimulatedDisk;
use crate::group::{Applier, Tables};
use crate::snapshot::Snapshots;
use crate::wal::{Threads, Wal, WalOptions};

struct Builder;

/// Closes the log after each test.
struct Closing(Wal);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl StoreBuilder<TypeConfig, LogStore, StateMachine, Closing> for Builder {
    async fn build(&self) -> Result<(Closing, LogStore, StateMachine), StorageError<TypeConfig>> {
        let disk = Arc::new(SimulatedDisk::default());
        let wal_options = WalOptions {
            directory: PathBuf::from("/wal"),
            segment_bytes: 1 << 20,
            on_fatal: Arc::new(|reason| panic!("{reason}")),
            runner: Arc::new(Threads),
        };
        let wal = Wal::open(disk.clone(), wal_options, &["default".into()]).unwrap();
        let options = Options::new("/unused");
        let tables = Arc::new(Tables::new(&options, HybridClock::default()));
        let thread = actix::System::current().arbiter().clone();
        let applier = Applier::new(thread, tables.clocks()[0].clone(), tables.clone(), &options);
        let snapshots = Snapshots::open(disk, PathBuf::from("/snapshots")).unwrap();
        let machine = StateMachine::open(applier, snapshots).await.unwrap();
        Ok((Closing(wal.clone()), LogStore::new(wal, 0), machine))
    }
}

#[test]
fn openrafts_suite_passes() {
    actix::System::new().block_on(async { Suite::test_all(Builder).await }).unwrap();
}
