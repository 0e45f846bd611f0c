//! Lost packets: links that fail once, in one direction or both, or fail repeatedly for short times.
//!
//! In other tests, links only withhold bytes. Here, packets are lost as in a network, and TCP has to send them again.

use std::thread::sleep;
use std::time::Duration;

use crate::fleet::{Direction, Endpoints, Fleet, apart};
use crate::support::noticed;
use crate::traffic::Traffic;
use crate::{interruption, run};

/// Several groups, with leaders on different members, replicate the objects that clients write.
const SHARDED: &[&str] = &["--shards", "configmaps=8", "--groups", "3"];
/// How long clients of the other members may go without an acknowledged write.
const PAUSE_MAX: Duration = noticed(Duration::from_secs(2));
/// The same for a link that fails repeatedly; each failure may add some time.
const FLAPPING_PAUSE_MAX: Duration = noticed(Duration::from_secs(3));
/// Pairs of milliseconds: how long a link fails, and how long it works after that. Some failures are too short for an
/// election, and some end between two retransmissions of TCP.
const FLAPS: [(u64, u64); 10] = [
    (250, 300),
    (350, 250),
    (450, 400),
    (300, 200),
    (500, 350),
    (400, 250),
    (700, 300),
    (350, 450),
    (900, 400),
    (250, 250),
];
/// How long a link fails, if it fails only once.
const FAILURE: Duration = Duration::from_secs(2);
/// The pause before and after the failures.
const CALM: Duration = Duration::from_secs(1);

/// Makes all links of the leader lose packets, and then all links of a follower. `test` is the name of the test.
pub fn goes_on(test: &str) {
    match apart(test) {
        Ok(true) => match Fleet::start_on_wires(3, SHARDED) {
            Ok((fleet, endpoints)) => try_out(fleet, &endpoints),
            Err(why) => eprintln!("skipped: no packets pass between network namespaces on this machine: {why}"),
        },
        Ok(false) => {}
        Err(why) => eprintln!("skipped: no network namespace can be made on this machine: {why}"),
    }
}

fn try_out(mut fleet: Fleet, endpoints: &Endpoints) {
    let directory = fleet.directory().to_owned();
    let traffic = Traffic::new(endpoints.clone());
    interruption::prepare(endpoints);
    let history = run::under_traffic(&traffic, || {
        for (name, offset) in [("the leader", 0), ("a follower", 1)] {
            let mut check = |what: &str, limit: Duration, fault: &dyn Fn(&Fleet, usize)| {
                let member = (fleet.leader(endpoints) + offset) % fleet.size();
                let worst = interruption::worst_while(endpoints, Some(member), || {
                    sleep(CALM);
                    fault(&fleet, member);
                    fleet.await_ready(endpoints);
                    sleep(CALM);
                });
                println!("{name}, member {member}, {what}: no write for {:?} at most", worst.interruption);
                assert!(worst.interruption <= limit, "{what}: too long");
            };
            check("is cut off again and again", FLAPPING_PAUSE_MAX, &flap);
            check("is cut off", PAUSE_MAX, &|fleet, member| fail(fleet, both(fleet, member)));
            check("receives nothing", PAUSE_MAX, &|fleet, member| fail(fleet, to(fleet, member)));
            check("reaches nobody", PAUSE_MAX, &|fleet, member| fail(fleet, from(fleet, member)));
        }
    });
    run::judge(&history, &directory, "lost packets");
}

fn flap(fleet: &Fleet, member: usize) {
    for (fails, carries) in FLAPS {
        fleet.wires().lose(both(fleet, member));
        sleep(Duration::from_millis(fails));
        fleet.wires().lose([]);
        sleep(Duration::from_millis(carries));
    }
}

fn fail(fleet: &Fleet, directions: impl Iterator<Item = Direction>) {
    fleet.wires().lose(directions);
    sleep(FAILURE);
    fleet.wires().lose([]);
}

fn others(fleet: &Fleet, member: usize) -> impl Iterator<Item = usize> + use<> {
    (0..fleet.size()).filter(move |other| *other != member)
}

fn from(fleet: &Fleet, member: usize) -> impl Iterator<Item = Direction> + use<> {
    others(fleet, member).map(move |other| (member, other))
}

fn to(fleet: &Fleet, member: usize) -> impl Iterator<Item = Direction> + use<> {
    others(fleet, member).map(move |other| (other, member))
}

fn both(fleet: &Fleet, member: usize) -> impl Iterator<Item = Direction> + use<> {
    from(fleet, member).chain(to(fleet, member))
}
