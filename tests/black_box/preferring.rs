//! Preferred leaders: whenever a member can, it leads the groups for which an administrator prefers it.

use serde_json::{Value, json};

use crate::cluster::{Places, cluster, output_of, read, status, until, write};
use crate::support::Server;

/// Returns a group's status, according to a server.
fn group(server: &Server, name: &str) -> Value {
    let status = status(server);
    let groups = status["groups"].as_array().expect("groups");
    groups.iter().find(|group| group["name"] == name).expect("the group").clone()
}

fn leader(server: &Server, name: &str) -> Value {
    group(server, name)["leader"].clone()
}

/// Returns the words of a group's line in the output of `flotilla cluster status`.
fn row(server: &Server, name: &str) -> Vec<String> {
    let text = output_of(server, &["status"]);
    let line = text.lines().find(|line| line.starts_with(&format!("{name} "))).expect("the group");
    line.split_whitespace().map(str::to_owned).collect()
}

/// Runs a command that must fail with this exit code, and returns its error output.
fn refused(server: &Server, arguments: &[&str], code: i32) -> String {
    let output = cluster(server, arguments);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8(output.stderr).expect("text")
}

#[test]
fn a_preferred_member_leads_again_when_it_returns() {
    let mut places = Places::new();
    places.more = ["--shards", "configmaps=2", "--groups", "2"].map(String::from).to_vec();
    let [a, b, c] = places.start_all();
    assert_eq!((group(&a, "g1").get("preferred"), &*row(&a, "g1")[2]), (None, "-"));
    let prefer = ["transfer", "b", "--group", "g1", "--prefer"];
    assert_eq!(output_of(&a, &prefer), "b leads the group g1, and is preferred from now on\n");
    assert_eq!(output_of(&c, &prefer), "b leads the group g1, and is preferred from now on\n");
    for server in [&a, &b, &c] {
        until("it shows", || group(server, "g1")["preferred"] == json!("b") && leader(server, "g1") == "b");
        until("the table shows it", || row(server, "g1")[1..3] == ["b", "b"]);
        assert_eq!(row(server, "g2")[2], "-");
    }

    b.kill();
    until("another leads", || ["a", "c"].map(Value::from).contains(&leader(&a, "g1")));
    assert_eq!(group(&a, "g1")["preferred"], "b");
    (0..8).for_each(|number| write(&a, &format!("meanwhile-{number}")));
    let b = places.start(1);
    until("b leads the group again", || leader(&a, "g1") == "b");
    (0..8).for_each(|number| read(&b, &format!("meanwhile-{number}")));

    // If a preferred member cannot lead at once, the preference is stored.
    output_of(&a, &["drain", "c"]);
    until("c is preferred and drained", || {
        let later = refused(&a, &["transfer", "c", "--group", "g2", "--prefer"], 1);
        later.contains("c is the preferred leader now") && later.contains("c: the member is drained")
    });
    assert_eq!(group(&a, "g2")["preferred"], "c");
    output_of(&a, &["drain", "c", "--undo"]);
    until("c leads the group", || leader(&a, "g2") == "c");

    let nobody = ["transfer", "--group", "g1", "--no-preference"];
    assert_eq!(output_of(&c, &nobody), "no member is preferred for the group g1 any more\n");
    assert_eq!(group(&c, "g1").get("preferred"), None);
    // Another one may be elected by chance between the commands and the check.
    until("a leads and is not preferred", || {
        assert_eq!(
            output_of(&a, &["transfer", "a", "--no-preference"]),
            "a leads every group, and no member is preferred any more\n"
        );
        assert_eq!(output_of(&a, &["transfer", "--no-preference"]), "no member is preferred for any group any more\n");
        let is_preferred = |name: &&str| group(&b, name).get("preferred").is_some();
        until("the preferences are gone", || !["g1", "g2"].iter().any(is_preferred));
        leader(&a, "g2") == "a"
    });

    // A removed member is not preferred any more.
    output_of(&a, &["transfer", "c", "--prefer"]);
    output_of(&a, &["remove", "c"]);
    assert!(["default", "g1", "g2"].iter().all(|name| group(&a, name).get("preferred").is_none()));
    write(&b, "last");

    until("d is unknown", || refused(&a, &["transfer", "d", "--prefer"], 1).contains("there is no member \"d\""));
    let of_none = ["transfer", "--no-preference", "--group", "none"];
    until("the group is unknown", || refused(&a, &of_none, 1).contains("there is no group \"none\""));
    for nonsense in [&["transfer"][..], &["transfer", "--prefer"], &["transfer", "a", "--prefer", "--no-preference"]] {
        refused(&a, nonsense, 2);
    }
    let blank = a.connect().post("/flotilla/v1/cluster/transfer", &json!({"group": "g1"})).expect(400);
    assert_eq!(blank["message"], "it must be said who is to lead");
}
