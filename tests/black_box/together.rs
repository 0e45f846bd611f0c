//! Clients of several members, which act at the same moment, or one of which lags behind the others.

use std::thread::scope;

use serde_json::json;

use crate::cluster::{Places, output_of, take_turns, until};
use crate::support::{Answer, Connection, DataDir, Server, config_map_path, patiently};

const APPLY: &str = "application/apply-patch+yaml";
const JSON: &str = "application/json";
const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const VIEW: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles/view";

#[test]
fn one_of_concurrent_applies_creates_and_the_others_add_fields() {
    let places = Places::new();
    let servers = places.start_all();
    let mut clients = servers.each_ref().map(Server::connect);
    take_turns(30, |turn| {
        let name = format!("applied-{turn}");
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
        if answers.iter().any(|status| matches!(status, 503 | 504)) {
            return None;
        }
        answers.sort_unstable();
        assert_eq!(answers, [200, 200, 201]);
        let made = clients[turn % 3].read(&config_map_path(&name));
        assert_eq!(made["data"].as_object().map(serde_json::Map::len), Some(3), "{made}");
        Some(())
    });
}

#[test]
fn apply_in_a_missing_namespace_is_refused_with_404() {
    let directory = DataDir::new();
    let server = directory.start();
    let path = "/api/v1/namespaces/nowhere/configmaps/applied?fieldManager=test";
    let own = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"applied"}}"#;
    let refused = server.connect().request("PATCH", path, APPLY, own.as_bytes()).expect(404);
    assert_eq!(refused["message"], "namespaces \"nowhere\" not found");
}

#[test]
fn a_member_starts_although_a_bootstrap_object_was_deleted() {
    let places = Places::new();
    let mut servers = places.start_all().map(Some);
    servers[0].as_ref().expect("a server").connect().remove(VIEW);
    for (member, server) in servers.iter_mut().enumerate() {
        server.take().expect("a server").kill();
        *server = Some(places.start(member)); // ready, even if it is not the leader
    }
    let mut client = servers[1].as_ref().expect("a server").connect();
    until("the role is created again", || client.get(VIEW).status == 200);
}

#[test]
fn a_member_that_does_not_know_the_roles_denies_no_request() {
    let places = Places::new();
    let alone = places.begin(0);
    for path in [config_map_path("any"), "/metrics".to_owned()] {
        let answer = alone.connect().call("GET", &path, &[("Impersonate-User", "ann")], b"").expect("an answer");
        assert_eq!(answer.expect(503)["reason"], "ServiceUnavailable");
        assert_eq!(answer.header("retry-after"), Some("1"));
    }
}

/// Three members, of which the first leads, and a client of the second.
struct Lagging {
    /// Keeps the data directories until the servers have ended.
    _places: Places,
    servers: [Server; 3],
    leader: Connection,
    client: Connection,
}

/// A request: method, path, additional headers and body.
type Request<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)], &'a str);

impl Lagging {
    fn begin(connect: impl Fn(&Server) -> Connection) -> Lagging {
        let places = Places::new();
        let servers = places.start_all();
        output_of(&servers[0], &["transfer", "a"]);
        let (leader, client) = (servers[0].connect_for_pods(), connect(&servers[1]));
        Lagging { _places: places, servers, leader, client }
    }

    /// Pauses the second member, carries out `meanwhile` through the leader, resumes the second member, and returns its
    /// answer to a request that was sent during the pause. `None` is an answer that there is no leader.
    fn answer(
        &mut self,
        meanwhile: impl FnOnce(&mut Connection),
        (method, path, headers, body): Request<'_>,
    ) -> Option<Answer> {
        let mut request = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n", body.len());
        headers.iter().for_each(|(name, value)| request.push_str(&format!("{name}: {value}\r\n")));
        self.servers[1].freeze();
        meanwhile(&mut self.leader);
        self.client.send(format!("{request}\r\n{body}").as_bytes()).expect("a client can send");
        self.servers[1].signal("CONT");
        let answer = self.client.read_answer().expect("an answer");
        (!matches!(answer.status, 503 | 504)).then_some(answer)
    }
}

#[test]
fn a_new_token_is_valid_on_every_member_at_once() {
    let mut lagging = Lagging::begin(Server::connect_anonymously);
    take_turns(5, |turn| {
        let name = format!("robot-{turn}");
        let account = json!({"metadata": {"name": name}});
        let accounts = "/api/v1/namespaces/default/serviceaccounts";
        // The token has a valid signature, but the frozen member does not know its account yet.
        let issue = |leader: &mut Connection| {
            leader.create(accounts, &account);
            let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
            let issued = leader.create(&format!("{accounts}/{name}/token"), &request);
            issued["status"]["token"].as_str().expect("a token").to_owned()
        };
        lagging.servers[1].freeze();
        let token = issue(&mut lagging.leader);
        let bearer = format!("Bearer {token}");
        let answer = lagging.answer(|_| {}, ("GET", "/api", &[("Authorization", &bearer)], ""))?;
        answer.expect(200);
        Some(())
    });
}

#[test]
fn a_new_pod_security_level_is_enforced_on_every_member_at_once() {
    const NAMESPACE: &str = "/api/v1/namespaces/default";
    let mut lagging = Lagging::begin(Server::connect);
    let pod = json!({"metadata": {"name": "plain"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    lagging.leader.create(&format!("{NAMESPACE}/pods"), &pod);
    take_turns(6, |turn| {
        let (level, expected) = if turn % 2 == 0 { ("baseline", 403) } else { ("privileged", 200) };
        let label = json!({"metadata": {"labels": {"pod-security.kubernetes.io/enforce": level}}}).to_string();
        let container = json!({"name": format!("e{turn}"), "image": "i", "securityContext": {"privileged": true}});
        let debug = json!({"spec": {"ephemeralContainers": [container]}}).to_string();
        let answer = lagging.answer(
            |leader| drop(patiently(|| leader.request("PATCH", NAMESPACE, MERGE, label.as_bytes())).expect(200)),
            ("PATCH", &format!("{NAMESPACE}/pods/plain/ephemeralcontainers"), &[("Content-Type", STRATEGIC)], &debug),
        )?;
        answer.expect(expected);
        Some(())
    });
}

#[test]
fn a_new_role_can_be_bound_on_every_member_at_once() {
    const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
    let mut lagging = Lagging::begin(Server::connect);
    let role = |kind: &str, name: &str| json!({"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name});
    let bound = |name: &str, role: serde_json::Value| {
        let subject = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "ann"});
        json!({"metadata": {"name": name}, "roleRef": role, "subjects": [subject]})
    };
    let admin = bound("ann", role("ClusterRole", "admin"));
    lagging.leader.create(&format!("{RBAC}/rolebindings"), &admin);
    let ann: &[_] = &[("Impersonate-User", "ann")];
    let mut allows =
        || lagging.client.call("GET", &format!("{RBAC}/roles"), ann, b"").expect("an answer").status == 200;
    until("ann has the permissions of an admin", &mut allows);
    take_turns(5, |turn| {
        let name = format!("reader-{turn}");
        let rules = json!([{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]);
        let made = json!({"metadata": {"name": name}, "rules": rules});
        let binding = bound(&name, role("Role", &name)).to_string();
        let answer = lagging.answer(
            |leader| drop(leader.create(&format!("{RBAC}/roles"), &made)),
            ("POST", &format!("{RBAC}/rolebindings"), &[("Content-Type", JSON), ("Impersonate-User", "ann")], &binding),
        )?;
        answer.expect(201);
        Some(())
    });
}
