//! A single server that becomes the first member of a cluster.

use serde_json::json;

use crate::cluster::{NAMES, Places, each, output_of, read, status, until, until_members, write};
use crate::support::Server;

/// Makes three places. In the first, a server without a cluster has stored an object and its certificate authorities.
fn alone() -> Places {
    let mut places = Places::new();
    places.pki = places.directories[0].path().join("pki");
    let server = places.directories[0].start();
    write(&server, "first");
    assert!(server.terminate().success());
    places
}

fn join(places: &Places, by: &Server, name: &str, member: usize) {
    assert_eq!(
        output_of(by, &["join", &format!("{name}={}", places.address(member))]),
        format!("{name} is a member\n")
    );
}

fn is_ready(server: &Server) -> bool {
    server.connect().get("/readyz").status == 200
}

#[test]
fn a_single_server_becomes_one_of_three_with_all_its_data() {
    let places = alone();
    // Both wait for the third member of their list. When that member appears, it has a cluster already, so they do not
    // form one.
    let (b, c) = (places.begin(1), places.begin(2));
    until("they wait for the first server", || b.messages().contains("waiting until all members see each other"));
    let a = places.start(0);
    read(&a, "first");
    assert_eq!(
        (each(&status(&a), "name"), each(&status(&a), "address")),
        (vec![json!("a")], vec![json!(places.address(0))])
    );
    for other in [&b, &c] {
        until("it finds a cluster to join", || other.messages().contains("admit it with `flotilla cluster join`"));
        assert!(!is_ready(other));
    }
    until("the first one finds the others", || a.messages().matches("waits until it is admitted").count() >= 2);

    join(&places, &a, "b", 1);
    join(&places, &a, "c", 2);
    for server in [&a, &b, &c] {
        until("all are ready", || is_ready(server));
        read(server, "first");
    }
    until_members(&c, &NAMES);
    write(&c, "second");

    // Any two members have all data, and the first one takes part again when it returns.
    a.kill();
    write(&b, "third");
    let a = places.start(0);
    for name in ["first", "second", "third"] {
        read(&a, name);
    }
    b.kill();
    read(&c, "first");
    write(&a, "fourth");
}

#[test]
fn two_single_servers_with_data_do_not_join() {
    let places = alone();
    let other = places.directories[1].start();
    write(&other, "other");
    assert!(other.terminate().success());
    let (a, b) = (places.start(0), places.start(1));
    for server in [&a, &b] {
        until("it says so", || server.messages().contains("belongs to another cluster and has data of its own"));
    }
    read(&a, "first");
    read(&b, "other");
    assert_eq!((each(&status(&a), "name"), each(&status(&b), "name")), (vec![json!("a")], vec![json!("b")]));
}
