//! Node ports that clients request through several members at the same time: each port is allocated once.

use std::collections::BTreeSet;
use std::sync::Barrier;
use std::thread::scope;

use serde_json::{Value, json};

use crate::backup::{back_up, beside, restore};
use crate::cluster::Places;
use crate::program::errors;
use crate::support::{Answer, Connection, DataDir, Server, patiently};

const SERVICES: &str = "/api/v1/namespaces/default/services";
const MERGE: &str = "application/merge-patch+json";
const TAKEN: &str = "provided port is already allocated";

/// Returns a NodePort Service. It requests this port, or any free one.
fn service(name: &str, port: Option<usize>) -> Value {
    let mut port_of = json!({"port": 80});
    if let Some(port) = port {
        port_of["nodePort"] = json!(port);
    }
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
        "spec": {"type": "NodePort", "selector": {"app": name}, "ports": [port_of]},
    })
}

fn service_path(name: &str) -> String {
    format!("{SERVICES}/{name}")
}

/// In each round, sends one request through every member at the same moment. Returns the answers, by round.
fn at_once(
    servers: &[Server],
    rounds: usize,
    ask: impl Fn(&mut Connection, usize, usize) -> Answer + Sync,
) -> Vec<Vec<Answer>> {
    let start = Barrier::new(servers.len());
    let (start, ask) = (&start, &ask);
    let each: Vec<Vec<Answer>> = scope(|scope| {
        let asking = servers.iter().enumerate().map(|(member, server)| {
            scope.spawn(move || {
                let mut client = server.connect();
                let turn = |round| {
                    start.wait();
                    ask(&mut client, round, member)
                };
                (0..rounds).map(turn).collect::<Vec<_>>()
            })
        });
        let asking: Vec<_> = asking.collect();
        asking.into_iter().map(|asked| asked.join().expect("answers")).collect()
    });
    let mut each: Vec<_> = each.into_iter().map(Vec::into_iter).collect();
    (0..rounds).map(|_| each.iter_mut().filter_map(Iterator::next).collect()).collect()
}

/// Checks each round by [`one_has_it`], except for rounds in which an answer is unknown: on a busy machine, a group may
/// have no leader for a moment. Most rounds must be decided.
fn one_has_each(rounds: &[Vec<Answer>], given: u16, refused: (u16, &str)) {
    let is_decided = |answers: &&Vec<Answer>| answers.iter().all(|answer| !matches!(answer.status, 503 | 504));
    let decided: Vec<_> = rounds.iter().filter(is_decided).collect();
    assert!(2 * decided.len() > rounds.len(), "{} of {} rounds were answered", decided.len(), rounds.len());
    decided.iter().enumerate().for_each(|(round, answers)| one_has_it(round, answers, given, refused));
}

/// Checks that one member allocated the port, and that the others refused with this code and this reason.
fn one_has_it(round: usize, answers: &[Answer], given: u16, refused: (u16, &str)) {
    let (has, have_not): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer.status == given);
    let codes: Vec<_> = answers.iter().map(|answer| answer.status).collect();
    let texts = || answers.iter().map(Answer::text).collect::<Vec<_>>().join("\n");
    assert_eq!(has.len(), 1, "round {round}: {codes:?}\n{}", texts());
    for answer in have_not {
        assert_eq!(answer.status, refused.0, "round {round}: {codes:?}\n{}", texts());
        assert!(answer.text().contains(refused.1), "round {round}: {}", answer.text());
    }
}

#[test]
fn a_port_requested_through_all_members_at_once_is_allocated_once() {
    // Ports up to 30085 are allocated only on request as long as others are free (KEP-3668).
    const ROUNDS: usize = 60;
    let places = Places::new();
    let servers = places.start_all();
    let answers = at_once(&servers, ROUNDS, |client, round, member| {
        client.post(SERVICES, &service(&format!("created-{round}-{member}"), Some(30_000 + round)))
    });
    one_has_each(&answers, 201, (422, TAKEN));

    // The same holds for ports that updates request, and for health check ports.
    let mut client = servers[0].connect();
    for member in 0..3 {
        let mut plain = service(&format!("updated-{member}"), None);
        plain["spec"]["type"] = json!("ClusterIP");
        client.create(SERVICES, &plain);
    }
    let answers = at_once(&servers, ROUNDS / 2, |client, round, member| {
        let spec = json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": 30_100 + round}]});
        client.request(
            "PATCH",
            &service_path(&format!("updated-{member}")),
            MERGE,
            json!({"spec": spec}).to_string().as_bytes(),
        )
    });
    one_has_each(&answers, 200, (422, TAKEN));
    let answers = at_once(&servers, ROUNDS / 3, |client, round, member| {
        let mut balanced = service(&format!("checked-{round}-{member}"), None);
        balanced["spec"]["type"] = json!("LoadBalancer");
        balanced["spec"]["externalTrafficPolicy"] = json!("Local");
        balanced["spec"]["healthCheckNodePort"] = json!(30_060 + round);
        client.post(SERVICES, &balanced)
    });
    one_has_each(&answers, 201, (500, TAKEN));
}

#[test]
fn services_created_through_all_members_get_different_ports() {
    const EACH: usize = 5;
    let mut places = Places::new();
    places.more = ["--service-node-port-range", "30000-30063"].map(String::from).to_vec();
    let servers = places.start_all();
    let made: Vec<Value> = scope(|scope| {
        let making = (0..12).map(|thread| {
            let server = &servers[thread % 3];
            scope.spawn(move || {
                let mut client = server.connect();
                let make = |number| client.create(SERVICES, &service(&format!("any-{thread}-{number}"), None));
                (0..EACH).map(make).collect::<Vec<_>>()
            })
        });
        let making: Vec<_> = making.collect();
        making.into_iter().flat_map(|made| made.join().expect("services")).collect()
    });
    let port = |service: &Value| service["spec"]["ports"][0]["nodePort"].as_u64().expect("a port");
    let ports: BTreeSet<u64> = made.iter().map(port).collect();
    assert_eq!(ports.len(), 12 * EACH, "{:?}", made.iter().map(port).collect::<Vec<_>>());

    // The last free ports are found, too. Then the range is full.
    let mut clients = servers.each_ref().map(Server::connect);
    for number in 0..4 {
        clients[number % 3].create(SERVICES, &service(&format!("last-{number}"), None));
    }
    let full = patiently(|| clients[1].post(SERVICES, &service("one-more", None)));
    assert!(full.status == 500 && full.text().contains("range is full"), "{}", full.text());
}

#[test]
fn a_released_port_can_be_allocated_again_through_any_member() {
    let places = Places::new();
    let servers = places.start_all();
    let mut clients = servers.each_ref().map(Server::connect);
    for round in 0..40 {
        let name = format!("service-{round}");
        clients[round % 3].create(SERVICES, &service(&name, Some(30_007)));
        let other = &mut clients[(round + 1) % 3];
        let refused = patiently(|| other.post(SERVICES, &service("another", Some(30_007)))).expect(422);
        assert!(refused["message"].as_str().is_some_and(|message| message.contains(TAKEN)), "{refused}");
        match round % 2 {
            0 => other.remove(&service_path(&name)),
            _ => {
                let spec = json!({"type": "ClusterIP"});
                let (path, body) = (service_path(&name), json!({"spec": spec}).to_string());
                let third = &mut clients[(round + 2) % 3];
                patiently(|| third.request("PATCH", &path, MERGE, body.as_bytes())).expect(200);
            }
        }
    }
    // A Service that is refused for another reason does not keep its port.
    let mut wrong = service("wrong", Some(30_008));
    wrong["spec"]["sessionAffinity"] = json!("Sometimes");
    for round in 0..10 {
        patiently(|| clients[round % 3].post(SERVICES, &wrong)).expect(422);
    }
    clients[1].create(SERVICES, &service("right", Some(30_008)));

    // A backup contains the allocations.
    let (directory, second) = (&places.directories[0], DataDir::new());
    let backup = beside(directory, "ports.backup");
    back_up(&servers[0], &backup);
    let restored = restore(&backup, &second);
    assert!(restored.status.success(), "{}", errors(&restored));
    let alone = second.start();
    let mut client = alone.connect();
    client.post(SERVICES, &service("left", Some(30_008))).expect(422);
    client.create(SERVICES, &service("left", Some(30_009)));
}
