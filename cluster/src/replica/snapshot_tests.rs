//! Members that are so far behind that the log does not reach them: they are sent snapshots, in pieces.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use parking_lot::Mutex;
use rand::rngs::SmallRng;
use rand::{RngCore, SeedableRng};
use tokio::sync::watch;

use super::test_cluster::{Cluster, PATIENCE, again, catch_up, create, pods, until, unused_address};
use crate::disk::simulated::{Access, SimulatedDisk};
use crate::limits::SNAPSHOT_PIECE_BYTES;
use crate::machine::Machine;
use crate::peer::tapped::{Piece, PieceFault, Tap, TappedNetwork};
use crate::{Draft, Expectation, Interest, Key, Layout, Mutation, Outcome, Scope, Store, TableId, Write, WriteError};

const PIECE: u64 = SNAPSHOT_PIECE_BYTES as u64;

/// The bytes that were written, by key.
type Written = BTreeMap<String, Bytes>;

/// Writes incompressible objects that fill this many pieces and a little more.
async fn fill(store: &Store, pieces: usize, object_bytes: usize) -> Written {
    let mut random = SmallRng::seed_from_u64(1);
    let drafts = (0..pieces * SNAPSHOT_PIECE_BYTES / object_bytes + 1).map(|number| {
        let mut bytes = vec![0; object_bytes];
        random.fill_bytes(&mut bytes);
        (format!("ns/{number}"), bytes)
    });
    // As many at a time as a segment of the log certainly has room for.
    let at_once = (256 << 10) / object_bytes;
    stream::iter(drafts).map(|(key, bytes)| put(store, key, bytes)).buffer_unordered(at_once).collect().await
}

async fn put(store: &Store, key: String, bytes: Vec<u8>) -> (String, Bytes) {
    let draft = Draft { bytes: bytes.clone(), layout: Layout::default(), ..Draft::default() };
    let (table, expectation) = (pods(), Expectation::Absent);
    let write = Write { table, key: Key::new(&key), expectation, mutation: Mutation::Put(draft) };
    match store.write(write).await.unwrap() {
        Outcome::Committed { object, .. } => {
            assert_eq!(object.bytes()[18..], bytes[18..], "but for its revision");
            (key, object.bytes().clone())
        }
        Outcome::Conflict { .. } => panic!("{key} is there"),
    }
}

/// Checks that a consistent read of everything shows exactly the written objects.
async fn check(store: &Store, written: &Written) {
    let table = store.table(&pods());
    catch_up(store, &table).await;
    for (key, bytes) in written {
        let object = table.get(key).unwrap_or_else(|| panic!("{key} is missing"));
        assert!(object.bytes() == bytes, "{key} is not as it was written");
    }
    assert_eq!(table.snapshot().count(&Scope::default()).unwrap(), written.len() as u64);
}

/// Makes members drop their logs after a snapshot, so that the entries cannot be sent any more.
async fn forget_log(stores: impl IntoIterator<Item = &Store>) {
    for store in stores {
        store.write_snapshots().await.unwrap();
    }
}

/// Starts a replica behind a tap, with an empty disk and at a new address.
async fn begin_tapped(cluster: &mut Cluster, name: &str, tap: &Tap) -> Store {
    let address = unused_address();
    cluster.addresses.insert(name.to_owned(), address);
    let disk = SimulatedDisk::default();
    cluster.disks.insert(name.to_owned(), disk.clone());
    let machine = Machine { network: Arc::new(TappedNetwork(tap.clone())), ..Machine::with_disk(Arc::new(disk)) };
    cluster.begin_as(machine, cluster.membership(name)).await
}

/// Asks to admit a replica until that succeeds, and waits until it is a member.
async fn join(cluster: &Cluster, by: &Store, name: &str, joining: &Store) {
    let address = cluster.addresses[name].to_string();
    let admitted = async {
        while let Err(error) = by.admit(name, &address).await {
            tracing::info!(%error, "the admission must be asked for again");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        joining.ready().await;
    };
    tokio::time::timeout(PATIENCE, admitted).await.expect("a member in time");
}

/// Opens a cluster with one member, which leads in any case, and fills the group `g1`, whose log is then dropped.
async fn alone() -> (Cluster, Store, Written) {
    let cluster = Cluster::new(&["a"], 1);
    let a = cluster.open("a").await;
    let written = fill(&a, 4, 32 << 10).await;
    forget_log([&a]).await;
    (cluster, a, written)
}

/// Returns the offsets of pieces.
fn offsets(pieces: &[Piece]) -> Vec<u64> {
    pieces.iter().map(|piece| piece.offset).collect()
}

#[tokio::test]
async fn a_member_that_lost_its_disk_is_sent_a_snapshot_if_the_log_is_gone() {
    let mut cluster = Cluster::new(&["a", "b", "c"], 1);
    let [a, b, c] = <[Store; 3]>::try_from(cluster.open_all().await).unwrap_or_else(|_| panic!("three"));
    let mut written = fill(&b, 4, 32 << 10).await;
    c.shutdown().await;
    forget_log([&a, &b]).await;
    // Entries after the snapshot are sent from the log.
    let (key, bytes) = put(&a, "ns/after".into(), vec![b'0'; 200]).await;
    written.insert(key, bytes);

    let tap = Tap::default();
    let c = begin_tapped(&mut cluster, "c", &tap).await;
    join(&cluster, &a, "c", &c).await;
    check(&c, &written).await;
    let sent: BTreeSet<Piece> = tap.pieces("g1").into_iter().collect();
    assert!(sent.len() > 3, "{sent:?}");
    // Its vote counts.
    b.shutdown().await;
    create(&c, "ns/last").await;
}

#[tokio::test]
async fn an_interrupted_transfer_continues_where_it_stopped() {
    let (mut cluster, a, written) = alone().await;
    let tap = Tap::default();
    tap.decide("g1", 2 * PIECE, PieceFault::Cut);
    let c = begin_tapped(&mut cluster, "c", &tap).await;
    let healing = async {
        until("the network is cut", || tap.has_met()).await;
        assert_eq!(offsets(&tap.pieces("g1")), [0, PIECE]);
        assert!(c.table(&pods()).is_empty(), "nothing is shown of what is not whole");
        tap.heal();
    };
    tokio::join!(join(&cluster, &a, "c", &c), healing);
    check(&c, &written).await;
    let pieces = tap.pieces("g1");
    assert!(pieces.iter().all(|piece| piece.snapshot == pieces[0].snapshot));
    assert_eq!(offsets(&pieces), [0, PIECE, 2 * PIECE, 3 * PIECE, 4 * PIECE], "each once");
}

#[tokio::test]
async fn a_piece_that_is_corrupted_on_its_way_is_refused_and_sent_again() {
    let (mut cluster, a, written) = alone().await;
    let tap = Tap::default();
    tap.decide("g1", PIECE, PieceFault::Corrupted);
    let c = begin_tapped(&mut cluster, "c", &tap).await;
    join(&cluster, &a, "c", &c).await;
    check(&c, &written).await;
    assert_eq!(offsets(&tap.pieces("g1")), [0, PIECE, PIECE, 2 * PIECE, 3 * PIECE, 4 * PIECE]);
}

#[tokio::test]
async fn a_snapshot_that_is_damaged_on_the_senders_disk_is_not_installed() {
    let (mut cluster, a, written) = alone().await;
    let mut files = cluster.disks["a"].files();
    files.retain(|(path, _)| path.starts_with("/store/snapshots/g1"));
    let [(path, size)] = &files[..] else { panic!("one snapshot of g1: {files:?}") };
    cluster.disks["a"].alter(path, |bytes| bytes[size / 2] ^= 1);

    let tap = Tap::default();
    let c = begin_tapped(&mut cluster, "c", &tap).await;
    let mending = async {
        // As much of the snapshot is right as can be checked piece by piece.
        let whole = || tap.pieces("g1").iter().filter(|piece| piece.offset == 4 * PIECE).count();
        until("it was sent twice", || whole() >= 2).await;
        assert!(c.table(&pods()).is_empty());
        forget_log([&a]).await;
    };
    tokio::join!(join(&cluster, &a, "c", &c), mending);
    check(&c, &written).await;
}

#[tokio::test]
async fn the_next_leader_sends_its_own_snapshot_when_the_sender_stops() {
    let mut cluster = Cluster::new(&["a", "b", "c"], 1);
    let [a, b, c] = <[Store; 3]>::try_from(cluster.open_all().await).unwrap_or_else(|_| panic!("three"));
    again(async || b.transfer(None, "a").await).await;
    let written = fill(&a, 4, 32 << 10).await;
    forget_log([&a, &b, &c]).await;

    let tap = Tap::default();
    tap.decide("g1", 2 * PIECE, PieceFault::Delayed);
    let d = begin_tapped(&mut cluster, "d", &tap).await;
    let is_of_another = |piece: &Piece| piece.snapshot != tap.pieces("g1")[0].snapshot;
    let leaving = async {
        until("two pieces have come", || tap.has_met()).await;
        a.shutdown().await;
        until("another one sends", || tap.pieces("g1").iter().any(is_of_another)).await;
        tap.heal(); // messages of the first transfer still arrive
    };
    tokio::join!(join(&cluster, &b, "d", &d), leaving);
    check(&d, &written).await;
    let first = tap.pieces("g1").into_iter().find(is_of_another).map(|piece| piece.offset);
    assert_eq!(first, Some(0), "what is there of one snapshot is not the beginning of another");
    // Its vote counts: without it there is no majority of four.
    create(&c, "ns/last").await;
}

/// Returns the name of a table in the group `default`.
fn leases() -> TableId {
    TableId::new("leases")
}

/// Renews a lease again and again, until it is stopped.
async fn keep_renewing(store: Store, stopped: watch::Receiver<bool>) {
    let mut expectation = Expectation::Absent;
    while !*stopped.borrow() {
        let draft = Draft { bytes: vec![b'0'; 200], layout: Layout::default(), ..Draft::default() };
        let write = Write { table: leases(), key: Key::new("ns/lease"), expectation, mutation: Mutation::Put(draft) };
        expectation = match store.write(write).await {
            Ok(Outcome::Committed { object, .. }) => Expectation::Revision(object.revision()),
            // Nobody else renews it: an attempt whose outcome was not learned has.
            Ok(Outcome::Conflict { current }) => Expectation::Revision(current.unwrap().revision()),
            // As it happens on a busy machine.
            Err(WriteError::Unavailable | WriteError::Unknown) => expectation,
            Err(error) => panic!("{error}"),
        };
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// The number of changes that a watcher of the leases has received on each of three members.
type Heard = Arc<[AtomicUsize; 3]>;

/// Counts the changes that a watcher of the leases receives on one of the members, until it is stopped.
async fn keep_watching(store: Store, member: usize, heard: Heard, mut stopped: watch::Receiver<bool>) {
    let table = store.table(&leases());
    let mut watch = table.subscribe(Interest::default(), table.revision()).unwrap();
    let mut changes = Vec::new();
    loop {
        tokio::select! {
            () = watch.changed() => {}
            _ = stopped.wait_for(|stopped| *stopped) => return,
        }
        while watch.read(64, &mut changes).unwrap() {}
        heard[member].fetch_add(changes.len(), Ordering::SeqCst);
        changes.clear();
    }
}

/// The changes that every watcher receives while a disk stands still. Only one or two can be on their way already.
const CHANGES_HEARD: usize = 20;

/// Waits on the thread that uses a disk until every watcher has received further changes. Returns whether they have.
fn all_go_on(heard: &Heard) -> bool {
    let (began, before) = (Instant::now(), heard.each_ref().map(|count| count.load(Ordering::SeqCst)));
    let go_on = || heard.iter().zip(&before).all(|(now, before)| now.load(Ordering::SeqCst) >= before + CHANGES_HEARD);
    while !go_on() && began.elapsed() < PATIENCE / 4 {
        std::thread::sleep(Duration::from_millis(10));
    }
    go_on()
}

/// For the first read of a snapshot and for the first write of one, whether all watchers went on meanwhile.
type Standstills = Arc<Mutex<BTreeMap<Access, bool>>>;

/// Makes disks stand still on the first read of a snapshot of the group `g1` from now on, and on the first write of
/// one, until all watchers have received changes.
fn stand_still(disks: &[&SimulatedDisk], heard: &Heard) -> Standstills {
    let (begun, standstills) = (Arc::<Mutex<BTreeSet<Access>>>::default(), Standstills::default());
    for disk in disks {
        let (begun, noted, heard) = (begun.clone(), standstills.clone(), heard.clone());
        disk.set_witness(move |path, access| {
            if path.starts_with("/store/snapshots/g1") && begun.lock().insert(access) {
                let went_on = all_go_on(&heard);
                noted.lock().insert(access, went_on);
            }
        });
    }
    standstills
}

/// The disks stand still meanwhile: if the thread that serves all groups waited for them, all groups would wait, too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_groups_continue_while_a_large_snapshot_is_sent_and_installed() {
    let mut cluster = Cluster::new(&["a", "b"], 1);
    let [a, b] = <[Store; 2]>::try_from(cluster.open_all().await).unwrap_or_else(|_| panic!("two"));
    again(async || b.transfer(None, "a").await).await;
    let written = fill(&a, 24, 4 << 10).await;
    forget_log([&a, &b]).await;

    let tap = Tap::default();
    tap.decide("g1", 0, PieceFault::Delayed);
    let c = begin_tapped(&mut cluster, "c", &tap).await;
    let (stop, stopped) = watch::channel(false);
    let measuring = async {
        until("c has all but the large group", || tap.has_met()).await;
        let renewing = tokio::spawn(keep_renewing(b.clone(), stopped.clone()));
        until("c takes part", || c.table(&leases()).get("ns/lease").is_some()).await;
        let [first, second, receiving] = ["a", "b", "c"].map(|name| &cluster.disks[name]);
        let heard = Heard::default();
        let (sending, taking_in) = (stand_still(&[first, second], &heard), stand_still(&[receiving], &heard));
        let begin = |(member, store): (usize, &Store)| {
            tokio::spawn(keep_watching(store.clone(), member, heard.clone(), stopped.clone()))
        };
        let watching: Vec<_> = [&a, &b, &c].into_iter().enumerate().map(begin).collect();
        tap.heal();
        until("c has the large group", || c.table(&pods()).len() == written.len() as u64).await;
        stop.send_replace(true);
        renewing.await.unwrap();
        assert_eq!(*sending.lock(), [(Access::Read, true)].into());
        assert_eq!(*taking_in.lock(), [(Access::Read, true), (Access::Write, true)].into());
        for watcher in watching {
            watcher.await.unwrap();
        }
    };
    tokio::join!(join(&cluster, &a, "c", &c), measuring);
    check(&c, &written).await;
}
