//! A member without a connection to the majority: the requests that it still answers, and those that it must refuse.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::fleet::{Endpoints, Fleet, create};
use crate::support::{Answer, CONFIG_MAPS, Connection, PATIENCE, Watch, config_map, config_map_path, revision};

const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// More objects than shards, so that some of them belong to groups that the member led.
const OBJECTS: usize = 24;

/// Cuts off the leader, and then a follower.
pub fn answers_no_more_than_it_knows() {
    let (mut fleet, endpoints) = Fleet::start_with_flags(3, &["--shards", "configmaps=8", "--groups", "4"]);
    let mut connection = connect(&endpoints, 0);
    (0..OBJECTS).for_each(|number| create(&mut connection, &config_map(&name(number), "0")));
    let leader = fleet.leader(&endpoints);
    cut_off(&mut fleet, &endpoints, leader, 1);
    let follower = (fleet.leader(&endpoints) + 1) % fleet.size();
    cut_off(&mut fleet, &endpoints, follower, 2);
}

/// Cuts a member off, updates an object through the others, and heals the links. Values contain the round's number.
fn cut_off(fleet: &mut Fleet, endpoints: &Endpoints, member: usize, round: usize) {
    let (before, after) = ((round - 1).to_string(), round.to_string());
    await_all(endpoints, member, &before);
    let mut watch = watch(endpoints, member);
    for _ in 0..OBJECTS {
        assert_eq!(watch.next().expect("an event")["object"]["data"]["value"], before.as_str());
    }
    fleet.links().expect("several members").isolate(member);
    let other = (member + 1) % fleet.size();
    let written = (0..OBJECTS).map(|number| write_until_it_is(endpoints, other, number, &after)).max();
    let written = written.expect("several objects");

    refuses_what_takes_a_majority(endpoints, member, written);
    serves_what_it_has(endpoints, member, &before);

    fleet.links().expect("several members").heal(round.is_multiple_of(2));
    fleet.await_ready(endpoints);
    let mut connection = connect(endpoints, member);
    for number in 0..OBJECTS {
        assert_eq!(connection.read(&config_map_path(&name(number)))["data"]["value"], after.as_str());
    }
    // The watch stayed open the whole time, and missed nothing.
    let mut last = 0;
    for _ in 0..OBJECTS {
        let event = watch.next().expect("an event");
        assert_eq!((&event["type"], &event["object"]["data"]["value"]), (&json!("MODIFIED"), &json!(after)));
        assert!(revision(&event["object"]) > last, "{event}");
        last = revision(&event["object"]);
    }
    assert_eq!(last, written);
}

/// Checks that the member waits for the others and then refuses each request, because it cannot know whether a majority
/// has newer writes.
fn refuses_what_takes_a_majority(endpoints: &Endpoints, member: usize, written: u64) {
    let (object, path) = (config_map(&name(0), "of a minority"), config_map_path(&name(0)));
    let reads = (0..OBJECTS).map(|number| ("GET", config_map_path(&name(number)), Value::Null));
    let others = [
        ("GET", CONFIG_MAPS.to_owned(), Value::Null),
        // A client that sets a shorter timeout gets its refusal earlier.
        ("GET", format!("{CONFIG_MAPS}?timeout=1s"), Value::Null),
        ("PUT", format!("{path}?timeout=1s"), object.clone()),
        ("GET", format!("{CONFIG_MAPS}?limit=2"), Value::Null),
        // A revision that is newer than everything that the member has.
        ("GET", format!("{CONFIG_MAPS}?resourceVersionMatch=NotOlderThan&resourceVersion={written}"), Value::Null),
        ("POST", CONFIG_MAPS.to_owned(), config_map("new", "of a minority")),
        ("PUT", path.clone(), object),
        ("DELETE", path, Value::Null),
    ];
    std::thread::scope(|scope| {
        for (method, path, object) in reads.chain(others) {
            scope.spawn(move || refused(&request(endpoints, member, method, &path, &object)));
        }
    });
    assert_ne!(request(endpoints, member, "GET", "/readyz", &Value::Null).status, 200);
}

/// Checks that an answer is 503, or 504 if the outcome is unknown, with the header Retry-After.
fn refused(answer: &Answer) {
    assert!(matches!(answer.status, 503 | 504), "{}: {}", answer.status, answer.text());
    let seconds = answer.header("retry-after").and_then(|seconds| seconds.parse::<u32>().ok());
    assert!(seconds.is_some_and(|seconds| seconds >= 1), "{}: {seconds:?}", answer.text());
    assert_eq!(answer.json()["status"], "Failure");
}

/// Checks that the member serves the state from before it was cut off.
fn serves_what_it_has(endpoints: &Endpoints, member: usize, value: &str) {
    let list = request(endpoints, member, "GET", &format!("{CONFIG_MAPS}?resourceVersion=0"), &Value::Null).expect(200);
    let own = list["items"].as_array().expect("items").iter().filter(|item| item["data"]["value"].is_string());
    assert!(own.clone().all(|item| item["data"]["value"] == value), "{list}");
    assert_eq!(own.count(), OBJECTS);
    let known = revision(&list);
    for number in 0..OBJECTS {
        let path = config_map_path(&name(number));
        let any = request(endpoints, member, "GET", &format!("{path}?resourceVersion=0"), &Value::Null);
        assert_eq!(any.expect(200)["data"]["value"], value);
    }
    for more in [format!("&resourceVersion={known}"), format!("&resourceVersionMatch=Exact&resourceVersion={known}")] {
        let path = format!("{CONFIG_MAPS}?limit=0{more}");
        assert_eq!(revision(&request(endpoints, member, "GET", &path, &Value::Null).expect(200)), known);
    }
    watch(endpoints, member).next().expect("an event of an existing object");
    assert_eq!(request(endpoints, member, "GET", "/livez", &Value::Null).status, 200);
}

fn name(number: usize) -> String {
    format!("minority-{number}")
}

fn connect(endpoints: &Endpoints, member: usize) -> Connection {
    let open = Connection::open_within(endpoints.members[member], &endpoints.administrator, PATIENCE);
    open.expect("a connection")
}

/// Waits until a member itself has this value of every object. On a busy machine, it may be behind for a while.
fn await_all(endpoints: &Endpoints, member: usize, value: &str) {
    let (mut connection, deadline) = (connect(endpoints, member), Instant::now() + PATIENCE);
    let path = format!("{CONFIG_MAPS}?resourceVersion=0");
    loop {
        let list = connection.read(&path);
        let items = list["items"].as_array().expect("items");
        if items.iter().filter(|item| item["data"]["value"] == value).count() == OBJECTS {
            return;
        }
        assert!(Instant::now() < deadline, "member {member} does not get the newest objects: {list}");
        std::thread::sleep(POLL_INTERVAL);
    }
}

fn watch(endpoints: &Endpoints, member: usize) -> Watch {
    let own = "fieldSelector=metadata.name!%3Dkube-root-ca.crt";
    let path = format!("{CONFIG_MAPS}?watch=1&resourceVersion=0&{own}");
    let watch = connect(endpoints, member).watch(&path).expect("an answer");
    watch.unwrap_or_else(|refused| panic!("{}", refused.text()))
}

fn request(endpoints: &Endpoints, member: usize, method: &str, path: &str, object: &Value) -> Answer {
    let body = if object.is_null() { String::new() } else { object.to_string() };
    let answer = endpoints.request(member, method, path, &body, PATIENCE);
    answer.unwrap_or_else(|| panic!("member {member} does not answer {method} {path}"))
}

/// Writes through a member of the majority, which may have to elect a leader first. Returns the revision.
fn write_until_it_is(endpoints: &Endpoints, member: usize, number: usize, value: &str) -> u64 {
    let (path, object) = (config_map_path(&name(number)), config_map(&name(number), value));
    let deadline = Instant::now() + PATIENCE;
    loop {
        let answer = request(endpoints, member, "PUT", &path, &object);
        if answer.status == 200 {
            return revision(&answer.json());
        }
        refused(&answer);
        assert!(Instant::now() < deadline, "the majority does not write: {}", answer.text());
    }
}
