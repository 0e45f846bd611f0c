//! Measures how long clients cannot write when a member ends, becomes silent or hands over, or when a resource is
//! divided.
//!
//! For each member, one client updates an object of its own all the time, and uses the next member when its member does
//! not answer. The interruption is the longest time that any client went without an acknowledged write. The client of a
//! frozen or isolated member is left out, because it notices nothing before its timeout. A measurement without any
//! fault shows how long the machine itself delays writes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::fleet::{Endpoints, Fleet, create};
use crate::support::{Connection, PATIENCE, config_map, config_map_path, noticed};

/// How long a client waits for an answer before it uses another member. On a busy machine a healthy member may take
/// long.
const TIMEOUT: Duration = Duration::from_secs(if cfg!(debug_assertions) { 20 } else { 2 });
/// The pause between two writes of one client, and between two attempts.
const PAUSE: Duration = Duration::from_millis(2);
/// How many attempts of one client in a row may fail when a member hands over. On a busy machine, another member may
/// lose its leadership meanwhile.
const FAILURES_MAX: usize = if cfg!(debug_assertions) { 20 } else { 1 };
/// The pause before and after an event.
const CALM: Duration = Duration::from_millis(1_500);

/// The number of other objects of the same kind, which move when the kind is divided.
const OTHERS: usize = 1_000;
/// A longer interruption is printed with the time at which it began.
const NOTABLE: Duration = Duration::from_millis(200);

/// The event during a measurement. It concerns the leader, unless something else is stated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    /// Nothing, to measure the machine.
    Nothing,
    Kill,
    /// SIGKILL of a follower.
    KillFollower,
    Terminate,
    /// Leadership is transferred to another member.
    Transfer,
    /// SIGSTOP.
    Pause,
    /// No bytes pass between the leader and the others.
    Cut,
    /// No bytes pass from the others to the leader.
    Deafen,
    /// No bytes pass from the leader to the others.
    Mute,
    /// No bytes pass between the leader and one follower; all others reach both.
    Separate,
    /// The clients' resource is divided into several shards, and later into fewer.
    Divide,
}

impl Event {
    /// Returns the longest interruption that is allowed.
    fn limit(self) -> Duration {
        noticed(Duration::from_secs(if self == Event::Divide { 1 } else { 2 }))
    }

    /// Returns the longest median of interruptions that is allowed. It is at most the limit.
    fn usual(self) -> Duration {
        match self {
            Event::Transfer | Event::Terminate => noticed(Duration::from_millis(200)),
            Event::Kill | Event::KillFollower => noticed(Duration::from_secs(1)),
            _ => self.limit(),
        }
    }

    /// Returns how many attempts of one client in a row may fail in a cluster of several members.
    fn failures_max(self) -> usize {
        let hands_over = matches!(self, Event::Nothing | Event::Transfer | Event::Terminate | Event::Divide);
        if hands_over { FAILURES_MAX } else { usize::MAX }
    }
}

/// The events for a cluster of a single member.
const ALONE: [Event; 2] = [Event::Kill, Event::Terminate];
/// The events for a cluster of several members.
const TOGETHER: [Event; 11] = [
    Event::Nothing,
    Event::Transfer,
    Event::Terminate,
    Event::Kill,
    Event::KillFollower,
    Event::Pause,
    Event::Cut,
    Event::Deafen,
    Event::Mute,
    Event::Separate,
    Event::Divide,
];
/// The numbers of shards: the first division, and the second one.
const SHARDS: [&str; 2] = ["configmaps=8", "configmaps=3"];

/// The worst result of one client, or of all clients.
#[derive(Debug, Clone, Copy, Default)]
pub struct Worst {
    /// The longest time without an acknowledged write.
    pub interruption: Duration,
    /// When that time began.
    since: Option<Instant>,
    /// The largest number of attempts that failed in a row.
    failures: usize,
}

impl Worst {
    /// Returns the result if no write has been acknowledged since `last`.
    fn since(last: Option<Instant>) -> Worst {
        let interruption = last.map_or(Duration::ZERO, |last| last.elapsed());
        Worst { interruption, since: last, failures: 0 }
    }

    fn or(self, other: Worst) -> Worst {
        let longer = if other.interruption > self.interruption { other } else { self };
        Worst { failures: self.failures.max(other.failures), ..longer }
    }
}

/// Carries out every event, or only the one with the given name, `times` times each, and prints the interruptions.
/// Panics if an interruption was too long.
pub fn measure(members: usize, times: usize, chosen: Option<&str>) {
    let (mut fleet, endpoints) = Fleet::start(members);
    let mut connection = prepare(&endpoints);
    (0..OTHERS).for_each(|number| create(&mut connection, &object(&format!("other-{number}"))));
    let events = if members == 1 { &ALONE[..] } else { &TOGETHER[..] };
    let is_chosen = |event: &&Event| chosen.is_none_or(|chosen| chosen.eq_ignore_ascii_case(&format!("{event:?}")));
    let mut measured = events.iter().filter(is_chosen).peekable();
    assert!(measured.peek().is_some(), "{chosen:?} is none of {events:?}");
    for event in measured {
        let worst = (0..times).map(|_| {
            let leader = fleet.leader(&endpoints);
            interrupt(&mut fleet, &endpoints, *event, leader)
        });
        print(members, *event, worst.collect());
    }
}

fn print(members: usize, event: Event, worst: Vec<Worst>) {
    let mut interruptions: Vec<Duration> = worst.iter().map(|worst| worst.interruption).collect();
    interruptions.sort_unstable();
    let at = |share: f64| interruptions[((interruptions.len() - 1) as f64 * share).round() as usize].as_millis();
    let (half, most, all, count) = (at(0.5), at(0.99), at(1.0), interruptions.len());
    let failures = worst.iter().map(|worst| worst.failures).max().unwrap_or_default();
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().unwrap_or_default();
    println!(
        "{event:?} of one of {members}: p50 {half} ms, p99 {most} ms, max {all} ms of {count}; at most {failures} \
         attempts of a client failed one after the other; the load of the machine is {load}"
    );
    assert!(all <= event.limit().as_millis() && half <= event.usual().as_millis(), "interruptions were too long");
    assert!(members == 1 || failures <= event.failures_max(), "too many attempts failed");
}

/// Creates the objects that clients update.
pub fn prepare(endpoints: &Endpoints) -> Connection {
    let mut connection = Connection::open(endpoints.members[0], &endpoints.administrator).expect("a connection");
    (0..endpoints.members.len()).for_each(|number| create(&mut connection, &object(&name(number))));
    connection
}

/// Carries out and undoes one event while clients write. Returns the worst result of any client.
fn interrupt(fleet: &mut Fleet, endpoints: &Endpoints, event: Event, member: usize) -> Worst {
    let is_silent = matches!(event, Event::Pause | Event::Cut | Event::Deafen | Event::Mute);
    let (mut began, mut ended) = (Instant::now(), Instant::now());
    let worst = worst_while(endpoints, is_silent.then_some(member), || {
        std::thread::sleep(CALM);
        began = Instant::now();
        begin(fleet, event, member);
        // A single member is started again at once. Several members continue without the faulty one for a while.
        if fleet.size() > 1 {
            std::thread::sleep(CALM);
        }
        ended = Instant::now();
        end(fleet, event, member);
        fleet.await_ready(endpoints);
        std::thread::sleep(CALM);
    });
    print_long(event, worst, began, ended);
    worst
}

/// Runs a client for each member except `silent` while `meanwhile` runs. Returns the worst result of any client. A
/// client of a silent member would notice nothing before its timeout.
pub fn worst_while(endpoints: &Endpoints, silent: Option<usize>, meanwhile: impl FnOnce()) -> Worst {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let stop = &stop;
        let members = (0..endpoints.members.len()).filter(|number| Some(*number) != silent);
        let clients: Vec<_> = members.map(|number| scope.spawn(move || write(endpoints, number, stop))).collect();
        let end = End(stop);
        meanwhile();
        drop(end);
        let worst = clients.into_iter().map(|client| client.join().expect("a client"));
        worst.fold(Worst::default(), Worst::or)
    })
}

/// Stops the clients when dropped, because a scope waits for its threads even when the test fails.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Prints a long interruption with the time at which it began.
fn print_long(event: Event, worst: Worst, began: Instant, ended: Instant) {
    let Some(since) = worst.since.filter(|_| worst.interruption > NOTABLE) else { return };
    let after = |instant: Instant| since.duration_since(instant).as_millis();
    let when = if since >= ended {
        format!("{} ms after the event was undone", after(ended))
    } else if since + worst.interruption > began {
        format!("{} ms after the event", after(began))
    } else {
        "before the event".to_owned()
    };
    println!("{event:?}: writes were interrupted for {} ms, {when}", worst.interruption.as_millis());
}

fn begin(fleet: &mut Fleet, event: Event, member: usize) {
    let next = (member + 1) % fleet.size();
    match event {
        Event::Nothing => {}
        Event::Divide => fleet.divide(&SHARDS[..1]),
        Event::Kill => fleet.kill(member),
        Event::KillFollower => fleet.kill(next),
        Event::Terminate => fleet.terminate(member),
        Event::Transfer => transfer(fleet, next),
        Event::Pause => fleet.pause(member),
        Event::Separate => fleet.links().expect("several members").cut(&[(member, next), (next, member)]),
        Event::Cut | Event::Deafen | Event::Mute => {
            let others: Vec<usize> = (0..fleet.size()).filter(|other| *other != member).collect();
            let links = fleet.links().expect("several members");
            if event != Event::Deafen {
                links.cut(&others.iter().map(|other| (member, *other)).collect::<Vec<_>>());
            }
            if event != Event::Mute {
                links.cut(&others.iter().map(|other| (*other, member)).collect::<Vec<_>>());
            }
        }
    }
}

/// Transfers leadership to a member. On a busy machine that member may be behind for a while, so that this takes
/// several attempts.
fn transfer(fleet: &Fleet, to: usize) {
    let deadline = Instant::now() + noticed(Duration::ZERO);
    while !fleet.transfer(to) {
        assert!(Instant::now() < deadline, "the leadership was not transferred");
        std::thread::sleep(PAUSE);
    }
}

fn end(fleet: &mut Fleet, event: Event, member: usize) {
    match event {
        Event::Nothing | Event::Transfer => {}
        Event::Divide => fleet.divide(&SHARDS[1..]),
        Event::Kill | Event::Terminate => fleet.start_member(member),
        Event::KillFollower => fleet.start_member((member + 1) % fleet.size()),
        Event::Pause => fleet.resume(member),
        Event::Cut | Event::Deafen | Event::Mute | Event::Separate => {
            fleet.links().expect("several members").heal(true);
        }
    }
}

fn name(number: usize) -> String {
    format!("interruption-{number}")
}

fn object(name: &str) -> Value {
    config_map(name, &format!("{:?}", Instant::now()))
}

/// Updates an object until `stop` is set. On a busy machine, not even the first write may have succeeded by then, so
/// the client goes on until one has.
fn write(endpoints: &Endpoints, number: usize, stop: &AtomicBool) -> Worst {
    let (mut member, mut connection, path) = (number, None, config_map_path(&name(number)));
    let (mut last, mut worst, mut failures) = (None::<Instant>, Worst::default(), 0);
    let deadline = Instant::now() + PATIENCE;
    while !stop.load(Ordering::SeqCst) || (last.is_none() && Instant::now() < deadline) {
        std::thread::sleep(PAUSE);
        if connection.is_none() {
            connection = Connection::open_within(endpoints.members[member], &endpoints.administrator, TIMEOUT).ok();
        }
        let headers = [("Content-Type", "application/json")];
        let answer = connection
            .as_mut()
            .and_then(|open| open.call("PUT", &path, &headers, object(&name(number)).to_string().as_bytes()).ok());
        if answer.is_some_and(|answer| answer.status == 200) {
            worst = worst.or(Worst::since(last));
            (last, failures) = (Some(Instant::now()), 0);
        } else {
            failures += 1;
            worst.failures = worst.failures.max(failures);
            connection = None;
            member = (member + 1) % endpoints.members.len();
        }
    }
    assert!(last.is_some(), "nothing was written through member {member}");
    // The time since the last acknowledged write counts, too.
    worst.or(Worst::since(last))
}
