//! What clients of several members see when these do something at once, or one of them knows less than the others.

use std::thread::scope;

use serde_json::json;

use crate::cluster::{Places, until};
use crate::support::{Connection, DataDir, Server, config_map_path};

const APPLY: &str = "application/apply-patch+yaml";
const VIEW: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles/view";

#[test]
fn of_many_who_apply_at_once_one_creates_and_the_others_add() {
    let places = Places::new();
    let servers = places.start_all();
    let mut clients = servers.each_ref().map(Server::connect);
    for round in 0..30 {
        let name = format!("applied-{round}");
        let apply = &|member: usize, client: &mut Connection| {
            let path = format!("{}?fieldManager=m{member}", config_map_path(&name));
            let data = json!({format!("of-{member}"): "applied"});
            let own = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data});
            client.request("PATCH", &path, APPLY, own.to_string().as_bytes()).status
        };
        let mut answers: Vec<u16> = scope(|scope| {
            let members = clients.iter_mut().enumerate();
            let applying = members.map(|(member, client)| scope.spawn(move || apply(member, client)));
            let applying: Vec<_> = applying.collect();
            applying.into_iter().map(|applied| applied.join().expect("an answer")).collect()
        });
        answers.sort_unstable();
        assert_eq!(answers, [200, 200, 201]);
        let made = clients[round % 3].get(&config_map_path(&name)).expect(200);
        assert_eq!(made["data"].as_object().map(serde_json::Map::len), Some(3), "{made}");
    }
}

#[test]
fn what_cannot_be_created_by_applying_is_said_as_it_is() {
    let directory = DataDir::new();
    let server = directory.start();
    let path = "/api/v1/namespaces/nowhere/configmaps/applied?fieldManager=test";
    let own = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"applied"}}"#;
    let refused = server.connect().request("PATCH", path, APPLY, own.as_bytes()).expect(404);
    assert_eq!(refused["message"], "namespaces \"nowhere\" not found");
}

#[test]
fn a_member_begins_although_something_was_deleted_that_it_would_have_made() {
    let places = Places::new();
    let mut servers = places.start_all().map(Some);
    servers[0].as_ref().expect("a server").connect().delete(VIEW).expect(200);
    for (member, server) in servers.iter_mut().enumerate() {
        server.take().expect("a server").kill();
        *server = Some(places.start(member)); // ready, whether or not it leads
    }
    let mut client = servers[1].as_ref().expect("a server").connect();
    until("it is made again", || client.get(VIEW).status == 200);
}

#[test]
fn who_does_not_know_the_roles_yet_denies_nobody() {
    let places = Places::new();
    let alone = places.begin(0);
    for path in [config_map_path("any"), "/metrics".to_owned()] {
        let answer = alone.connect().call("GET", &path, &[("Impersonate-User", "ann")], b"").expect("an answer");
        assert_eq!(answer.expect(503)["reason"], "ServiceUnavailable");
        assert_eq!(answer.header("retry-after"), Some("1"));
    }
}
