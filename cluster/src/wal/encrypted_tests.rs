//! The log on an encrypted disk.

use std::sync::Arc;

use super::durability_tests::ByHand;
use super::wal_tests::{append, at, body, check, options};
use super::{Wal, WalOptions};
use crate::chance::Random;
use crate::disk::PAGE;
use crate::disk::simulated::SimulatedDisk;
use crate::disk::simulated_keys::{Adding, contains, encrypted};

/// Opens the log on an encrypted disk. `runner` runs its writer.
fn open(disk: &SimulatedDisk, runner: &ByHand) -> Wal {
    let disk = encrypted(disk, Adding::with(Some(1), &[1]));
    let options = WalOptions { runner: Arc::new(runner.clone()), ..options(&Arc::default()) };
    Wal::open(Arc::new(disk), options, &["default".into()]).unwrap()
}

/// Returns whether entries can be read on the disk.
fn is_readable(disk: &SimulatedDisk) -> bool {
    disk.files().iter().any(|(path, _)| contains(&disk.bytes(path), b"entry "))
}

#[test]
fn an_encrypted_log_survives_crashes() {
    for seed in 1..=40_u64 {
        let (mut random, mut disk, mut next) = (Random::new(seed), SimulatedDisk::default(), 0);
        for round in 0..4 {
            let runner = ByHand::default();
            let wal = open(&disk, &runner);
            let last = wal.state(0).last.map_or(0, |last| last.index + 1);
            assert!(last == next || last == next + 1, "seed {seed}, round {round}: {last} entries, {next} durable");
            next = last;
            check(&wal, 0, 0..next);
            let append = |index| {
                let entry = |out: &mut Vec<u8>| out.extend(body(index, 0));
                wal.append(0, Some(Box::new(drop)), |appender| appender.entry(at(index), entry));
            };
            for _ in 0..random.below(40) {
                append(next);
                assert!(runner.step());
                next += 1;
            }
            // One more is written and not durable: any of its sectors may be there after the crash.
            append(next);
            runner.put();
            assert!(!is_readable(&disk));
            disk = disk.crash(|_, _| random.below(2) == 0);
        }
    }
}

#[test]
fn damage_of_an_encrypted_log_is_noticed() {
    let (disk, runner) = (SimulatedDisk::default(), ByHand::default());
    let wal = open(&disk, &runner);
    wal.append(0, Some(Box::new(drop)), |appender| appender.entry(at(0), |out| out.extend(body(30, 0))));
    assert!(runner.step());
    let (path, _) = disk.files().into_iter().find(|(path, _)| path.extension().is_some_and(|is| is == "wal")).unwrap();
    disk.alter(&path, |bytes| bytes[2 * PAGE + 100] ^= 1);
    let reopened = encrypted(&disk, Adding::with(Some(1), &[1]));
    let error = Wal::open(Arc::new(reopened), options(&Arc::default()), &["default".into()]).err().unwrap();
    assert!(error.to_string().contains("is damaged"), "{error}");
}

#[test]
fn a_log_is_stored_anew_when_it_is_opened_with_other_keys() {
    let (disk, mut next) = (SimulatedDisk::default(), 0);
    let plain = || Adding::with(None, &[1, 2]);
    for (wrapping, is_encrypted) in [
        (plain(), false),
        (Adding::with(Some(1), &[1]), true),
        (Adding::with(Some(2), &[1, 2]), true),
        (Adding::with(Some(2), &[2]), true),
        (plain(), false),
    ] {
        let disk_with_keys = Arc::new(encrypted(&disk, wrapping));
        let wal = Wal::open(disk_with_keys, options(&Arc::default()), &["default".into()]).unwrap();
        check(&wal, 0, 0..next);
        for _ in 0..60 {
            append(&wal, 0, next).unwrap();
            next += 1;
        }
        wal.close();
        assert_ne!(is_readable(&disk), is_encrypted);
    }
}
