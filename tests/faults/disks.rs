//! Faults of disks: in a cluster of three members, a disk is full or slow. The other members continue, nothing is lost,
//! and the member takes part again once its disk works.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::fleet::{Disk, Endpoints, Fleet};
use crate::run;
use crate::support::{Answer, CONFIG_MAPS, Connection, PATIENCE, noticed};
use crate::traffic::Traffic;

/// How long all clients may go without an acknowledged write.
const PAUSE_MAX: Duration = noticed(Duration::from_secs(2));
/// How long a client waits for an answer of a member that may give none, because its disk is full.
const TIMEOUT: Duration = Duration::from_secs(15);
/// A slow disk blocks writes for `HELD_UP`, lets them through for `LET_PASS`, and so on.
const HELD_UP: Duration = Duration::from_millis(300);
const LET_PASS: Duration = Duration::from_millis(20);
/// Whether a request is repeated that was refused because a group had no leader, or no majority in time. On a busy
/// machine, such a refusal says nothing about disks.
const REPEATS: bool = cfg!(debug_assertions);
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// How long a disk is slow.
const SLOW: Duration = Duration::from_secs(5);
/// The longest median latency of writes through a member whose own disk is fast, while another disk is slow. On a slow
/// machine, `SLOWDOWN_MAX` times the median before is allowed instead.
const LATENCY_MAX: Duration = noticed(Duration::from_millis(100));
const SLOWDOWN_MAX: u32 = 4;
/// The size of one large write.
const LARGE_BYTES: usize = 900 << 10;
/// So many large writes certainly fill a disk that has no space for another segment of the log.
const LARGE_WRITES: usize = 80;
/// How long a member with a full disk may stay leader.
const MOVED_WITHIN: Duration = noticed(Duration::from_secs(10));

/// Fills the leader's disk until that member can store nothing more.
pub fn one_is_full() {
    let Some((mut fleet, endpoints)) = start() else { return };
    let directory = fleet.directory().to_owned();
    let traffic = Traffic::new(endpoints.clone());
    let history = run::under_traffic(&traffic, || {
        let full = fleet.leader(&endpoints);
        let other = (full + 1) % fleet.size();
        traffic.longest_pause();
        fleet.disk(full).fill();
        let mut client = LargeClient::new(&endpoints, other);
        (0..LARGE_WRITES).for_each(|_| client.write());
        println!("member {full} has a full disk: writes paused for {:?} at most", check_pause(&traffic));
        await_leader_besides(&fleet, &endpoints, full);
        let through = endpoints.request(full, "POST", CONFIG_MAPS, &body("through", 8), TIMEOUT);
        let through = through.map(|answer| (answer.status, answer.text()));
        println!("a write through member {full}: {through:?}");
        // Some space may be left on the disk. If none is left, the member delays the write or answers with an error of
        // the server.
        assert!(through.is_none_or(|(status, _)| status == 201 || status >= 500), "refused for another reason");
        fleet.disk(full).empty();
        fleet.await_ready(&endpoints);
        println!("the disk has space again: writes paused for {:?} at most", check_pause(&traffic));
        LargeClient::new(&endpoints, full).write();
    });
    run::judge(&history, &directory, "a full disk");
}

/// Fills the disks of both followers. Checks that writes are refused, and that every member still serves reads.
pub fn two_are_full() {
    let Some((mut fleet, endpoints)) = start() else { return };
    let leader = fleet.leader(&endpoints);
    let others: Vec<usize> = (0..fleet.size()).filter(|member| *member != leader).collect();
    let mut client = LargeClient::new(&endpoints, leader);
    client.write();
    others.iter().for_each(|member| fleet.disk(*member).fill());
    let refused = (0..LARGE_WRITES).find_map(|_| client.try_write().err());
    let refused = refused.expect("a write is refused while two disks are full");
    assert_eq!(refused.status, 507, "{}", refused.text());
    // Writes stay refused, and every member still serves reads.
    for _ in 0..20 {
        assert_eq!(client.try_write().expect_err("a write is refused").status, 507);
        for member in 0..fleet.size() {
            let read = insist(|| endpoints.request(member, "GET", CONFIG_MAPS, "", PATIENCE).expect("an answer"));
            assert_eq!(read.status, 200, "through member {member}: {}", read.text());
        }
    }
    others.iter().for_each(|member| fleet.disk(*member).empty());
    let deadline = Instant::now() + MOVED_WITHIN;
    while let Err(refused) = client.try_write() {
        assert!(Instant::now() < deadline, "refused although the disks have space: {}", refused.text());
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Slows down the disk of a follower, and then the leader's.
pub fn one_is_slow() {
    let Some((mut fleet, endpoints)) = start() else { return };
    let directory = fleet.directory().to_owned();
    let traffic = Traffic::new(endpoints.clone());
    let history = run::under_traffic(&traffic, || {
        let leader = fleet.leader(&endpoints);
        let before = latencies_while(fleet.size(), &endpoints, || std::thread::sleep(SLOW / 2));
        let limit = LATENCY_MAX.max(before.iter().max().copied().unwrap_or_default() * SLOWDOWN_MAX);
        println!("half of the writes took less than {before:?}, through each of the members");
        for slow in [(leader + 1) % fleet.size(), leader] {
            traffic.longest_pause();
            let size = fleet.size();
            let disk = fleet.disk(slow);
            let latencies = latencies_while(size, &endpoints, || hold_up(disk));
            let (pause, leads) = (check_pause(&traffic), fleet.leader(&endpoints));
            println!("member {slow} is slow, {leader} led and {leads} leads; writes paused for {pause:?} at most,");
            println!("and half of them took less than {latencies:?}, through each of the members");
            let mut others = (0..fleet.size()).filter(|member| *member != slow);
            assert!(others.all(|member| latencies[member] < limit), "other members wait for the slow disk");
            fleet.await_ready(&endpoints);
        }
    });
    run::judge(&history, &directory, "a slow disk");
}

/// Keeps a disk slow for [`SLOW`].
fn hold_up(disk: &mut Disk) {
    let until = Instant::now() + SLOW;
    while Instant::now() < until {
        disk.hold_up(HELD_UP);
        std::thread::sleep(LET_PASS);
    }
}

/// Returns the median latency of writes through each member, while `meanwhile` runs.
fn latencies_while(members: usize, endpoints: &Endpoints, meanwhile: impl FnOnce()) -> Vec<Duration> {
    let goes_on = AtomicBool::new(true);
    std::thread::scope(|scope| {
        let goes_on = &goes_on;
        let measure = |member| scope.spawn(move || latency(endpoints, member, goes_on));
        let measured: Vec<_> = (0..members).map(measure).collect();
        meanwhile();
        goes_on.store(false, Ordering::SeqCst);
        measured.into_iter().map(|client| client.join().expect("a client")).collect()
    })
}

fn start() -> Option<(Fleet, Endpoints)> {
    let started = Fleet::start_with_disks(3);
    started.inspect_err(|why| eprintln!("skipped: no disk can be made on this machine: {why}")).ok()
}

fn check_pause(traffic: &Traffic) -> Duration {
    let pause = traffic.longest_pause();
    assert!(pause <= PAUSE_MAX, "writes paused for {pause:?}");
    pause
}

fn await_leader_besides(fleet: &Fleet, endpoints: &Endpoints, member: usize) {
    let deadline = Instant::now() + MOVED_WITHIN;
    while fleet.leader(endpoints) == member {
        assert!(Instant::now() < deadline, "member {member} still leads although its disk is full");
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Repeats a request while it is refused for a reason for which it [`REPEATS`]. Returns the last answer.
fn insist(mut request: impl FnMut() -> Answer) -> Answer {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let answer = request();
        if !REPEATS || !matches!(answer.status, 503 | 504) || Instant::now() > deadline {
            return answer;
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

fn path(name: &str) -> String {
    format!("{CONFIG_MAPS}/{name}")
}

fn body(name: &str, bytes: usize) -> String {
    let data = json!({"time": format!("{:?}", Instant::now()), "large": "x".repeat(bytes)});
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}).to_string()
}

/// Updates one object through one member while `holds` is true. Returns the median latency.
fn latency(endpoints: &Endpoints, member: usize, holds: &AtomicBool) -> Duration {
    let name = format!("latency-{member}");
    let mut connection = Connection::open(endpoints.members[member], &endpoints.administrator).expect("a connection");
    let object = serde_json::from_str(&body(&name, 8)).expect("JSON");
    let _ = insist(|| connection.post(CONFIG_MAPS, &object)); // the object may be there already
    let mut latencies = Vec::new();
    // On a busy machine, the time may be over before the first write.
    while latencies.is_empty() || holds.load(Ordering::SeqCst) {
        let began = Instant::now();
        let put = || connection.request("PUT", &path(&name), "application/json", body(&name, 8).as_bytes());
        let answer = insist(put);
        assert_eq!(answer.status, 200, "{}", answer.text());
        latencies.push(began.elapsed());
        std::thread::sleep(Duration::from_millis(2));
    }
    latencies.sort_unstable();
    latencies[latencies.len() / 2]
}

/// A client that sends large writes, to fill disks.
struct LargeClient<'a> {
    endpoints: &'a Endpoints,
    member: usize,
    written: usize,
}

impl LargeClient<'_> {
    fn new(endpoints: &Endpoints, member: usize) -> LargeClient<'_> {
        LargeClient { endpoints, member, written: 0 }
    }

    fn write(&mut self) {
        if let Err(refused) = self.try_write() {
            panic!("{}", refused.text());
        }
    }

    fn try_write(&mut self) -> Result<(), Answer> {
        let name = format!("large-{}", self.member);
        let (method, path) = match self.written {
            0 => ("POST", CONFIG_MAPS.to_owned()),
            _ => ("PUT", path(&name)),
        };
        let mut requests = 0;
        let answer = insist(|| {
            requests += 1;
            let sent = self.endpoints.request(self.member, method, &path, &body(&name, LARGE_BYTES), PATIENCE);
            sent.expect("an answer")
        });
        // An earlier request, whose outcome was unknown, may have created the object.
        let is_there = answer.status == 409 && method == "POST" && requests > 1;
        if !is_there && !matches!(answer.status, 200 | 201) {
            return Err(answer);
        }
        self.written += 1;
        Ok(())
    }
}
