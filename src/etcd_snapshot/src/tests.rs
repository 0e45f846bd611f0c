//! Tests that the reader returns the written values, and refuses everything else.

use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};

use crate::{Current, Ending, Error, Hash, KeyValue, Lease, Snapshot, SnapshotWriter};

/// Numbers that look random and are the same in every run.
struct Draw(u64);

impl Draw {
    fn next(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }
}

fn key_value(number: i64, bytes: usize) -> KeyValue {
    let value = (0..bytes).map(|at| (at as i64 * number) as u8).collect();
    let (key, mod_revision) = (format!("/registry/things/{number:05}").into_bytes(), 100 + number / 2);
    KeyValue { key, create_revision: mod_revision, mod_revision, version: 1, value, lease: number % 2 * 7 }
}

/// A snapshot of keys with values of all sizes, and those keys.
fn written(directory: &Path, count: i64) -> (PathBuf, Vec<KeyValue>) {
    let path = directory.join("snapshot.db");
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path).unwrap();
    let mut writer = SnapshotWriter::new(file).unwrap();
    let mut draw = Draw(1);
    let sizes = (0..count).map(|_| match draw.next(50) {
        0 => draw.next(300_000),
        _ => draw.next(2_000),
    });
    let keys: Vec<_> = sizes.enumerate().map(|(number, bytes)| key_value(number as i64, bytes as usize)).collect();
    keys.iter().for_each(|key| writer.put(key).unwrap());
    let leases = (0..200).map(|number| Lease { id: 200 - number, ttl_seconds: 3_600 }).collect();
    let bytes = writer.finish(&Ending { leases, revision: 1_000_000 }).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().len(), bytes);
    (path, keys)
}

/// Reads all keys of a snapshot with their values.
fn read(path: &Path, hash: Hash) -> Result<Vec<KeyValue>, Error> {
    let snapshot = Snapshot::open(path, hash)?;
    snapshot.versions()?;
    let current = Current::read(&snapshot, b"/registry/")?;
    let mut found = Vec::new();
    for live in &current.keys {
        let value = snapshot.read(live.value)?;
        let (key, mod_revision, lease) = (live.key.to_vec(), live.mod_revision, live.lease);
        found.push(KeyValue { key, create_revision: mod_revision, mod_revision, version: 1, value, lease });
    }
    Ok(found)
}

#[test]
fn written_snapshots_read_back() {
    for count in [0, 1, 2_000] {
        let directory = tempfile::tempdir().unwrap();
        let (path, keys) = written(directory.path(), count);
        assert!(read(&path, Hash::Demanded).unwrap() == keys, "{count}");
        let snapshot = Snapshot::open(&path, Hash::Demanded).unwrap();
        assert_eq!(snapshot.versions().unwrap().storage.as_deref(), Some("3.6.0"));
        assert_eq!(snapshot.versions().unwrap().compacted, Some(1_000_000));
        let mut leases = Vec::new();
        let lease = |key: &[u8], _: &[u8], _| {
            leases.push(i64::from_be_bytes(key.try_into().unwrap()));
            Ok(())
        };
        snapshot.walk("lease", lease).unwrap();
        assert_eq!(leases, (1..=200).collect::<Vec<_>>());
        assert_eq!(Current::read(&snapshot, b"/other/").unwrap().others, count as u64);
    }
}

#[test]
fn keys_come_in_the_order_of_their_revisions() {
    let directory = tempfile::tempdir().unwrap();
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(directory.path().join("a")).unwrap();
    let mut writer = SnapshotWriter::new(file).unwrap();
    writer.put(&key_value(9, 1)).unwrap();
    assert!(matches!(writer.put(&key_value(2, 1)), Err(Error::Order(101))));
}

#[test]
fn a_part_of_a_snapshot_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let (path, _) = written(directory.path(), 300);
    let (whole, part) = (fs::read(&path).unwrap(), directory.path().join("part"));
    let mut draw = Draw(2);
    let lengths = (0..100).map(|_| draw.next(whole.len() as u64) as usize);
    for length in lengths.chain([0, 1, 80, 4096, 8192, whole.len() - 32, whole.len() - 1]) {
        fs::write(&part, &whole[..length]).unwrap();
        let refused = read(&part, Hash::Demanded).map(|_| ()).unwrap_err();
        assert!(!matches!(refused, Error::Io(_)), "{length}: {refused}");
        // Without a hash, a missing part is noticed too, unless only the hash is missing.
        let refused = read(&part, Hash::Skipped).map(|_| ());
        assert_eq!(refused.is_ok(), whole.len() - length <= 32, "{length}: {refused:?}");
    }
}

#[test]
fn a_changed_byte_is_noticed_or_does_no_harm_without_a_hash() {
    let directory = tempfile::tempdir().unwrap();
    let (path, keys) = written(directory.path(), 60);
    let (whole, changed) = (fs::read(&path).unwrap(), directory.path().join("changed"));
    let mut draw = Draw(3);
    let mut refused = 0;
    for round in 0..1_000 {
        let mut bytes = whole.clone();
        // Half of the changes are made in the headers of pages.
        let page = draw.next(whole.len() as u64 / 4096) * 4096;
        let at = if round % 2 == 0 { page + draw.next(200) } else { draw.next(whole.len() as u64) } as usize;
        bytes[at] ^= 1 << draw.next(8);
        fs::write(&changed, &bytes).unwrap();
        if round < 200 {
            let error = read(&changed, Hash::Demanded).map(|_| ()).unwrap_err();
            assert!(matches!(error, Error::Hash | Error::NoMeta { .. }), "{at}: {error}");
        }
        match read(&changed, Hash::Skipped) {
            Ok(read) => assert!(read.len() <= keys.len(), "{at}"),
            Err(Error::Io(error)) => panic!("{at}: {error}"),
            Err(_) => refused += 1,
        }
    }
    assert!(refused > 50, "only {refused} of the changes were noticed");
}

#[test]
fn pages_that_lead_to_themselves_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let (path, _) = written(directory.path(), 2_000);
    let mut bytes = fs::read(&path).unwrap();
    let branches: Vec<usize> = (3..bytes.len() / 4096)
        .filter(|page| bytes[page * 4096 + 8] == 1 && bytes[page * 4096..][..8] == (*page as u64).to_le_bytes())
        .collect();
    let branch = branches[0];
    bytes[branch * 4096 + 16 + 8..][..8].copy_from_slice(&(branch as u64).to_le_bytes());
    fs::write(&path, &bytes).unwrap();
    let error = read(&path, Hash::Skipped).map(|_| ()).unwrap_err();
    assert_eq!(error.to_string(), format!("page {branch} of the snapshot is damaged: it stands twice in a tree"));
}

#[test]
fn the_last_version_of_a_key_counts_and_deleted_keys_are_absent() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a");
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path).unwrap();
    let mut writer = SnapshotWriter::new(file).unwrap();
    for number in 0..10 {
        let key = format!("/registry/{}", number % 3).into_bytes();
        writer.put(&KeyValue { key, mod_revision: number, value: vec![number as u8], ..KeyValue::default() }).unwrap();
    }
    writer.finish(&Ending { leases: Vec::new(), revision: 9 }).unwrap();
    let snapshot = Snapshot::open(&path, Hash::Demanded).unwrap();
    let current = Current::read(&snapshot, b"/registry/").unwrap();
    let revisions: Vec<_> = current.keys.iter().map(|live| (live.mod_revision, &*live.key)).collect();
    assert_eq!(revisions, [(7, &b"/registry/1"[..]), (8, b"/registry/2"), (9, b"/registry/0")]);
    assert_eq!((current.revision, current.versions), (9, 10));
}
