//! Encrypted files on a disk that crashes, and the change of keys.

use std::sync::mpsc;

use super::*;
use crate::chance::Random;
use crate::disk::simulated::SimulatedDisk;
use crate::wal::{LogRef, Threads, Wal, WalOptions};

/// Wraps keys by adding a byte, and knows those that were wrapped by the bytes that it has.
#[derive(Clone)]
struct Adding {
    /// What keys of new files are wrapped by; `None` if these are not encrypted.
    current: Option<u8>,
    known: Vec<u8>,
}

impl Adding {
    fn with(current: Option<u8>, known: &[u8]) -> Arc<Adding> {
        Arc::new(Adding { current, known: known.to_vec() })
    }
}

impl KeyWrapping for Adding {
    fn wrap(&self, key: &[u8]) -> Option<io::Result<Vec<u8>>> {
        let by = self.current?;
        Some(Ok([by].into_iter().chain(key.iter().map(|byte| byte.wrapping_add(by))).collect()))
    }

    fn unwrap(&self, wrapped: &[u8]) -> io::Result<Vec<u8>> {
        let (by, key) = wrapped.split_first().ok_or(io::ErrorKind::InvalidData)?;
        match self.known.contains(by) {
            true => Ok(key.iter().map(|byte| byte.wrapping_sub(*by)).collect()),
            false => Err(io::Error::other(format!("key {by} is missing"))),
        }
    }

    fn is_current(&self, wrapped: &[u8]) -> bool {
        wrapped.first() == self.current.as_ref()
    }
}

fn encrypted(disk: &SimulatedDisk, wrapping: Arc<Adding>) -> EncryptedDisk {
    EncryptedDisk::over(Arc::new(disk.clone()), Some(wrapping))
}

/// Returns what lies on the disk in a file.
fn stored(disk: &SimulatedDisk, path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    disk.alter(path, |content| bytes.clone_from(content));
    bytes
}

/// Returns the content of a file.
fn content(disk: &dyn Disk, path: &Path) -> io::Result<Vec<u8>> {
    let file = disk.open(path)?;
    let mut bytes = vec![0; file.size()? as usize];
    assert_eq!(file.read_at(0, &mut bytes)?, bytes.len());
    Ok(bytes)
}

fn contains(bytes: &[u8], text: &[u8]) -> bool {
    bytes.windows(text.len()).any(|window| window == text)
}

#[test]
fn a_file_has_what_was_written_and_the_disk_does_not() {
    let (simulated, path) = (SimulatedDisk::default(), Path::new("/file"));
    let disk = encrypted(&simulated, Adding::with(Some(1), &[1]));
    let file = disk.create(path).unwrap();
    let (mut random, mut expected) = (Random::new(7), Vec::new());
    for round in 0..300 {
        let offset = random.below(expected.len() as u64 + 1) as usize;
        let bytes = b"secret ".repeat(random.below(if round % 9 == 0 { 2000 } else { 40 }) as usize);
        expected.resize(expected.len().max(offset + bytes.len()), 0);
        expected[offset..offset + bytes.len()].copy_from_slice(&bytes);
        file.write_at(offset as u64, &bytes).unwrap();
        let start = random.below(expected.len() as u64 + 1) as usize;
        let mut part = vec![1; random.below(3000) as usize];
        let read = file.read_at(start as u64, &mut part).unwrap();
        let end = expected.len().min(start + part.len());
        assert_eq!(part[..end - start], expected[start..end], "round {round}");
        assert!(part[end - start..read].iter().all(|byte| *byte == 0), "round {round}: zeros follow the end");
    }
    assert_eq!(file.size().unwrap(), expected.len().next_multiple_of(SECTOR) as u64);
    expected.resize(expected.len().next_multiple_of(SECTOR), 0);
    assert_eq!(content(&disk, path).unwrap(), expected);
    assert!(contains(&expected, b"secret") && !contains(&stored(&simulated, path), b"secret"));
}

#[test]
fn what_was_never_written_is_zeros_and_equal_sectors_differ_on_the_disk() {
    let (simulated, path) = (SimulatedDisk::default(), Path::new("/file"));
    let disk = encrypted(&simulated, Adding::with(Some(1), &[1]));
    let file = disk.preallocate(path, 5 * SECTOR as u64).unwrap();
    file.write_at(SECTOR as u64, &[7; 2 * SECTOR]).unwrap();
    let expected = [vec![0; SECTOR], vec![7; 2 * SECTOR], vec![0; 2 * SECTOR]].concat();
    assert_eq!(content(&disk, path).unwrap(), expected);
    let stored = stored(&simulated, path);
    let sectors = stored[PAGE..].chunks(SECTOR).collect::<Vec<_>>();
    assert_ne!(sectors[1], sectors[2]);
    assert!(sectors[3].iter().all(|byte| *byte == 0));
}

#[test]
fn renewing_a_file_changes_its_key_or_whether_it_is_encrypted() {
    let (simulated, path) = (SimulatedDisk::default(), Path::new("/wal/file.wal"));
    let text = b"secret".repeat(1000);
    let plain = Adding::with(None, &[1, 2]);
    encrypted(&simulated, plain.clone()).create(path).unwrap().write_at(0, &text).unwrap();
    assert_eq!(stored(&simulated, path), text);
    for (wrapping, known) in [(Adding::with(Some(1), &[1]), 1), (Adding::with(Some(2), &[1, 2]), 2)] {
        let disk = encrypted(&simulated, wrapping);
        assert!(content(&disk, path).unwrap().starts_with(&text), "it is read before");
        disk.renew(path).unwrap();
        assert!(content(&disk, path).unwrap().starts_with(&text));
        let renewed = stored(&simulated, path);
        assert!(!contains(&renewed, b"secret"));
        disk.renew(path).unwrap();
        assert_eq!(stored(&simulated, path), renewed, "nothing is left to do");
        let others = Adding::with(Some(9), &[9 - known]);
        let error = content(&encrypted(&simulated, others), path).unwrap_err();
        assert_eq!(error.to_string(), format!("key {known} is missing"));
        let error = content(&EncryptedDisk::over(Arc::new(simulated.clone()), None), path).unwrap_err();
        assert_eq!(error.to_string(), "the file is encrypted, and no keys are configured");
    }
    encrypted(&simulated, plain).renew(path).unwrap();
    assert!(stored(&simulated, path).starts_with(&text));
    assert_eq!(simulated.files().len(), 1, "no copy is left");
}

#[test]
fn a_crash_while_a_key_is_renewed_leaves_a_key() {
    let (simulated, path) = (SimulatedDisk::default(), Path::new("/file"));
    let first = encrypted(&simulated, Adding::with(Some(1), &[1]));
    first.create(path).unwrap().write_at(0, &[7; SECTOR]).unwrap();
    first.open(path).unwrap().sync().unwrap();
    let before = stored(&simulated, path);
    let both = encrypted(&simulated, Adding::with(Some(2), &[1, 2]));
    both.renew(path).unwrap();
    let after = stored(&simulated, path);
    // The first copy is torn, or one of them is the new one.
    let torn = [vec![0xff; SECTOR], before[SECTOR..].to_vec()].concat();
    let torn = [&before[..8], &torn[8..]].concat();
    let half = [&after[..PAGE / 2], &before[PAGE / 2..]].concat();
    for damaged in [torn, half] {
        simulated.alter(path, |bytes| bytes.clone_from(&damaged));
        assert_eq!(content(&both, path).unwrap(), [7; SECTOR]);
        both.renew(path).unwrap();
        assert_eq!(stored(&simulated, path), after, "both copies are renewed");
    }
    simulated.alter(path, |bytes| bytes[..PAGE].iter_mut().skip(8).for_each(|byte| *byte = 0xff));
    assert!(content(&both, path).is_err(), "no copy is left");
}

fn options(directory: &str) -> WalOptions {
    let on_fatal = Arc::new(|_: &str| {});
    WalOptions { directory: directory.into(), segment_bytes: 16 << 10, on_fatal, runner: Arc::new(Threads) }
}

/// Opens the log on an encrypted disk.
fn open(disk: &SimulatedDisk) -> Wal {
    let disk = encrypted(disk, Adding::with(Some(1), &[1]));
    Wal::open(Arc::new(disk), options("/wal"), &["default".into()]).unwrap()
}

fn at(index: u64) -> LogRef {
    LogRef { term: 1, node: 1, index }
}

fn text(index: u64) -> Vec<u8> {
    format!("entry {index} ").repeat(1 + index as usize * 37 % 200).into_bytes()
}

fn append(wal: &Wal, index: u64) -> io::Result<()> {
    let (done, durable) = mpsc::channel();
    let callback = Box::new(move |result| done.send(result).unwrap());
    wal.append(0, Some(callback), |appender| appender.entry(at(index), |out| out.extend(text(index))));
    durable.recv().unwrap()
}

#[test]
fn an_encrypted_log_survives_crashes() {
    for seed in 1..=30_u64 {
        let (mut random, mut disk, mut next) = (Random::new(seed), SimulatedDisk::default(), 0);
        for round in 0..4 {
            let wal = open(&disk);
            let last = wal.state(0).last.map_or(0, |last| last.index + 1);
            assert!(last == next || last == next + 1, "seed {seed}, round {round}: {last} of {next}");
            next = last;
            for index in 0..next {
                let read = wal.read(0, index, &mut Vec::new(), |_, bytes| bytes.to_vec()).unwrap();
                assert_eq!(read, Some(text(index)), "seed {seed}, entry {index}");
            }
            for _ in 0..random.below(40) {
                append(&wal, next).unwrap();
                next += 1;
            }
            // One more is written and not durable: any of its sectors may be there after the crash.
            disk.fail_sync_after(0);
            assert!(append(&wal, next).is_err());
            wal.close();
            disk = disk.crash(|_, _| random.below(2) == 0);
        }
        for (path, _) in disk.files() {
            assert!(!contains(&stored(&disk, &path), b"entry"), "{}", path.display());
        }
    }
}

#[test]
fn damage_of_an_encrypted_log_is_noticed() {
    let disk = SimulatedDisk::default();
    let wal = open(&disk);
    (0..20).for_each(|index| append(&wal, index).unwrap());
    wal.close();
    let (path, _) = disk.files().into_iter().find(|(path, _)| path.extension().is_some_and(|is| is == "wal")).unwrap();
    disk.alter(&path, |bytes| bytes[PAGE + 3 * SECTOR] ^= 1);
    let reopened = encrypted(&disk, Adding::with(Some(1), &[1]));
    let error = Wal::open(Arc::new(reopened), options("/wal"), &["default".into()]).err().unwrap();
    assert!(error.to_string().contains("is damaged"), "{error}");
}

/// A log that was not encrypted is, once it is opened with keys, and the other way round.
#[test]
fn a_log_is_renewed_when_it_is_opened() {
    let disk = SimulatedDisk::default();
    let mut next = 0;
    let plain = || Adding::with(None, &[1, 2]);
    for (wrapping, is_encrypted) in [
        (plain(), false),
        (Adding::with(Some(1), &[1]), true),
        (Adding::with(Some(2), &[1, 2]), true),
        (Adding::with(Some(2), &[2]), true),
        (plain(), false),
    ] {
        let wal = Wal::open(Arc::new(encrypted(&disk, wrapping)), options("/wal"), &["default".into()]).unwrap();
        assert_eq!(wal.state(0).last.map_or(0, |last| last.index + 1), next);
        for _ in 0..60 {
            append(&wal, next).unwrap();
            next += 1;
        }
        wal.close();
        let are_readable = disk.files().iter().filter(|(path, _)| contains(&stored(&disk, path), b"entry ")).count();
        assert_eq!(are_readable > 0, !is_encrypted, "{are_readable} files have readable entries");
    }
}
