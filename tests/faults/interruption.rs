//! For how long clients cannot write after the leader ends, falls silent or hands over, or what they write is divided.
//!
//! One client for each member updates an object of its own all the time, and turns to the next member when its own
//! does not answer. The interruption is the longest time that any of them was without an acknowledged write; who waits
//! for a member that is frozen or cut off is not counted, since nobody else can tell that client. What the machine
//! itself holds writes up for is measured besides, with nothing done.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::fleet::{Endpoints, Fleet};
use crate::support::{CONFIG_MAPS, Connection, config_map, config_map_path};

/// How long a request may take before a client turns to another member.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Between two writes of one client, and two attempts.
const PAUSE: Duration = Duration::from_millis(2);
/// How long it is calm before and after a member ends.
const CALM: Duration = Duration::from_millis(1_500);

/// Objects of the same kind that are there besides, and have to go over when it is divided.
const OTHERS: usize = 1_000;
/// What is longer is told of, with when it was.
const NOTABLE: Duration = Duration::from_millis(200);

/// What is done to the leader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    /// Nothing: what is measured then is the machine.
    Nothing,
    Kill,
    /// SIGKILL of another.
    KillFollower,
    Terminate,
    /// Another is told to lead.
    Transfer,
    /// SIGSTOP.
    Pause,
    /// Nothing passes between it and the others.
    Cut,
    /// It hears nothing of the others, which hear it.
    Deafen,
    /// The others hear nothing of it, which hears them.
    Mute,
    /// It and one other do not reach each other; all others reach both.
    Separate,
    /// What is written is divided into several shards, and into fewer again.
    Divide,
}

impl Event {
    /// How long writes may be interrupted at most. Builds for debugging are tested where disks and processors are busy
    /// with other things.
    fn limit(self) -> Duration {
        let promised = if self == Event::Divide { Duration::from_secs(1) } else { Duration::from_secs(2) };
        if cfg!(debug_assertions) { promised * 2 } else { promised }
    }

    /// How long half of the interruptions may be at most, if that is less than the limit.
    fn usual(self) -> Duration {
        match self {
            Event::Transfer | Event::Terminate if !cfg!(debug_assertions) => Duration::from_millis(200),
            Event::Kill | Event::KillFollower if !cfg!(debug_assertions) => Duration::from_secs(1),
            Event::Separate => Duration::from_secs(2), // with a busy machine, too, nobody waits until it is undone
            _ => self.limit(),
        }
    }

    /// How often one client of several members may have to try again in vain.
    fn failures_max(self) -> usize {
        if matches!(self, Event::Nothing | Event::Transfer | Event::Terminate | Event::Divide) { 1 } else { usize::MAX }
    }
}

/// What is done to a member that is alone.
const ALONE: [Event; 2] = [Event::Kill, Event::Terminate];
/// What is done to one of several.
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
/// Into how many shards what is written is divided, and then into how many instead.
const SHARDS: [&str; 2] = ["configmaps=8", "configmaps=3"];

/// What one client, or any of several, has seen at worst.
#[derive(Debug, Clone, Copy, Default)]
pub struct Worst {
    /// The longest time without an acknowledged write.
    pub interruption: Duration,
    /// When that began.
    since: Option<Instant>,
    /// How many attempts failed one after the other.
    failures: usize,
}

impl Worst {
    /// Nothing was acknowledged since then.
    fn since(last: Option<Instant>) -> Worst {
        let interruption = last.map_or(Duration::ZERO, |last| last.elapsed());
        Worst { interruption, since: last, failures: 0 }
    }

    fn or(self, other: Worst) -> Worst {
        let longer = if other.interruption > self.interruption { other } else { self };
        Worst { failures: self.failures.max(other.failures), ..longer }
    }
}

/// Does everything, or what is chosen, so many times to the leader, and prints how long writes were interrupted; panics
/// when that was too long.
pub fn measure(members: usize, times: usize, chosen: Option<&str>) {
    let (mut fleet, endpoints) = Fleet::start(members);
    let mut connection = prepare(&endpoints);
    (0..OTHERS).for_each(|number| write_first(&mut connection, &format!("other-{number}")));
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
    assert!(all <= event.limit().as_millis() && half <= event.usual().as_millis(), "writes were held up for too long");
    assert!(members == 1 || failures <= event.failures_max(), "clients had to try again");
}

/// Makes the objects that clients write.
pub fn prepare(endpoints: &Endpoints) -> Connection {
    let mut connection = Connection::open(endpoints.members[0], &endpoints.administrator).expect("a connection");
    (0..endpoints.members.len()).for_each(|number| write_first(&mut connection, &name(number)));
    connection
}

/// Does something to a member under writes, undoes it, and tells the worst that a client has seen.
fn interrupt(fleet: &mut Fleet, endpoints: &Endpoints, event: Event, member: usize) -> Worst {
    let is_silent = matches!(event, Event::Pause | Event::Cut | Event::Deafen | Event::Mute);
    let (mut began, mut ended) = (Instant::now(), Instant::now());
    let worst = worst_while(endpoints, is_silent.then_some(member), || {
        std::thread::sleep(CALM);
        began = Instant::now();
        begin(fleet, event, member);
        // A single member comes back at once; others do without it for a while.
        if fleet.size() > 1 {
            std::thread::sleep(CALM);
        }
        ended = Instant::now();
        end(fleet, event, member);
        fleet.await_ready(endpoints);
        std::thread::sleep(CALM);
    });
    tell(event, worst, began, ended);
    worst
}

/// The worst that a client has seen while something happens. Each member has one, but for the silent one: nobody can
/// tell its clients to turn to another.
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

/// Ends clients when dropped, since a scope waits for its threads also when it fails.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Tells of a long interruption what it goes with.
fn tell(event: Event, worst: Worst, began: Instant, ended: Instant) {
    let Some(since) = worst.since.filter(|_| worst.interruption > NOTABLE) else { return };
    let after = |instant: Instant| since.duration_since(instant).as_millis();
    let when = if since >= ended {
        format!("{} ms after it was undone", after(ended))
    } else if since + worst.interruption > began {
        format!("{} ms after it was done", after(began))
    } else {
        "before it was done".to_owned()
    };
    println!("{event:?}: writes were held up for {} ms, {when}", worst.interruption.as_millis());
}

fn begin(fleet: &mut Fleet, event: Event, member: usize) {
    let next = (member + 1) % fleet.size();
    match event {
        Event::Nothing => {}
        Event::Divide => fleet.divide(&SHARDS[..1]),
        Event::Kill => fleet.kill(member),
        Event::KillFollower => fleet.kill(next),
        Event::Terminate => fleet.terminate(member),
        Event::Transfer => assert!(fleet.transfer(next), "the leadership was not transferred"),
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

fn body(name: &str) -> Vec<u8> {
    config_map(name, &format!("{:?}", Instant::now())).to_string().into_bytes()
}

fn write_first(connection: &mut Connection, name: &str) {
    let answer = connection.request("POST", CONFIG_MAPS, "application/json", &body(name));
    assert_eq!(answer.status, 201, "{}", answer.text());
}

/// Writes until told to stop.
fn write(endpoints: &Endpoints, number: usize, stop: &AtomicBool) -> Worst {
    let (mut member, mut connection, path) = (number, None, config_map_path(&name(number)));
    let (mut last, mut worst, mut failures) = (None::<Instant>, Worst::default(), 0);
    while !stop.load(Ordering::SeqCst) {
        std::thread::sleep(PAUSE);
        if connection.is_none() {
            connection = Connection::open_within(endpoints.members[member], &endpoints.administrator, TIMEOUT).ok();
        }
        let headers = [("Content-Type", "application/json")];
        let answer = connection.as_mut().and_then(|open| open.call("PUT", &path, &headers, &body(&name(number))).ok());
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
    // What is not over yet counts too.
    worst.or(Worst::since(last))
}
