//! What the log relies on is durable after it was opened.

use std::sync::Arc;

use super::drive::{Drive, Driven};
use super::simulated_disk::SimulatedDisk;
use super::wal_tests::{append, at, check, open, options};
use super::writer::{Preparer, Writer};
use super::{Wal, WalOptions};

/// A log that nobody writes.
struct Idle;

impl Drive for Idle {
    fn start(&self, _: Writer, _: Preparer) -> std::io::Result<Box<dyn Driven>> {
        Ok(Box::new(Idle))
    }
}

impl Driven for Idle {
    fn finish(self: Box<Self>) {}
}

#[test]
fn what_a_log_is_opened_with_is_durable() {
    let disk = SimulatedDisk::default();
    let wal = open(&disk).unwrap();
    append(&wal, 0, 0).unwrap();
    disk.fail_sync_after(0);
    assert!(append(&wal, 0, 1).is_err());
    wal.close();
    disk.heal();
    // The process was started again, not the machine: it sees what was written.
    let idle = WalOptions { drive: Arc::new(Idle), ..options(&Arc::default()) };
    let seen = Wal::open(Arc::new(disk.clone()), idle, &["default".into()]).unwrap().state(0).last;
    assert_eq!(seen, Some(at(1)));
    let after = open(&disk.crash(|_, _| false)).unwrap();
    assert_eq!(after.state(0).last, seen);
    after.close();
    let wal = open(&disk).unwrap();
    append(&wal, 0, 2).unwrap();
    wal.close();
    let after = open(&disk.crash(|_, _| false)).unwrap();
    check(&after, 0, 0..3);
    after.close();
}
