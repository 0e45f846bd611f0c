//! Packets that are lost: links that fail for good, in one direction, or again and again for moments.
//!
//! The links of other tests hold back what is sent. Here it is gone, as in a network, and TCP has to send it again.

use std::thread::sleep;
use std::time::Duration;

use crate::fleet::{Direction, Endpoints, Fleet, apart};
use crate::traffic::Traffic;
use crate::{interruption, run};

/// What is written is in several groups, which members share.
const SHARDED: &[&str] = &["--shards", "configmaps=8", "--groups", "3"];
/// How long clients of the other members may be without an acknowledged write. Builds for debugging are tested where
/// disks and processors are busy with other things.
const PAUSE_MAX: Duration = Duration::from_secs(if cfg!(debug_assertions) { 6 } else { 2 });
/// The same while a link fails again and again, of which each time costs something.
const FLAPPING_PAUSE_MAX: Duration = Duration::from_secs(if cfg!(debug_assertions) { 8 } else { 3 });
/// For how many milliseconds a link fails, and then carries, by turns: some are too short for others to be elected, and
/// some end between two attempts of TCP to send again what was lost.
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
/// How long a link fails that does so once.
const FAILURE: Duration = Duration::from_secs(2);
/// How long it is calm before and after that.
const CALM: Duration = Duration::from_secs(1);

/// All links of a member lose packets, that of the leader and of another; `test` is the name of the test.
pub fn goes_on(test: &str) {
    match apart(test) {
        Ok(true) => match Fleet::start_on_wires(3, SHARDED) {
            Ok((fleet, endpoints)) => try_out(fleet, &endpoints),
            Err(why) => eprintln!("skipped: this machine lets no packets pass between network namespaces: {why}"),
        },
        Ok(false) => {}
        Err(why) => eprintln!("skipped: this machine lets no network namespaces be made: {why}"),
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
            check("hears nobody", PAUSE_MAX, &|fleet, member| fail(fleet, to(fleet, member)));
            check("is heard by nobody", PAUSE_MAX, &|fleet, member| fail(fleet, from(fleet, member)));
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
