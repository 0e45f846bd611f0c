//! Members that start one after the other form one cluster as soon as all of them run.

use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::cluster::{NAMES, Places, each, output_of, read, status, unavailable, until, until_members, write};
use crate::support::{CONFIG_MAPS, DataDir, Server, config_map};

/// How long after the previous member each one starts.
const APART: Duration = Duration::from_secs(3);
/// The resources that the layout `large` divides, as `flotilla cluster shards` names them.
const LARGE: [&str; 5] = ["coordination.k8s.io/leases", "discovery.k8s.io/endpointslices", "events", "nodes", "pods"];

/// Checks that a server without a cluster is alive, is not ready, and refuses requests.
fn waits_for_others(server: &Server) {
    let mut client = server.connect();
    assert_eq!(client.get("/livez").status, 200);
    let unready = client.get("/readyz");
    assert!(unready.status == 500 && unready.text().contains("[-]etcd failed: reason withheld"), "{}", unready.text());
    unavailable(&client.post(CONFIG_MAPS, &config_map("early", "early")));
    let refused = client.get(CONFIG_MAPS);
    assert_ne!(refused.status, 200, "a server without a cluster refuses requests: {}", refused.text());
}

/// Returns the identity and the members of the cluster, according to a server.
fn identity(server: &Server) -> [Value; 4] {
    let status = status(server);
    [status["cluster"].clone(), each(&status, "name").into(), each(&status, "id").into(), each(&status, "votes").into()]
}

#[test]
fn members_that_start_one_after_another_form_one_cluster() {
    let places = Places::new();
    let mut servers: [Option<Server>; 3] = [None, None, None];
    for member in [2, 1, 0] {
        servers[member] = Some(places.begin(member));
        let begun = Instant::now();
        while member > 0 && begun.elapsed() < APART {
            servers.iter().flatten().for_each(waits_for_others);
            sleep(APART / 10);
        }
    }
    let mut servers = servers.map(|server| server.expect("all are started"));
    for server in &servers {
        until("all are ready", || server.connect().get("/readyz").status == 200);
    }
    until_members(&servers[0], &NAMES);
    let founded = identity(&servers[0]);
    assert_eq!((&founded[1], &founded[3]), (&json!(NAMES), &json!(vec![true; 3])));
    assert!(founded[0].as_str().is_some_and(|cluster| !cluster.is_empty()), "{founded:?}");
    for (server, name) in servers.iter().zip(NAMES) {
        until("all have the same cluster", || identity(server) == founded);
        until("refused objects do not exist", || server.connect().get(&format!("{CONFIG_MAPS}/early")).status == 404);
        write(server, name);
    }
    servers.iter().for_each(|server| NAMES.iter().for_each(|name| read(server, name)));

    // With the same flags, which could also form a cluster, each member rejoins the existing one.
    for (member, name) in NAMES.iter().enumerate() {
        let [before, meanwhile] = ["before", "meanwhile"].map(|when| format!("{when}-{name}"));
        write(&servers[member], &before);
        let mut others = servers.into_iter().collect::<Vec<_>>();
        others.remove(member).kill();
        write(&others[0], &meanwhile);
        others.insert(member, places.start(member));
        servers = others.try_into().unwrap_or_else(|_| panic!("as many as before"));
        for server in &servers {
            until("the cluster is the same", || identity(server) == founded);
        }
        [&before, &meanwhile].into_iter().for_each(|name| read(&servers[member], name));
    }
}

#[test]
fn the_layout_large_has_eight_shards_of_busy_resources() {
    let flags = ["--shards", "large"];
    let (directory, mut places) = (DataDir::new(), Places::new());
    places.more = flags.map(String::from).to_vec();
    let alone = directory.start_with(&flags);
    let together = places.start_all();
    for server in together.iter().chain([&alone]) {
        let table = output_of(server, &["shards"]);
        let rows = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let divided: Vec<_> = rows.filter(|row| row.get(1) == Some(&"8")).collect();
        assert_eq!(divided.iter().map(|row| row[0]).collect::<Vec<_>>(), LARGE, "{table}");
        for row in divided {
            let mut groups: Vec<&str> = row[3].split(',').collect();
            groups.sort_unstable();
            groups.dedup();
            assert_eq!((row[2], groups.len()), ("-", 8), "each shard has a log of its own: {table}");
        }
    }
}
