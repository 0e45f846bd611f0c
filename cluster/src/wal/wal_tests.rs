//! The log on a disk that crashes, decays, fills up and fails.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use super::record::Record;
use super::{Ballot, LogRef, Threads, Wal, WalError, WalOptions, frame, missing_end, segment};
use crate::chance::Random;
use crate::disk::Disk as _;
use crate::disk::simulated::SimulatedDisk;

pub(super) const SEGMENT: u64 = 16 << 10;
/// How long tests wait for what the log must do, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

pub(super) fn options(fatal: &Arc<AtomicBool>) -> WalOptions {
    let fatal = fatal.clone();
    WalOptions {
        directory: PathBuf::from("/wal"),
        segment_bytes: SEGMENT,
        on_fatal: Arc::new(move |_| fatal.store(true, Ordering::SeqCst)),
        runner: Arc::new(Threads),
    }
}

pub(super) fn open(disk: &SimulatedDisk) -> Result<Wal, WalError> {
    Wal::open(Arc::new(disk.clone()), options(&Arc::default()), &["default".into(), "leases".into()])
}

pub(super) fn at(index: u64) -> LogRef {
    LogRef { term: 1, node: 1, index }
}

pub(super) fn body(index: u64, group: u16) -> Vec<u8> {
    format!("entry {index} of {group} ").repeat(1 + index as usize % 40).into_bytes()
}

/// Appends an entry and waits until it is durable.
pub(super) fn append(wal: &Wal, group: u16, index: u64) -> std::io::Result<()> {
    let (done, durable) = mpsc::channel();
    let callback = Box::new(move |result| done.send(result).unwrap());
    wal.append(group, Some(callback), |appender| appender.entry(at(index), |out| out.extend(body(index, group))));
    durable.recv_timeout(PATIENCE).expect("the log answers")
}

/// Checks that a group has exactly these entries.
pub(super) fn check(wal: &Wal, group: u16, indexes: std::ops::Range<u64>) {
    for index in indexes.clone() {
        let read = wal.read(group, index, &mut Vec::new(), |found, bytes| (found, bytes.to_vec())).unwrap();
        assert_eq!(read, Some((at(index), body(index, group))), "entry {index} of {group}");
    }
    assert_eq!(wal.state(group).last.map(|last| last.index + 1).unwrap_or(0), indexes.end);
}

#[test]
fn durable_records_survive_crashes_at_any_point() {
    for seed in 1..=40_u64 {
        let mut random = Random::new(seed);
        let mut disk = SimulatedDisk::default();
        let mut next = [0_u64; 2];
        for _ in 0..4 {
            let wal = open(&disk).unwrap();
            for group in 0..2_u16 {
                check(&wal, group, 0..next[group as usize]);
            }
            for _ in 0..random.below(40) {
                let group = random.below(2) as u16;
                append(&wal, group, next[group as usize]).unwrap();
                next[group as usize] += 1;
            }
            // One more is in flight to the disk; any of its sectors may be there.
            let group = random.below(2) as u16;
            let lost = disk.clone();
            let torn = {
                let half_written = SimulatedDisk::default();
                drop(half_written);
                append(&wal, group, next[group as usize]).unwrap();
                lost.crash(|_, _| false)
            };
            wal.close();
            if random.below(2) == 0 {
                // The frame is durable: it must be there.
                next[group as usize] += 1;
                disk = torn;
            } else {
                tear_last_frame(&torn, &mut random);
                let reopened = open(&torn).unwrap();
                check(&reopened, group, 0..next[group as usize]);
                reopened.close();
                disk = torn;
            }
        }
    }
}

/// Returns the path of the last segment that was written to, and the start and end of each of its frames.
fn frames(disk: &SimulatedDisk) -> (PathBuf, Vec<(usize, usize)>) {
    let files = disk.files();
    let path = files.iter().map(|(path, _)| path).filter(|path| segment::number(path).is_some()).max().unwrap().clone();
    let mut found = Vec::new();
    disk.alter(&path, |bytes| {
        let number = segment::number(&path).unwrap();
        let mut offset = segment::SEGMENT_HEADER;
        while let frame::SegmentContent::Frame(header) = frame::look(&bytes[offset..], offset as u64, number, None) {
            found.push((offset, offset + header.frame_length()));
            offset += header.frame_length();
        }
    });
    (path, found)
}

/// Undoes the write of some sectors of the last frame, at least one.
fn tear_last_frame(disk: &SimulatedDisk, random: &mut Random) {
    let (path, frames) = frames(disk);
    let (start, end) = *frames.last().unwrap();
    disk.alter(&path, |bytes| {
        let sectors: Vec<usize> = (start / 512..end.div_ceil(512)).collect();
        let lost = sectors[random.below(sectors.len() as u64) as usize];
        for sector in sectors {
            if sector == lost || random.below(2) == 0 {
                let range = (sector * 512).max(start)..((sector + 1) * 512).min(end);
                bytes[range].fill(0);
            }
        }
    });
}

#[test]
fn a_flipped_bit_never_loses_an_entry_unnoticed() {
    let disk = SimulatedDisk::default();
    let wal = open(&disk).unwrap();
    for index in 0..12 {
        append(&wal, 0, index).unwrap();
    }
    wal.close();
    let (path, frames) = frames(&disk);
    let (end, mut refused) = (frames.last().unwrap().1, 0);
    for bit in (0..(end + 256) * 8).step_by(37) {
        let damaged = disk.crash(|_, _| true);
        damaged.alter(&path, |bytes| bytes[bit / 8] ^= 1 << (bit % 8));
        match open(&damaged) {
            Ok(wal) => {
                check(&wal, 0, 0..12); // the bit is in padding or beyond the frames
                wal.close();
            }
            Err(WalError::Damaged { path: named, offset, .. }) => {
                assert_eq!(named, path);
                assert!(offset as usize <= bit / 8);
                refused += 1;
            }
            Err(WalError::Newer { .. }) => assert!((8..12).contains(&(bit / 8))),
            Err(error) => panic!("{error}"),
        }
    }
    assert!(refused > 100, "{refused}");
}

#[test]
fn a_log_without_its_newest_segments_is_refused() {
    let disk = SimulatedDisk::default();
    let wal = open(&disk).unwrap();
    for index in 0..200 {
        append(&wal, 0, index).unwrap();
    }
    wal.close();
    let segments: Vec<PathBuf> =
        disk.files().into_iter().map(|(path, _)| path).filter(|path| segment::number(path).is_some()).collect();
    assert!(segments.len() > 3, "{segments:?}");
    for kept in 0..segments.len() {
        let lacking = disk.crash(|_, _| true);
        segments[kept..].iter().for_each(|path| lacking.remove(path).unwrap());
        match open(&lacking) {
            Err(WalError::Missing { path }) => assert_eq!(Some(&path), segments.last()),
            opened => panic!("{kept} of {}: {:?}", segments.len(), opened.err()),
        }
    }
    let unmarked = disk.crash(|_, _| true);
    unmarked.remove(Path::new("/log")).unwrap();
    let wal = open(&unmarked).unwrap();
    check(&wal, 0, 0..200);
    wal.close();
}

#[test]
fn a_log_that_lost_its_end_since_it_was_closed_is_refused() {
    let disk = SimulatedDisk::default();
    let wal = open(&disk).unwrap();
    (0..8).for_each(|index| append(&wal, 0, index).unwrap());
    let killed = disk.crash(|_, _| true);
    wal.close();
    let (path, frames) = frames(&disk);
    assert_eq!(missing_end(&disk, Path::new("/wal")).unwrap(), None);
    for (start, _) in &frames[1..] {
        let forget = |bytes: &mut Vec<u8>| bytes[*start..].fill(0);
        let closed = disk.crash(|_, _| true);
        closed.alter(&path, forget);
        assert_eq!(missing_end(&closed, Path::new("/wal")).unwrap(), Some(path.clone()));
        match open(&closed) {
            Err(WalError::Damaged { path: named, offset, .. }) => {
                assert_eq!((named, offset), (path.clone(), *start as u64))
            }
            opened => panic!("frames from {start} on are missing: {:?}", opened.err()),
        }
        // A log that was not closed may have ended there.
        let killed = killed.crash(|_, _| true);
        killed.alter(&path, forget);
        assert_eq!(missing_end(&killed, Path::new("/wal")).unwrap(), None);
        open(&killed).unwrap().close();
    }
    let wal = open(&disk).unwrap();
    check(&wal, 0, 0..8);
    wal.close();
}

#[test]
fn a_truncated_segment_is_refused() {
    let disk = SimulatedDisk::default();
    let wal = open(&disk).unwrap();
    for index in 0..8 {
        append(&wal, 0, index).unwrap();
    }
    wal.close();
    let (path, frames) = frames(&disk);
    let (start, end) = *frames.last().unwrap();
    // Segments of former releases do not state their size.
    let unsized_one = disk.crash(|_, _| true);
    unsized_one.alter(&path, |bytes| bytes[24..segment::SEGMENT_HEADER].fill(0));
    let wal = open(&unsized_one.crash(|_, _| true)).unwrap();
    check(&wal, 0, 0..8);
    wal.close();
    for (disk, first) in [(&disk, start), (&unsized_one, start + 1)] {
        for length in (first..end).step_by(7) {
            let cut = disk.crash(|_, _| true);
            cut.alter(&path, |bytes| bytes.truncate(length));
            let opened = open(&cut).err();
            let is_refused = matches!(&opened, Some(WalError::Damaged { path: named, .. }) if *named == path);
            assert!(is_refused, "cut at {length} of {start}..{end}: {opened:?}");
        }
    }
}

#[test]
fn a_missing_segment_is_noticed() {
    let disk = SimulatedDisk::default();
    let wal = open(&disk).unwrap();
    (0..200).for_each(|index| append(&wal, 0, index).unwrap());
    wal.close();
    let count = disk.files().iter().filter(|(path, _)| segment::number(path).is_some()).count() as u64;
    assert!(count > 3);
    let directory = Path::new("/wal");
    for (number, expected) in [(2, false), (1, false)] {
        let partial = disk.crash(|_, _| true);
        crate::disk::Disk::remove(&partial, &segment::path(directory, number)).unwrap();
        assert_eq!(open(&partial).is_ok(), expected, "without segment {number}");
    }
}

#[test]
fn votes_and_truncations_survive_and_superseded_segments_are_removed() {
    let disk = SimulatedDisk::default();
    let wal = open(&disk).unwrap();
    let ballot = Ballot { term: 3, node: 2, committed: true };
    wal.append(1, None, |appender| appender.vote(ballot));
    (0..200).for_each(|index| append(&wal, 0, index).unwrap());
    (0..5).for_each(|index| append(&wal, 1, index).unwrap());
    wal.append(1, Some(Box::new(|_| {})), |appender| {
        appender.truncate(Some(2));
        appender.committed(at(1));
    });
    let before = wal.usage().segments;
    wal.purge(0, at(195));
    let gone = |wal: &Wal| wal.usage().segments < before / 2;
    let began = std::time::Instant::now();
    while !gone(&wal) && began.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(2));
    }
    assert!(gone(&wal), "{before} segments, then {}", wal.usage().segments);
    wal.close();
    let wal = open(&disk.crash(|_, _| false)).unwrap();
    assert_eq!((wal.state(1).vote, wal.state(1).committed), (Some(ballot), Some(at(1))));
    assert_eq!((wal.state(0).purged, wal.state(0).first_index), (Some(at(195)), Some(196)));
    check(&wal, 0, 196..200);
    check(&wal, 1, 0..3);
    wal.append(0, None, |appender| appender.truncate(None));
    assert_eq!(wal.state(0).last, Some(at(195)));
    wal.close();
}

/// Appends one entry after the other, each before the writer looks for more, until the log is closed.
fn append_for_ever(wal: &Wal, group: u16, index: u64) {
    let next = wal.clone();
    let callback = move |result: std::io::Result<()>| {
        if result.is_ok() {
            append_for_ever(&next, group, index + 1);
        }
    };
    wal.append(group, Some(Box::new(callback)), |appender| appender.entry(at(index), |out| out.extend([7; 9])));
}

#[test]
fn segments_are_removed_while_the_writer_is_never_idle() {
    let disk = SimulatedDisk::default();
    let wal = open(&disk).unwrap();
    (0..200).for_each(|index| append(&wal, 0, index).unwrap());
    let newest = || disk.files().iter().filter_map(|(path, _)| segment::number(path)).max();
    let oldest = || disk.files().iter().filter_map(|(path, _)| segment::number(path)).min();
    let before = newest();
    append_for_ever(&wal, 1, 0);
    wal.purge(0, at(199));
    let began = std::time::Instant::now();
    while oldest() < before && began.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(2));
    }
    // The frame that is being written is in the segment that was the newest then, or in a later one.
    assert!(oldest() >= before, "from {:?} on, {before:?} was the newest", oldest());
    wal.close();
}

#[test]
fn groups_may_get_other_numbers() {
    let disk = SimulatedDisk::default();
    let wal = open(&disk).unwrap();
    append(&wal, 0, 0).unwrap();
    append(&wal, 1, 0).unwrap();
    wal.close();
    let names = ["leases".into(), "default".into(), "events".into()];
    let wal = Wal::open(Arc::new(disk.clone()), options(&Arc::default()), &names).unwrap();
    assert_eq!(wal.read(0, 0, &mut Vec::new(), |_, bytes| bytes.to_vec()).unwrap().unwrap(), body(0, 1));
    append(&wal, 0, 1).unwrap();
    append(&wal, 2, 0).unwrap();
    wal.close();
    // A group that was not asked for is also there, after those that were.
    let wal = open(&disk).unwrap();
    assert_eq!((wal.groups().len(), wal.group("events")), (3, 2));
    assert_eq!(wal.read(2, 0, &mut Vec::new(), |_, bytes| bytes.to_vec()).unwrap().unwrap(), body(0, 2));
    wal.close();
    let wal = Wal::open(Arc::new(disk.clone()), options(&Arc::default()), &names).unwrap();
    assert_eq!(wal.read(0, 1, &mut Vec::new(), |_, bytes| bytes.to_vec()).unwrap().unwrap(), body(1, 0));
    assert_eq!(wal.read(1, 0, &mut Vec::new(), |_, bytes| bytes.to_vec()).unwrap().unwrap(), body(0, 0));
    wal.close();
}

#[test]
fn after_a_failed_sync_nothing_is_acknowledged() {
    let (disk, fatal) = (SimulatedDisk::default(), Arc::new(AtomicBool::default()));
    let wal = Wal::open(Arc::new(disk.clone()), options(&fatal), &["default".into()]).unwrap();
    append(&wal, 0, 0).unwrap();
    disk.fail_sync_after(0);
    assert!(append(&wal, 0, 1).is_err());
    assert!(fatal.load(Ordering::SeqCst));
    assert!(append(&wal, 0, 2).is_err());
    wal.close();
}

#[test]
fn a_newer_format_is_refused_as_such() {
    let disk = SimulatedDisk::default();
    open(&disk).unwrap().close();
    disk.alter(&segment::path(Path::new("/wal"), 1), |bytes| bytes[8] = 2);
    assert!(matches!(open(&disk), Err(WalError::Newer { version: 2, supported: 1, .. })));
}

#[test]
fn queued_entries_share_a_flush() {
    let disk = SimulatedDisk::default();
    let wal = open(&disk).unwrap();
    append(&wal, 0, 0).unwrap();
    let before = wal.usage().flushes;
    let (done, answered) = (Arc::new(AtomicUsize::new(0)), BTreeMap::from([(0_u16, 1..50_u64), (1, 0..50)]));
    for (group, indexes) in &answered {
        for index in indexes.clone() {
            let done = done.clone();
            let callback = Box::new(move |_| {
                done.fetch_add(1, Ordering::SeqCst);
            });
            let (group, body) = (*group, body(1, *group));
            wal.append(group, Some(callback), |appender| {
                appender.entry(at(index), |out| out.extend(body));
                appender.record(&Record::Committed(at(index)));
            });
        }
    }
    wal.close();
    assert_eq!(done.load(Ordering::SeqCst), 99);
    assert!(wal.usage().flushes - before < 99);
}

#[tokio::test]
async fn segments_are_prepared_while_others_come_into_use() {
    let disk = SimulatedDisk::default();
    for round in 0..5_u64 {
        let wal = open(&disk).unwrap();
        for index in round * 300..(round + 1) * 300 {
            let _reservation = wal.reserve(6_000).await.unwrap(); // makes the next segment wanted early
            append(&wal, 0, index).unwrap();
        }
        wal.close();
        let wal = open(&disk).unwrap();
        check(&wal, 0, 0..(round + 1) * 300);
        wal.close();
    }
}
