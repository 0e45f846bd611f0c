//! A group on a disk that is full, or that a crash left in the middle of a change.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use flotilla_proto::replication::SnapshotPiece;
use openraft::entry::RaftEntry;
use openraft::{EntryPayload, Membership};

use super::node::Node;
use super::snapshot_receiving::Receiver;
use super::starting::NodeOptions;
use super::state_machine::StateMachine;
use super::types::{self, Entry, StoredMembership};
use crate::clock::HybridClock;
use crate::disk::simulated::SimulatedDisk;
use crate::group::{Applier, Captured, Tables};
use crate::roster::Replica;
use crate::snapshot::{Meta, Pace, Snapshots};
use crate::wal::{Ballot, LogRef, Threads, Wal, WalOptions};
use crate::{Options, Revision};

const SEGMENT: u64 = 16 << 10;

fn open(disk: &SimulatedDisk) -> Wal {
    let options = WalOptions {
        directory: PathBuf::from("/wal"),
        segment_bytes: SEGMENT,
        on_fatal: Arc::new(|reason| panic!("{reason}")),
        runner: Arc::new(Threads),
    };
    Wal::open(Arc::new(disk.clone()), options, &["default".into()]).unwrap()
}

fn snapshots(disk: &SimulatedDisk) -> Snapshots {
    Snapshots::open(Arc::new(disk.clone()), PathBuf::from("/snapshots")).unwrap()
}

fn is_received(disk: &SimulatedDisk) -> bool {
    disk.files().iter().any(|(path, _)| path.ends_with("received.tmp"))
}

#[tokio::test]
async fn a_snapshot_that_does_not_fit_frees_its_room_for_the_log() {
    let disk = SimulatedDisk::default();
    let wal = open(&disk);
    while !disk.files().iter().any(|(path, size)| path.ends_with("blank-1.tmp") && *size as u64 == SEGMENT) {
        tokio::time::sleep(Duration::from_millis(1)).await; // lets the second segment be prepared
    }
    disk.set_room(Some(SEGMENT + 6_000));
    let receiver = Receiver::new(snapshots(&disk), 0);
    let mut refused = false;
    for number in 0..20 {
        let bytes = bytes::Bytes::from(vec![1; 4096]);
        let (offset, checksum) = (number * 4096, crc32c::crc32c(&bytes));
        let piece = SnapshotPiece { name: "a".into(), offset, checksum, bytes, ..SnapshotPiece::default() };
        if receiver.piece(piece).await.is_err() {
            refused = true;
            break;
        }
        assert!(is_received(&disk));
    }
    assert!(refused && !is_received(&disk), "{:?}", disk.files());
    for index in 0.. {
        // Entries that wait to be written take room, too, but are not in a segment yet.
        let Ok(_reservation) = wal.reserve(1000).await else { break };
        wal.append(0, Some(Box::new(|result| result.unwrap())), |appender| {
            appender.entry(LogRef { term: 1, node: 1, index }, |out| out.extend([0; 1000]));
        });
        if wal.usage().segments > 2 {
            break;
        }
    }
    let written = async {
        while wal.usage().segments <= 2 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), written).await.expect("room for the log");
    wal.close();
}

#[tokio::test]
async fn a_snapshot_is_not_begun_if_the_log_would_lack_room() {
    let (disk, size) = (SimulatedDisk::default(), 40_000);
    let receiver = Receiver::new(snapshots(&disk), 3 * SEGMENT);
    let asked = SnapshotPiece { name: "a".into(), size, ..SnapshotPiece::default() };
    disk.set_room(Some(size + 3 * SEGMENT - 1));
    assert!(receiver.piece(asked.clone()).await.is_err());
    assert!(!is_received(&disk));
    disk.set_room(Some(size + 3 * SEGMENT));
    assert_eq!(receiver.piece(asked).await.unwrap().offset, 0);
    assert!(is_received(&disk));
}

fn membership() -> Membership<u64, Replica> {
    Membership::new(vec![BTreeSet::from([1, 2])], BTreeMap::from([1, 2].map(|id| (id, Replica::default())))).unwrap()
}

fn entry(term: u64, index: u64) -> Entry {
    let payload = if index == 0 { EntryPayload::Membership(membership()) } else { EntryPayload::Blank };
    Entry::new(types::log_id(LogRef { term, node: 2, index }), payload)
}

/// Returns the disk after a crash: a log up to an index, whose last entry may be of another term, and a snapshot.
async fn interrupted(term: u64, last: (u64, u64), snapshot: (u64, u64)) -> SimulatedDisk {
    let disk = SimulatedDisk::default();
    let wal = open(&disk);
    wal.append(0, None, |appender| {
        for index in 0..=last.1 {
            let entry = entry(if index == last.1 { last.0 } else { term }, index);
            appender.entry(types::log_ref(&entry.log_id), |out| types::put_entry(&entry, out));
        }
        appender.vote(Ballot { term: 7, node: 2, committed: true });
    });
    wal.close();
    let membership = StoredMembership::new(Some(entry(term, 0).log_id), membership());
    let last = Some(LogRef { term: snapshot.0, node: 2, index: snapshot.1 });
    let (begun, base) = (Revision::from_unix_ms(1), Revision::from_unix_ms(2));
    let meta = Meta { last, membership: types::put_stored_membership(&membership), begun, base };
    let captured = Captured { begun, base, shards: Vec::new() };
    snapshots(&disk).write(meta, captured, Pace::Fast).await.unwrap();
    disk.crash(|_, _| false)
}

async fn start(disk: &SimulatedDisk, wal: &Wal) -> Node {
    let options = Options::new("/unused");
    let tables = Arc::new(Tables::new(&options, HybridClock::default()));
    let thread = actix::System::current().arbiter().clone();
    let applier = Applier::new(thread, tables.clocks()[0].clone(), tables.clone(), &options);
    let options = NodeOptions {
        node: 1,
        group: 0,
        name: "default".into(),
        wal: wal.clone(),
        peers: None,
        machine: StateMachine::open(applier, snapshots(disk)).await.unwrap(),
        snapshot_log_bytes: 1 << 30,
        is_survivor: false,
        on_fatal: Arc::new(|reason| panic!("{reason}")),
        on_lost: Arc::new(|| ()),
    };
    options.start().await.unwrap_or_else(|error| panic!("{error}")).0
}

/// Checks that the group starts with the snapshot, continues after it, and can be started again.
async fn goes_on_behind_the_snapshot(disk: SimulatedDisk, (term, index): (u64, u64)) {
    let wal = open(&disk);
    let node = start(&disk, &wal).await;
    assert_eq!(wal.state(0).last, Some(LogRef { term, node: 2, index }));
    node.shutdown().await;
    let ballot = Ballot { term: 7, node: 2, committed: true };
    node.log().add(entry(7, index + 1), ballot).await.unwrap();
    wal.close();
    let wal = open(&disk.crash(|_, _| false));
    assert_eq!(wal.state(0).last, Some(LogRef { term: 7, node: 2, index: index + 1 }));
    wal.close();
}

#[test]
fn a_group_starts_with_a_snapshot_and_a_log_that_was_not_cut_off() {
    actix::System::new().block_on(async {
        goes_on_behind_the_snapshot(interrupted(5, (5, 102), (6, 101)).await, (6, 101)).await;
    });
}

#[test]
fn a_group_starts_with_a_snapshot_and_a_stale_entry_of_a_later_term() {
    actix::System::new().block_on(async {
        goes_on_behind_the_snapshot(interrupted(6, (7, 60), (6, 1000)).await, (6, 1000)).await;
    });
}
