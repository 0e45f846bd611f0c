//! Encrypted files on a disk that crashes, and the change of keys.

use super::*;
use crate::chance::Random;
use crate::disk::PAGE;
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
    let sectors = stored[HEADER..].chunks(SECTOR).collect::<Vec<_>>();
    assert_ne!(sectors[1], sectors[2]);
    assert!(sectors[3].iter().all(|byte| *byte == 0));
}

#[test]
fn renewing_a_file_changes_its_key_or_whether_it_is_encrypted() {
    let (simulated, path) = (SimulatedDisk::default(), Path::new("/wal/file.wal"));
    let text = [&b"FLOTSNP\n"[..], &b"secret".repeat(1000)].concat();
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

/// Keys whose wrapped form is longer than a sector.
fn long(current: u8, known: &[u8]) -> Arc<Adding> {
    Arc::new(Adding { padding: 3 * SECTOR, ..(*Adding::with(Some(current), known)).clone() })
}

#[test]
fn crashes_while_a_key_is_renewed_leave_a_key() {
    let path = Path::new("/file");
    for syncs in 0..6 {
        let mut random = Random::new(syncs + 1);
        let mut simulated = SimulatedDisk::default();
        let first = encrypted(&simulated, long(1, &[1]));
        let file = first.create(path).unwrap();
        file.write_at(0, &[7; SECTOR]).unwrap();
        file.sync().unwrap();
        let both = |disk: &SimulatedDisk| encrypted(disk, long(2, &[1, 2]));
        // The machine fails twice, each time while a copy is being written.
        for crash in 0..2 {
            simulated.fail_sync_after(syncs % 3);
            let renewed = both(&simulated).renew(path);
            simulated = simulated.crash(|_, _| random.below(2) == 0);
            assert_eq!(
                content(&both(&simulated), path).unwrap(),
                [7; SECTOR],
                "{syncs} syncs, crash {crash}: {renewed:?}"
            );
        }
        both(&simulated).renew(path).unwrap();
        assert_eq!(content(&encrypted(&simulated, long(2, &[2])), path).unwrap(), [7; SECTOR]);
    }
}

#[test]
fn either_copy_of_the_header_suffices() {
    let (simulated, path) = (SimulatedDisk::default(), Path::new("/file"));
    let disk = encrypted(&simulated, Adding::with(Some(1), &[1]));
    disk.create(path).unwrap().write_at(0, &[7; SECTOR]).unwrap();
    let before = simulated.bytes(path);
    for (from, to) in [
        (0, 8),
        (0, SECTOR),
        (6, 7),
        (8, 12),
        (12, 40),
        (PAGE, PAGE + 8),
        (PAGE + 8, PAGE + 12),
        (PAGE + 40, PAGE + 41),
    ] {
        for damage in [0xff, 0] {
            simulated.alter(path, |bytes| bytes[from..to].fill(damage));
            assert_eq!(content(&disk, path).unwrap(), [7; SECTOR], "without {from} to {to}");
            disk.renew(path).unwrap();
            assert!(content(&disk, path).unwrap() == [7; SECTOR] && simulated.bytes(path).len() == before.len());
            simulated.alter(path, |bytes| bytes.clone_from(&before));
        }
    }
    for (at, text) in [(16, "is damaged"), (8, "has format 4294967295, newer than 1")] {
        simulated.alter(path, |bytes| {
            bytes.clone_from(&before);
            [0, PAGE].iter().for_each(|copy| bytes[copy + at..copy + at + 4].fill(0xff));
        });
        let error = content(&disk, path).unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
    }
    // A file with further damage is not encrypted once more.
    simulated.alter(path, |bytes| bytes[..2 * PAGE].fill(0xff));
    let damaged = simulated.bytes(path);
    disk.renew(path).unwrap();
    assert_eq!(simulated.bytes(path), damaged);
}

#[test]
fn a_plain_file_stays_plain_whatever_its_content_looks_like() {
    let (simulated, path) = (SimulatedDisk::default(), Path::new("/file.wal"));
    encrypted(&simulated, Adding::with(Some(1), &[1])).create(Path::new("/other")).unwrap();
    let mut bytes = b"FLOTWAL\n".to_vec();
    bytes.resize(PAGE, 0);
    bytes.extend_from_slice(&simulated.bytes(Path::new("/other"))[..PAGE]);
    simulated.create(path).unwrap().write_at(0, &bytes).unwrap();
    let disk = encrypted(&simulated, Adding::with(Some(1), &[1]));
    assert_eq!(content(&disk, path).unwrap(), bytes);
    disk.renew(path).unwrap();
    assert!(content(&disk, path).unwrap() == bytes && simulated.bytes(path) != bytes);
}

#[test]
fn a_file_that_cannot_be_stored_anew_stays_and_leaves_no_copy() {
    let (simulated, path) = (SimulatedDisk::default(), Path::new("/file.wal"));
    let bytes = [&b"FLOTSNP\n"[..], &[7; 5000]].concat();
    simulated.create(path).unwrap().write_at(0, &bytes).unwrap();
    simulated.set_room(Some(6000));
    let disk = encrypted(&simulated, Adding::with(Some(1), &[1]));
    assert_eq!(disk.renew(path).unwrap_err().kind(), io::ErrorKind::StorageFull);
    assert_eq!((simulated.files().len(), simulated.bytes(path)), (1, bytes.clone()));
    // A segment that has lost its end would get it back as zeros.
    simulated.set_room(None);
    simulated.alter(path, |bytes| bytes[..8].copy_from_slice(b"FLOTWAL\n"));
    assert_eq!(disk.renew(path).unwrap_err().to_string(), "the end of the file is missing");
    assert_eq!((simulated.files().len(), simulated.bytes(path)[8..].to_vec()), (1, bytes[8..].to_vec()));
}

/// Vector 10 of IEEE 1619-2007, annex B: keys, data unit 255, and the beginning of the ciphertext.
#[test]
fn sectors_are_encrypted_as_the_standard_says() {
    let digits =
        |text: &str| text.bytes().map(|digit| char::from(digit).to_digit(16).unwrap() as u8).collect::<Vec<_>>();
    let bytes = |text: &str| digits(text).chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect::<Vec<_>>();
    let key = bytes(concat!(
        "2718281828459045235360287471352662497757247093699959574966967627",
        "3141592653589793238462643383279502884197169399375105820974944592"
    ));
    let key = FileKey::of(&key).unwrap();
    let plain = (0..SECTOR).map(|byte| byte as u8).collect::<Vec<_>>();
    let mut sector = plain.clone();
    key.encrypt(&mut sector, 255);
    assert_eq!(sector[..16], bytes("1c3b3a102f770386e4836c99e370cf9b"));
    key.decrypt(&mut sector, 255);
    assert_eq!(sector, plain);
}
