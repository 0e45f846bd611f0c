//! One run: starts a fleet, runs clients and faults, and has the checker judge the history.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::check;
use crate::faults::Schedule;
use crate::fleet::{Endpoints, Fleet};
use crate::history::{History, WriteOutcome};
use crate::number;
use crate::support::{PATIENCE, noticed};
use crate::traffic::Traffic;

/// The server's default history window, less a tolerance: clocks differ, and the server trims the history coarsely.
const WINDOW: Duration = Duration::from_secs(290);
/// How long writes may fail after a fault.
const RECOVERY: Duration = noticed(Duration::from_secs(30));
/// The difference between the clocks of two neighbouring members, in seconds.
const APART: i32 = 3;
const VIOLATIONS_SHOWN: usize = 20;
/// The shards of every resource that clients and servers write.
pub const SHARDS: &str = "pods=8,configmaps=8,leases=8,events=8,faults.example.com/widgets=8";

/// Runs members under traffic and faults. Panics if a promise is broken.
pub fn run(members: usize, duration: Duration) {
    let seed = number("FLOTILLA_FAULT_SEED").unwrap_or_else(rand::random);
    println!("{members} members for {duration:?}, seed {seed}");
    try_out(Fleet::start(members), duration, seed);
}

/// Runs three members with sharded tables.
pub fn run_with_shards(duration: Duration) {
    let seed = number("FLOTILLA_FAULT_SEED").unwrap_or_else(rand::random);
    println!("3 members with {SHARDS} for {duration:?}, seed {seed}");
    try_out(Fleet::start_with_flags(3, &["--shards", SHARDS]), duration, seed);
}

/// Runs members whose clocks differ and jump.
pub fn run_with_clocks(members: usize, flags: &'static [&'static str], duration: Duration) {
    let seed = number("FLOTILLA_FAULT_SEED").unwrap_or_else(rand::random);
    println!("{members} members with {flags:?} and clocks that jump for {duration:?}, seed {seed}");
    match Fleet::start_with_clocks(members, flags) {
        Some(fleet) => {
            (0..members).for_each(|number| fleet.0.set_clock(number, APART * number as i32));
            try_out(fleet, duration, seed);
        }
        None => eprintln!("skipped: libfaketime is not installed"),
    }
}

fn try_out((mut fleet, endpoints): (Fleet, Endpoints), duration: Duration, seed: u64) {
    let mut schedule = Schedule::new(seed, duration);
    let directory = fleet.directory().to_owned();
    let traffic = Traffic::new(endpoints.clone());
    let history = under_traffic(&traffic, || {
        while !schedule.is_over() {
            let fault = schedule.inject(&mut fleet, &endpoints);
            println!("{:7.1} s: {fault}", traffic.now() as f64 / 1e6);
            await_progress(&traffic, &mut fleet);
        }
    });
    judge(&history, &directory, &format!("seed {seed}"));
}

/// Runs the clients while `meanwhile` runs, and returns their records.
pub fn under_traffic(traffic: &Traffic, meanwhile: impl FnOnce()) -> History {
    traffic.prepare();
    let mut history = traffic.run(PATIENCE, meanwhile);
    history.window = WINDOW.as_micros() as u64;
    report(&history, traffic);
    history
}

/// Checks a history. If a promise is broken, panics and keeps the history in the directory.
pub fn judge(history: &History, directory: &Path, what: &str) {
    let began = Instant::now();
    let violations = check::check(history);
    println!("checked in {:?}: {} violations", began.elapsed(), violations.len());
    if violations.is_empty() {
        return;
    }
    let _ = fs::write(directory.join("history"), format!("{history:#?}"));
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for violation in &violations {
        let count = counts.entry(violation.invariant).or_default();
        *count += 1;
        if *count <= VIOLATIONS_SHOWN {
            println!("{violation}");
        }
    }
    panic!("{what}: violations {counts:?}");
}

/// Waits until a write is acknowledged.
fn await_progress(traffic: &Traffic, fleet: &mut Fleet) {
    let (before, deadline) = (traffic.acknowledged(), Instant::now() + RECOVERY);
    while traffic.acknowledged() == before {
        assert!(Instant::now() < deadline, "no write is acknowledged after a fault: {}", fleet.messages());
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn report(history: &History, traffic: &Traffic) {
    let mut outcomes: BTreeMap<String, usize> = BTreeMap::new();
    for write in &history.writes {
        let outcome = format!("{:?}", write.outcome);
        let name = outcome.split(|letter: char| !letter.is_alphanumeric()).next().unwrap_or_default();
        *outcomes.entry(name.to_owned()).or_default() += 1;
    }
    let sessions = || history.streams.iter().flat_map(|stream| &stream.sessions);
    let deliveries: usize = sessions().map(|session| session.deliveries.len()).sum();
    println!(
        "{} writes {outcomes:?}, {} reads, {} lists, {} watch sessions with {deliveries} events and bookmarks",
        history.writes.len(),
        history.gets.len(),
        history.lists.len(),
        sessions().count(),
    );
    for (what, count) in traffic.counts() {
        println!("{count:6} {what}");
    }
    // Without reads, the checker can judge nothing.
    let is_seen = !history.gets.is_empty() && !history.lists.is_empty() && deliveries > 0;
    assert!(is_seen, "no read was answered");
    let is_acknowledged =
        |outcome: &WriteOutcome| matches!(outcome, WriteOutcome::Put(_) | WriteOutcome::Deleted { .. });
    assert!(history.writes.iter().any(|write| is_acknowledged(&write.outcome)), "no write was acknowledged");
}
