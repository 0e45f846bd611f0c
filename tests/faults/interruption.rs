//! For how long clients cannot write after a member ends: measured, not judged.
//!
//! One client for each member updates an object of its own all the time, and turns to the next member when its own
//! does not answer. The interruption is the longest time that any of them was without an acknowledged write.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::fleet::{Endpoints, Fleet};
use crate::support::Connection;

/// How long a request may take before a client turns to another member.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Between two writes of one client, and two attempts.
const PAUSE: Duration = Duration::from_millis(2);
/// How long it is calm before and after a member ends.
const CALM: Duration = Duration::from_millis(1_500);

/// How a member is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    Kill,
    Terminate,
}

/// Ends members so many times each way, and prints how long writes were interrupted.
pub fn measure(members: usize, times: usize) {
    let (mut fleet, endpoints) = Fleet::start(members);
    for number in 0..members {
        write_first(&endpoints, number);
    }
    for ending in [Ending::Kill, Ending::Terminate] {
        let interruptions: Vec<Duration> =
            (0..times).map(|time| interrupt(&mut fleet, &endpoints, ending, time % members)).collect();
        print(members, ending, interruptions);
    }
}

fn print(members: usize, ending: Ending, mut interruptions: Vec<Duration>) {
    interruptions.sort_unstable();
    let at = |share: f64| interruptions[((interruptions.len() - 1) as f64 * share).round() as usize];
    let (half, most, all, count) = (at(0.5), at(0.99), at(1.0), interruptions.len());
    println!("{ending:?} of one of {members}: p50 {half:?}, p99 {most:?}, max {all:?} of {count}");
}

/// Ends one member under writes, starts it again, and tells the longest time without a write of one client.
fn interrupt(fleet: &mut Fleet, endpoints: &Endpoints, ending: Ending, member: usize) -> Duration {
    let stop = AtomicBool::new(false);
    let longest = std::thread::scope(|scope| {
        let stop = &stop;
        let client = |number| scope.spawn(move || write(endpoints, number, stop));
        let clients: Vec<_> = (0..fleet.size()).map(client).collect();
        std::thread::sleep(CALM);
        match ending {
            Ending::Kill => fleet.kill(member),
            Ending::Terminate => fleet.terminate(member),
        }
        // A single member comes back at once; others do without it for a while.
        if fleet.size() > 1 {
            std::thread::sleep(CALM);
        }
        fleet.start_member(member);
        fleet.await_ready(endpoints);
        std::thread::sleep(CALM);
        stop.store(true, Ordering::SeqCst);
        clients.into_iter().map(|client| client.join().expect("a client")).max()
    });
    longest.unwrap_or_default()
}

fn path(number: usize) -> String {
    format!("/api/v1/namespaces/default/configmaps/interruption-{number}")
}

fn body(number: usize) -> Vec<u8> {
    let object = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("interruption-{number}")},
        "data": {"time": format!("{:?}", Instant::now())},
    });
    object.to_string().into_bytes()
}

fn write_first(endpoints: &Endpoints, number: usize) {
    let mut connection = Connection::open(endpoints.members[0], &endpoints.administrator).expect("a connection");
    let collection = "/api/v1/namespaces/default/configmaps";
    let answer = connection.request("POST", collection, "application/json", &body(number));
    assert_eq!(answer.status, 201, "{}", answer.text());
}

/// Writes until told to stop; the longest time between two acknowledgements.
fn write(endpoints: &Endpoints, number: usize, stop: &AtomicBool) -> Duration {
    let (mut member, mut connection, path) = (number, None, path(number));
    let (mut last, mut longest) = (None::<Instant>, Duration::ZERO);
    while !stop.load(Ordering::SeqCst) {
        std::thread::sleep(PAUSE);
        if connection.is_none() {
            connection = Connection::open_within(endpoints.members[member], &endpoints.administrator, TIMEOUT).ok();
        }
        let headers = [("Content-Type", "application/json")];
        let answer = connection.as_mut().and_then(|open| open.call("PUT", &path, &headers, &body(number)).ok());
        if answer.is_some_and(|answer| answer.status == 200) {
            longest = longest.max(last.map_or(Duration::ZERO, |last| last.elapsed()));
            last = Some(Instant::now());
        } else {
            connection = None;
            member = (member + 1) % endpoints.members.len();
        }
    }
    // What is not over yet counts too.
    longest.max(last.map_or(Duration::ZERO, |last| last.elapsed()))
}
