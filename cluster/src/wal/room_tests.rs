//! A log whose disk has no room, or is slow.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use super::room::NoRoom;
use super::simulated_runner::Tasks;
use super::wal_tests::{SEGMENT, append, at, body, check, open, options};
use super::{Ballot, Wal, WalOptions};
use crate::disk::simulated::{Pace, SimulatedDisk};
use crate::limits::WAL_FRAMES_WAITING_MAX;

#[tokio::test(start_paused = true)]
async fn reservations_wait_for_a_disk_that_is_far_behind() {
    let stands_still = Arc::new(AtomicBool::new(false));
    let slow = stands_still.clone();
    let pace: Pace = Arc::new(move || Duration::from_secs(if slow.load(Ordering::Relaxed) { 60 } else { 0 }));
    let options = WalOptions { runner: Arc::new(Tasks { pace }), ..options(&Arc::default()) };
    let tasks = tokio::task::LocalSet::new();
    let appended = tasks.run_until(async {
        let wal = Wal::open(Arc::new(SimulatedDisk::default()), options, &["default".into()]).unwrap();
        let _ready = wal.reserve(1000).await.unwrap();
        stands_still.store(true, Ordering::Relaxed);
        let (mut index, second) = (0, Duration::from_secs(1));
        // Other replicas make the writes durable meanwhile, so no client waits for this disk.
        while tokio::time::timeout(second, wal.reserve(1000)).await.is_ok() {
            wal.append(0, Some(Box::new(|_| ())), |appender| appender.entry(at(index), |out| out.extend([0; 1000])));
            index += 1;
        }
        stands_still.store(false, Ordering::Relaxed);
        let reserved = tokio::time::timeout(Duration::from_secs(300), wal.reserve(1000)).await;
        assert!(reserved.is_ok_and(|reserved| reserved.is_ok()));
        index
    });
    let appended = appended.await * 1000;
    let frames = WAL_FRAMES_WAITING_MAX as u64 * SEGMENT / 4;
    assert!((frames..3 * frames).contains(&appended), "{appended} bytes");
}

#[tokio::test]
async fn a_log_that_waits_for_room_can_be_closed() {
    let (disk, fatal) = (SimulatedDisk::default(), Arc::new(AtomicBool::new(false)));
    disk.set_room(Some(2 * SEGMENT + 100));
    let wal = Wal::open(Arc::new(disk.clone()), options(&fatal), &["default".into()]).unwrap();
    let mut written = 0;
    while wal.reserve(1000).await.is_ok() {
        append(&wal, 0, written).unwrap();
        written += 1;
    }
    // Other replicas send more entries, for which nothing was reserved.
    let (done, answers) = mpsc::channel();
    for index in written..written + 40 {
        let done = done.clone();
        let callback = Box::new(move |result: std::io::Result<()>| done.send(result.is_ok()).unwrap());
        wal.append(0, Some(callback), |appender| appender.entry(at(index), |out| out.extend(body(index, 0))));
    }
    let closing = std::thread::spawn(move || wal.close());
    let durable = (0..40).filter(|_| answers.recv_timeout(Duration::from_secs(120)).expect("an answer")).count();
    closing.join().unwrap();
    assert!(durable < 40 && !fatal.load(Ordering::SeqCst));
    let wal = open(&disk).unwrap();
    assert!(wal.state(0).last.unwrap().index + 1 >= written + durable as u64);
    wal.close();
}

#[tokio::test]
async fn a_full_disk_refuses_reservations_until_there_is_room() {
    let disk = SimulatedDisk::default();
    disk.set_room(Some(2 * SEGMENT + 100));
    let wal = open(&disk).unwrap();
    let mut index = 0;
    let refused = loop {
        match wal.reserve(1000).await {
            Ok(_reservation) => append(&wal, 0, index).unwrap(),
            Err(refused) => break refused,
        }
        index += 1;
        assert!(index < 1000, "the disk never fills up");
    };
    assert_eq!(refused, NoRoom);
    assert!(index > 20);
    // A record without a reservation, such as a vote, still finds room; and so does a write once there is space.
    wal.append(0, Some(Box::new(|result| result.unwrap())), |appender| {
        appender.vote(Ballot { term: 9, node: 1, committed: false });
    });
    disk.set_room(Some(4 * SEGMENT));
    let _reservation = wal.reserve(1000).await.unwrap();
    append(&wal, 0, index).unwrap();
    wal.close();
    let wal = open(&disk).unwrap();
    check(&wal, 0, 0..index + 1);
    wal.close();
}

#[tokio::test]
async fn reservations_larger_than_a_segment_are_refused_without_delaying_others() {
    let wal = open(&SimulatedDisk::default()).unwrap();
    let reserve = |bytes| tokio::time::timeout(Duration::from_secs(120), wal.reserve(bytes));
    let most = SEGMENT as usize * 7 / 8;
    assert_eq!(reserve(most).await.expect("an answer").err(), Some(NoRoom));
    assert!(reserve(most - 512).await.expect("an answer").is_ok());
    wal.close();
}
