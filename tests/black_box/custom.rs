//! Custom resources: every member serves them as soon as they are defined. They can be divided, backed up and restored,
//! and are garbage-collected, like other resources. They survive restarts.

use std::collections::BTreeSet;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::backup::{back_up, beside, restore};
use crate::cluster::{Places, cluster, output_of, until};
use crate::dividing::{BUSY, UPDATES, await_updates, keep_updating};
use crate::program::errors;
use crate::support::{
    CONFIG_MAPS, Connection, DataDir, PATIENCE, Server, Watch, config_map, config_map_path, patiently, revision,
};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const GROUP: &str = "/apis/example.com/v1";
const EVERYWHERE: &str = "/apis/example.com/v1/widgets";
const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";
const EIGHT_SHARDS: [&str; 2] = ["--shards", "example.com/widgets=8"];

fn definition(plural: &str, kind: &str) -> Value {
    let spec = json!({"type": "object", "properties": {"value": {"type": "string"}}});
    let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.example.com")},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": plural, "kind": kind},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}],
        },
    })
}

fn definition_path(plural: &str) -> String {
    format!("{DEFINITIONS}/{plural}.example.com")
}

/// Waits until a member reports that a definition is established. Asks without pauses, so that it returns as early as
/// possible.
fn await_established(client: &mut Connection, plural: &str) {
    let deadline = Instant::now() + PATIENCE;
    let is_established = |condition: &Value| condition["type"] == "Established" && condition["status"] == "True";
    while !client.get(&definition_path(plural)).json()["status"]["conditions"]
        .as_array()
        .is_some_and(|conditions| conditions.iter().any(is_established))
    {
        assert!(Instant::now() < deadline, "{plural} are not established in time");
    }
}

/// Creates the definition of widgets.
fn define(server: &Server) {
    let mut client = server.connect();
    client.create(DEFINITIONS, &definition("widgets", "Widget"));
    await_established(&mut client, "widgets");
    client.read(WIDGETS);
}

fn widget(name: &str) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": {"value": name}})
}

fn widget_path(name: &str) -> String {
    format!("{WIDGETS}/{name}")
}

/// Creates widgets through the servers by turns. Returns their names.
fn make(servers: &[Server], count: usize) -> Vec<String> {
    let mut clients: Vec<_> = servers.iter().map(Server::connect).collect();
    let names: Vec<_> = (0..count).map(|number| format!("widget-{number:02}")).collect();
    for (number, name) in names.iter().enumerate() {
        clients[number % servers.len()].create(WIDGETS, &widget(name));
    }
    names
}

fn names(list: &Value) -> Vec<&str> {
    let items = list["items"].as_array().expect("items");
    items.iter().map(|item| item["metadata"]["name"].as_str().expect("a name")).collect()
}

fn watch(server: &Server, from: u64) -> Watch {
    let watch = server.watch(&format!("{WIDGETS}?watch=1&resourceVersion={from}"));
    watch.unwrap_or_else(|refused| panic!("{}", refused.text()))
}

fn divided() -> Places {
    let mut places = Places::new();
    places.more = EIGHT_SHARDS.map(str::to_owned).to_vec();
    places
}

#[test]
fn all_members_serve_what_one_member_reports_as_established() {
    let places = Places::new();
    let servers = places.start_all();
    let mut clients = servers.each_ref().map(Server::connect);
    for turn in 0..15 {
        let (plural, kind) = (format!("kind{turn}s"), format!("Kind{turn}"));
        clients[turn % 3].create(DEFINITIONS, &definition(&plural, &kind));
        await_established(&mut clients[(turn + 1) % 3], &plural);
        let object = json!({"apiVersion": "example.com/v1", "kind": kind, "metadata": {"name": "first"}});
        clients[(turn + 2) % 3].create(&format!("{GROUP}/namespaces/default/{plural}"), &object);
    }
}

#[test]
fn pages_and_watches_of_eight_shards_continue_on_other_members() {
    let places = divided();
    let servers = places.start_all();
    define(&servers[0]);
    let made = make(&servers, 40);
    let mut clients = servers.each_ref().map(Server::connect);
    let (mut listed, mut revisions, mut token, mut turn) = (Vec::new(), BTreeSet::new(), String::new(), 0);
    loop {
        turn += 1;
        let page = clients[turn % 3].read(&format!("{WIDGETS}?limit=7&continue={token}"));
        listed.extend(names(&page).into_iter().map(str::to_owned));
        revisions.insert(revision(&page));
        page["metadata"]["continue"].as_str().unwrap_or_default().clone_into(&mut token);
        if token.is_empty() {
            break;
        }
    }
    assert_eq!((listed, revisions.len()), (made.clone(), 1), "the pages show all objects at one revision");

    let mut last = revisions.pop_last().expect("a revision");
    for (turn, name) in made.iter().take(12).enumerate() {
        let mut changed = clients[turn % 3].read(&widget_path(name));
        changed["spec"] = json!({"value": "changed", "unknown": "pruned"});
        let changed = clients[turn % 3].update(&widget_path(name), &changed);
        assert_eq!(changed["spec"], json!({"value": "changed"}));
        // Another member continues where the previous one stopped.
        let event = watch(&servers[(turn + 1) % 3], last).next().expect("an event");
        assert_eq!((&event["type"], &event["object"]), (&json!("MODIFIED"), &changed));
        last = revision(&changed);
    }
}

#[test]
fn every_member_applies_a_definition_until_its_deletion() {
    let places = divided();
    let servers = places.start_all();
    define(&servers[0]);
    let made = make(&servers, 20);
    let path = definition_path("widgets");
    let before = servers[2].connect().read(&widget_path("widget-00"));

    let mut changed = servers[1].connect().read(&path);
    changed["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["shape"] =
        json!({"type": "string", "default": "round"});
    servers[1].connect().update(&path, &changed);
    let mut expected = before.clone();
    expected["spec"]["shape"] = json!("round");
    for server in &servers {
        let mut client = server.connect();
        until("the new default is served", || client.read(&widget_path("widget-00")) == expected);
        let list = client.read(WIDGETS);
        assert!(list["items"].as_array().expect("items").iter().all(|item| item["spec"]["shape"] == "round"), "{list}");
    }

    let start = revision(&servers[0].connect().read(WIDGETS));
    let mut watches = servers.each_ref().map(|server| watch(server, start));
    servers[1].connect().remove(&path);
    // A watch ends a second after its member has applied the deletion of the definition, whether or not the groups of
    // all objects have got that far on this member. Further down, no member has any of them.
    for watch in &mut watches {
        while let Ok(event) = watch.next() {
            assert_eq!(event["type"], "DELETED", "{event}");
            let name = event["object"]["metadata"]["name"].as_str().expect("a name");
            assert!(made.iter().any(|made| made == name), "{event}");
        }
    }
    for server in &servers {
        let mut client = server.connect();
        until("the definition is gone", || client.get(&path).status == 404);
        until("its resource is not served any more", || client.get(WIDGETS).status == 404);
    }

    define(&servers[2]);
    for server in &servers {
        assert!(names(&server.connect().read(EVERYWHERE)).is_empty());
    }
    let anew = servers[0].connect().create(WIDGETS, &widget("widget-00"));
    assert_ne!(anew["metadata"]["uid"], before["metadata"]["uid"]);
    assert_eq!(servers[1].connect().read(&widget_path("widget-00")), anew);
}

#[test]
fn a_member_that_was_frozen_creates_nothing_of_a_deleted_definition() {
    let places = Places::new();
    let servers = places.start_all();
    define(&servers[0]);
    output_of(&servers[0], &["transfer", "a"]);
    let mut client = servers[2].connect();
    assert!(names(&client.read(WIDGETS)).is_empty());
    servers[2].freeze();
    let body = widget("late").to_string();
    let head = format!("POST {WIDGETS} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n", body.len());
    client.send(format!("{head}Content-Type: application/json\r\n\r\n{body}").as_bytes()).expect("a connection");
    let mut other = servers[1].connect();
    other.remove(&definition_path("widgets"));
    until("the definition is gone", || other.get(&definition_path("widgets")).status == 404);
    servers[2].signal("CONT");
    let answer = client.read_answer().expect("an answer");
    assert!(matches!(answer.status, 404 | 503 | 504), "{}", answer.text());
    define(&servers[1]);
    assert!(names(&other.read(EVERYWHERE)).is_empty());
}

#[test]
fn definitions_can_be_deleted_even_if_they_serve_nothing() {
    const CLASSES: &str = "/apis/networking.k8s.io/v1/ingressclasses";
    let directory = DataDir::new();
    let server = directory.start();
    let mut client = server.connect();
    let class = json!({"metadata": {"name": "kept"}, "spec": {"controller": "example.com/any"}});
    client.post(CLASSES, &class).expect(201);
    let mut shadow = definition("ingressclasses", "IngressClass");
    shadow["metadata"] = json!({
        "name": "ingressclasses.networking.k8s.io", "annotations": {"api-approved.kubernetes.io": "unapproved, a test"}
    });
    (shadow["spec"]["group"], shadow["spec"]["scope"]) = ("networking.k8s.io".into(), "Cluster".into());
    client.post(DEFINITIONS, &shadow).expect(201);

    define(&server);
    client.post(WIDGETS, &widget("hidden")).expect(201);
    let path = definition_path("widgets");
    let mut unserved = client.get(&path).expect(200);
    unserved["spec"]["versions"][0]["served"] = false.into();
    client.put(&path, &unserved).expect(200);
    until("its resource is not served any more", || client.get(WIDGETS).status == 404);

    let shadow = format!("{DEFINITIONS}/ingressclasses.networking.k8s.io");
    for path in [&path, &shadow] {
        client.delete(path).expect(200);
        until("the definition is gone", || client.get(path).status == 404);
    }
    assert_eq!(client.get(CLASSES).expect(200)["items"].as_array().expect("items").len(), 1);
    define(&server);
    assert!(names(&client.get(WIDGETS).expect(200)).is_empty());
}

#[test]
fn a_custom_type_is_divided_while_it_is_written() {
    let places = Places::new();
    let servers = places.start_all();
    define(&servers[0]);
    make(&servers, 40);
    let before = servers[0].connect().read(WIDGETS);
    let (mut watch, stopped) = (watch(&servers[2], revision(&before)), AtomicBool::new(false));
    let counts = scope(|scope| {
        let (servers, stopped) = (&servers, &stopped);
        let update = |member: usize| {
            move || keep_updating(&servers[member], WIDGETS, widget(&format!("busy-{member}")), stopped)
        };
        let writers = [0, 1, 2].map(|member| scope.spawn(update(member)));
        await_updates(&mut servers[0].connect(), WIDGETS, &BUSY, UPDATES);
        let output = output_of(&servers[1], &["shards", "example.com/widgets=8"]);
        let row = output.lines().find(|line| line.starts_with("example.com/widgets")).expect("a row");
        assert_eq!(row.split_whitespace().nth(1), Some("8"), "{output}");
        await_updates(&mut servers[0].connect(), WIDGETS, &BUSY, UPDATES);
        stopped.store(true, Ordering::SeqCst);
        writers.map(|writer| writer.join().expect("a writer").0)
    });
    for server in &servers {
        let list = server.connect().read(WIDGETS);
        let items = list["items"].as_array().expect("items");
        let (busy, calm) = items.split_at(counts.len());
        assert_eq!(calm, before["items"].as_array().expect("items"));
        for (item, count) in busy.iter().zip(counts) {
            let stated = item["metadata"]["labels"]["count"].as_str().and_then(|stated| stated.parse().ok());
            assert!(count > 0 && stated == Some(count), "{item}");
        }
    }
    let mut last = revision(&before);
    for _ in 0..counts.iter().map(|count| count + 1).sum() {
        let event = watch.next().expect("an event");
        assert!(revision(&event["object"]) > last, "{event}");
        last = revision(&event["object"]);
    }
}

#[test]
fn custom_objects_are_served_at_once_after_a_restart() {
    let directory = DataDir::new();
    let servers = [directory.start_with(&EIGHT_SHARDS)];
    define(&servers[0]);
    make(&servers, 30);
    let before = servers[0].connect().get(WIDGETS).expect(200);
    servers.into_iter().for_each(Server::kill);
    let server = directory.begin_with(&EIGHT_SHARDS);
    let mut client = server.connect();
    assert_eq!(client.get(WIDGETS).expect(200)["items"], before["items"]);
    assert_eq!(client.get(GROUP).expect(200)["resources"][0]["name"], "widgets");
}

#[test]
fn a_member_without_a_majority_does_not_deny_definitions() {
    let places = divided();
    let servers = places.start_all();
    define(&servers[0]);
    make(&servers, 30);
    let before = servers[0].connect().read(WIDGETS);
    servers.into_iter().for_each(Server::kill);

    // Without the others, a member has its own state, and cannot know whether a majority has a newer one.
    let c = places.begin(2);
    let mut client = c.connect();
    assert_eq!(client.get(WIDGETS).status, 503);
    assert_eq!(client.get(&format!("{GROUP}/namespaces/default/gadgets")).status, 503);
    until("the member serves its own state", || {
        let answer = client.get(&format!("{WIDGETS}?resourceVersion=0"));
        assert!(matches!(answer.status, 200 | 503), "{}", answer.text());
        answer.status == 200
    });
    let (a, b) = scope(|scope| {
        let a = scope.spawn(|| places.start(0));
        let b = places.start(1);
        (a.join().expect("a server"), b)
    });
    for server in [&a, &b, &c] {
        assert_eq!(server.connect().read(WIDGETS)["items"], before["items"]);
        let mut client = server.connect();
        assert_eq!(patiently(|| client.get(&format!("{GROUP}/namespaces/default/gadgets"))).status, 404);
    }

    // A member that has lost its disk knows nothing until it has been admitted and has caught up.
    c.kill();
    fs::remove_dir_all(places.directories[2].path()).expect("the disk is lost");
    let c = places.begin(2);
    let mut client = c.connect();
    assert_eq!(client.get(WIDGETS).status, 503);
    let join = format!("c={}", places.address(2));
    until("c is admitted", || cluster(&a, &["join", &join]).status.success());
    let mut list = client.get(WIDGETS);
    until("c serves widgets", || {
        list = client.get(WIDGETS);
        assert!(matches!(list.status, 200 | 503), "{}", list.text());
        list.status == 200
    });
    assert_eq!(list.json()["items"], before["items"]);
}

#[test]
fn custom_objects_are_backed_up_and_restored() {
    let (first, second) = (DataDir::new(), DataDir::new());
    let servers = [first.start_with(&EIGHT_SHARDS)];
    define(&servers[0]);
    make(&servers, 30);
    let before = servers[0].connect().get(WIDGETS).expect(200);
    let backup = beside(&first, "backup");
    back_up(&servers[0], &backup);
    servers[0].connect().delete(&definition_path("widgets")).expect(200);
    servers.into_iter().for_each(Server::kill);
    let restored = restore(&backup, &second);
    assert!(restored.status.success(), "{}", errors(&restored));
    let server = second.start_with(&EIGHT_SHARDS);
    let mut client = server.connect();
    let without_revisions = |list: &Value| {
        let mut items = list["items"].as_array().expect("items").clone();
        items.iter_mut().for_each(|item| drop(item["metadata"]["resourceVersion"].take()));
        items
    };
    assert_eq!(without_revisions(&client.get(WIDGETS).expect(200)), without_revisions(&before));
    client.post(WIDGETS, &widget("after")).expect(201);
    assert_eq!(client.get(&widget_path("after")).expect(200)["spec"]["value"], "after");
}

/// Adds an owner reference to an object.
fn owned(mut object: Value, owner: &Value) -> Value {
    let (api_version, kind) = (&owner["apiVersion"], &owner["kind"]);
    let (name, uid) = (&owner["metadata"]["name"], &owner["metadata"]["uid"]);
    object["metadata"]["ownerReferences"] =
        json!([{"apiVersion": api_version, "kind": kind, "name": name, "uid": uid}]);
    object
}

#[test]
fn custom_objects_are_garbage_collected() {
    let directory = DataDir::new();
    let server = directory.start();
    define(&server);
    let mut client = server.connect();
    client.post(WIDGETS, &widget("kept")).expect(201);
    let first = client.post(WIDGETS, &widget("first")).expect(201);
    let second = client.post(CONFIG_MAPS, &owned(config_map("second", "1"), &first)).expect(201);
    client.post(WIDGETS, &owned(widget("third"), &second)).expect(201);
    client.post("/api/v1/namespaces", &json!({"metadata": {"name": "going"}})).expect(201);
    client.post(&format!("{GROUP}/namespaces/going/widgets"), &widget("with-it")).expect(201);

    client.delete("/api/v1/namespaces/going").expect(200);
    client.delete(&widget_path("first")).expect(200);
    until("the dependent of the custom object is gone", || client.get(&config_map_path("second")).status == 404);
    until("the dependent custom object is gone", || client.get(&widget_path("third")).status == 404);
    until("the namespace is gone", || client.get("/api/v1/namespaces/going").status == 404);
    assert_eq!(names(&client.get(EVERYWHERE).expect(200)), ["kept"]);
}

#[test]
fn selectors_find_older_objects_by_a_field_that_has_become_selectable() {
    let directory = DataDir::new();
    let server = directory.start();
    define(&server);
    let mut client = server.connect();
    let names = make(std::slice::from_ref(&server), 3);
    let mut plain = widget("plain");
    plain["spec"] = json!({});
    let plain = client.post(WIDGETS, &plain).expect(201);

    select_by_value(&mut client, true);
    for name in &names {
        until("a selector finds an older object", || {
            let list = client.get(&with_value(name));
            list.status == 200 && self::names(&list.json()) == [name]
        });
    }
    assert_eq!(self::names(&client.get(&with_value("")).expect(200)), ["plain"]);
    // A watch that had begun before would end with the old definition.
    let mut changes = watch(&server, revision(&plain));
    let mut rewritten = BTreeSet::new();
    while rewritten.len() < names.len() {
        let event = changes.next().expect("an event");
        assert_eq!(event["type"], "MODIFIED", "{event}");
        let name = event["object"]["metadata"]["name"].as_str().expect("a name").to_owned();
        assert_eq!(event["object"]["spec"]["value"], name, "nothing else changes");
        assert!(rewritten.insert(name), "each object is stored once");
    }
    let same = client.get(&format!("{WIDGETS}/plain")).expect(200);
    assert_eq!(revision(&same), revision(&plain), "an object without the field is not stored again");
}

#[test]
fn selectors_find_objects_by_a_field_that_was_not_selectable_for_a_moment() {
    let directory = DataDir::new();
    let server = directory.start();
    define(&server);
    let mut client = server.connect();
    client.post(WIDGETS, &widget("before")).expect(201);
    let found = |client: &mut Connection, name: &str| {
        let list = client.get(&with_value(name));
        list.status == 200 && names(&list.json()) == [name]
    };
    select_by_value(&mut client, true);
    until("a selector finds an older object", || found(&mut client, "before"));
    // The controller searches twice, half a second apart. It remembers that once both searches have ended.
    sleep(Duration::from_secs(1));

    select_by_value(&mut client, false);
    until("the field is not selectable", || client.get(&with_value("before")).status == 400);
    client.post(WIDGETS, &widget("between")).expect(201);
    select_by_value(&mut client, true);
    until("a selector finds the object that was created in between", || found(&mut client, "between"));
    assert!(found(&mut client, "before"));
}

/// Makes the value of widgets selectable, or takes that back.
fn select_by_value(client: &mut Connection, selectable: bool) {
    let path = "/spec/versions/0/selectableFields";
    let patch = match selectable {
        true => json!([{"op": "add", "path": path, "value": [{"jsonPath": ".spec.value"}]}]),
        false => json!([{"op": "remove", "path": path}]),
    };
    let definition = definition_path("widgets");
    client.request("PATCH", &definition, "application/json-patch+json", patch.to_string().as_bytes()).expect(200);
}

/// Returns the path of a list of the widgets with a value.
fn with_value(value: &str) -> String {
    format!("{WIDGETS}?fieldSelector=spec.value={value}")
}
