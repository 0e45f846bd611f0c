//! Encrypted files on a disk that crashes, and the change of keys.

use super::*;
use crate::chance::Random;
use crate::disk::simulated::SimulatedDisk;
use crate::disk::simulated_keys::{Adding, contains, encrypted};

/// Returns the content of a file.
fn content(disk: &dyn Disk, path: &Path) -> io::Result<Vec<u8>> {
    let file = disk.open(path)?;
    let mut bytes = vec![0; file.size()? as usize];
    assert_eq!(file.read_at(0, &mut bytes)?, bytes.len());
    Ok(bytes)
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
    assert!(contains(&expected, b"secret") && !contains(&simulated.bytes(path), b"secret"));
}

#[test]
fn what_was_never_written_is_zeros_and_equal_sectors_differ_on_the_disk() {
    let (simulated, path) = (SimulatedDisk::default(), Path::new("/file"));
    let disk = encrypted(&simulated, Adding::with(Some(1), &[1]));
    let file = disk.preallocate(path, 5 * SECTOR as u64).unwrap();
    file.write_at(SECTOR as u64, &[7; 2 * SECTOR]).unwrap();
    let expected = [vec![0; SECTOR], vec![7; 2 * SECTOR], vec![0; 2 * SECTOR]].concat();
    assert_eq!(content(&disk, path).unwrap(), expected);
    let stored = simulated.bytes(path);
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
    assert_eq!(simulated.bytes(path), text);
    for (wrapping, known) in [(Adding::with(Some(1), &[1]), 1), (Adding::with(Some(2), &[1, 2]), 2)] {
        let disk = encrypted(&simulated, wrapping);
        assert!(content(&disk, path).unwrap().starts_with(&text), "it is read before");
        disk.renew(path).unwrap();
        assert!(content(&disk, path).unwrap().starts_with(&text));
        let renewed = simulated.bytes(path);
        assert!(!contains(&renewed, b"secret"));
        disk.renew(path).unwrap();
        assert_eq!(simulated.bytes(path), renewed, "nothing is left to do");
        let others = Adding::with(Some(9), &[9 - known]);
        let error = content(&encrypted(&simulated, others), path).unwrap_err();
        assert_eq!(error.to_string(), format!("key {known} is missing"));
        let error = content(&EncryptedDisk::over(Arc::new(simulated.clone()), None), path).unwrap_err();
        assert_eq!(error.to_string(), "the file is encrypted, and no keys are configured");
    }
    encrypted(&simulated, plain).renew(path).unwrap();
    assert!(simulated.bytes(path).starts_with(&text));
    assert_eq!(simulated.files().len(), 1, "no copy is left");
}

#[test]
fn a_crash_while_a_key_is_renewed_leaves_a_key() {
    let (simulated, path) = (SimulatedDisk::default(), Path::new("/file"));
    let first = encrypted(&simulated, Adding::with(Some(1), &[1]));
    first.create(path).unwrap().write_at(0, &[7; SECTOR]).unwrap();
    first.open(path).unwrap().sync().unwrap();
    let before = simulated.bytes(path);
    let both = encrypted(&simulated, Adding::with(Some(2), &[1, 2]));
    both.renew(path).unwrap();
    let after = simulated.bytes(path);
    // The first copy is torn, or one of them is the new one.
    let torn = [&before[..16], &[0xff; SECTOR - 16], &before[SECTOR..]].concat();
    let half = [&after[..PAGE / 2], &before[PAGE / 2..]].concat();
    for damaged in [torn, half] {
        simulated.alter(path, |bytes| bytes.clone_from(&damaged));
        assert_eq!(content(&both, path).unwrap(), [7; SECTOR]);
        both.renew(path).unwrap();
        assert_eq!(simulated.bytes(path), after, "both copies are renewed");
    }
    simulated.alter(path, |bytes| bytes[..PAGE].iter_mut().skip(16).for_each(|byte| *byte = 0xff));
    assert!(content(&both, path).is_err(), "no copy is left");
}
