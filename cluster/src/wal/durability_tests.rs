//! The log relies on durable data only: after it was opened, before a segment is removed, and when an append is
//! refused.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

use parking_lot::Mutex;

use super::record::Record;
use super::runner::{LogRunner, RunningLog};
use super::wal_tests::{append, at, body, check, open, options};
use super::writer::{LogWriter, Preparer};
use super::{Wal, WalOptions};
use crate::disk::simulated::SimulatedDisk;

/// A log whose writer never runs.
struct Idle;

impl LogRunner for Idle {
    fn start(&self, _: LogWriter, _: Preparer) -> std::io::Result<Box<dyn RunningLog>> {
        Ok(Box::new(Idle))
    }
}

impl RunningLog for Idle {
    fn finish(self: Box<Self>) {}
}

/// A log whose writer a test runs step by step.
#[derive(Clone, Default)]
pub(super) struct ByHand(Arc<Mutex<Option<(LogWriter, Preparer)>>>);

impl LogRunner for ByHand {
    fn start(&self, mut writer: LogWriter, preparer: Preparer) -> std::io::Result<Box<dyn RunningLog>> {
        writer.begin()?;
        *self.0.lock() = Some((writer, preparer));
        Ok(Box::new(Idle))
    }
}

impl ByHand {
    /// Writes the next frame and returns true. When there is none, removes segments that are not needed and returns
    /// false.
    pub(super) fn step(&self) -> bool {
        let mut parts = self.0.lock();
        let (writer, preparer) = parts.as_mut().unwrap();
        preparer.prepare(preparer.shared().spare.want());
        let Some(mut draft) = writer.next(false) else { return false };
        writer.put(&mut draft).and_then(|()| writer.flush(&draft)).unwrap();
        writer.finish(draft);
        true
    }

    /// Writes the next frame, which is not durable after that.
    pub(super) fn put(&self) {
        let mut parts = self.0.lock();
        let (writer, preparer) = parts.as_mut().unwrap();
        preparer.prepare(preparer.shared().spare.want());
        let mut draft = writer.next(false).unwrap();
        writer.put(&mut draft).unwrap();
    }
}

#[test]
fn only_durable_records_free_segments() {
    let (disk, runner) = (SimulatedDisk::default(), ByHand::default());
    let by_hand = WalOptions { runner: Arc::new(runner.clone()), ..options(&Arc::default()) };
    let wal = Wal::open(Arc::new(disk.clone()), by_hand, &["default".into(), "leases".into()]).unwrap();
    let append = |group: u16, index| {
        let callback = Box::new(|result: std::io::Result<()>| result.unwrap());
        wal.append(group, Some(callback), |appender| appender.entry(at(index), |out| out.extend(body(index, group))));
        assert!(runner.step());
    };
    append(1, 0);
    (0..200).for_each(|index| append(0, index));
    append(1, 1);
    let before = wal.usage().segments;
    // No caller waits until this is durable, and a crash would restore the dropped entries.
    wal.append(1, None, |appender| appender.truncate(None));
    wal.purge(0, at(199));
    while runner.step() {}
    assert!(wal.usage().segments < before / 2, "{} of {before} segments are left", wal.usage().segments);
    let wal = open(&disk.crash(|_, _| false)).unwrap();
    assert_eq!((wal.state(0).last, wal.state(1).last), (Some(at(199)), None));
    wal.close();
}

#[test]
fn records_found_when_a_log_is_opened_are_durable() {
    let disk = SimulatedDisk::default();
    let wal = open(&disk).unwrap();
    append(&wal, 0, 0).unwrap();
    disk.fail_sync_after(0);
    assert!(append(&wal, 0, 1).is_err());
    wal.close();
    disk.heal();
    // Only the process was restarted, not the machine, so it sees all written bytes.
    let idle = WalOptions { runner: Arc::new(Idle), ..options(&Arc::default()) };
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

#[test]
fn an_entry_out_of_order_is_fatal_and_never_written() {
    for purged in [None, Some(at(20))] {
        let (disk, fatal) = (SimulatedDisk::default(), Arc::new(AtomicBool::default()));
        let wal = Wal::open(Arc::new(disk.clone()), options(&fatal), &["default".into()]).unwrap();
        (0..3).for_each(|index| append(&wal, 0, index).unwrap());
        if let Some(purged) = purged {
            let (done, durable) = mpsc::channel();
            let callback = Box::new(move |result| done.send(result).unwrap());
            wal.append(0, Some(callback), |appender| appender.record(&Record::Purge(purged)));
            durable.recv().unwrap().unwrap();
        }
        assert!(append(&wal, 0, 7).is_err());
        assert!(fatal.load(Ordering::SeqCst));
        wal.close();
        let wal = open(&disk.crash(|_, _| false)).unwrap();
        assert_eq!(wal.state(0).last, purged.or(Some(at(2))));
        wal.close();
    }
}
