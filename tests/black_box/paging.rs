//! Lists in pages.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use serde_json::json;

use crate::cluster::until;
use crate::support::{CONFIG_MAPS, DataDir, config_map, config_map_path};

const OBJECTS: usize = 120;
const PAGE: usize = 25;

#[test]
fn pages_are_of_one_revision_while_writes_go_on() {
    are_of_one_revision(&[]);
}

#[test]
fn pages_of_several_shards_are_of_one_revision_while_writes_go_on() {
    are_of_one_revision(&["--shards", "configmaps=8"]);
}

fn are_of_one_revision(flags: &[&str]) {
    let directory = DataDir::new();
    let server = directory.start_with(flags);
    let mut client = server.connect();
    let name = |number: usize| format!("page-{number:04}");
    let mut expected = BTreeMap::new();
    for number in 0..OBJECTS {
        let mut object = config_map(&name(number), "before");
        object["metadata"]["labels"] = json!({"paged": "yes"});
        client.post(CONFIG_MAPS, &object).expect(201);
        expected.insert(name(number), String::from("before"));
    }
    let query = format!("{CONFIG_MAPS}?labelSelector=paged%3Dyes&limit={PAGE}");
    let (stop, credentials) = (AtomicBool::new(false), server.credentials());
    let first = client.get(&query).expect(200);
    let (mut found, mut pages, changes) = (BTreeMap::new(), 0, AtomicUsize::new(0));
    std::thread::scope(|scope| {
        // Changes, deletes and creates objects in pages that the reader has read, and in those that it has not.
        let writer = scope.spawn(|| {
            let mut client = credentials.connect();
            for number in 0..OBJECTS {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                let at = (number * 7) % OBJECTS;
                match number % 3 {
                    0 => drop(client.delete(&config_map_path(&name(at))).expect(200)),
                    1 => drop(client.put(&config_map_path(&name(at)), &config_map(&name(at), "after")).expect(200)),
                    _ => {
                        let mut added = config_map(&format!("{}-added", name(at)), "after");
                        added["metadata"]["labels"] = json!({"paged": "yes"});
                        client.post(CONFIG_MAPS, &added).expect(201);
                    }
                }
                changes.fetch_add(1, Ordering::SeqCst);
            }
        });
        let mut page = first.clone();
        loop {
            pages += 1;
            assert_eq!(page["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"]);
            for item in page["items"].as_array().expect("items") {
                let entry = |value: &serde_json::Value| value.as_str().expect("text").to_owned();
                let twice = found.insert(entry(&item["metadata"]["name"]), entry(&item["data"]["value"]));
                assert_eq!(twice, None, "{item}");
            }
            let seen = found.len();
            let Some(more) = page["metadata"]["continue"].as_str().filter(|more| !more.is_empty()) else { break };
            assert_eq!(seen, pages * PAGE);
            let before = changes.load(Ordering::SeqCst);
            until("the writer goes on", || changes.load(Ordering::SeqCst) > before || writer.is_finished());
            std::thread::sleep(std::time::Duration::from_millis(50));
            page = client.get(&format!("{query}&continue={more}")).expect(200);
        }
        stop.store(true, Ordering::Relaxed);
        writer.join().expect("the writer");
    });
    assert!(changes.into_inner() > 0);
    assert_eq!(pages, OBJECTS.div_ceil(PAGE));
    assert_eq!(found, expected);
}

#[test]
fn pages_of_selected_objects_state_whether_objects_follow() {
    for flags in [&[][..], &["--shards", "configmaps=4"]] {
        let directory = DataDir::new();
        let server = directory.start_with(flags);
        let mut client = server.connect();
        for number in 0..12 {
            let mut object = config_map(&format!("some-{number:02}"), "value");
            object["metadata"]["labels"] = json!({"turn": format!("{}", number % 3), "odd": ""});
            client.post(CONFIG_MAPS, &object).expect(201);
        }
        let names = |list: &serde_json::Value| -> Vec<String> {
            let items = list["items"].as_array().expect("items").iter();
            let names = items.map(|item| item["metadata"]["name"].as_str().expect("a name").to_owned());
            names.filter(|name| name.starts_with("some-")).collect()
        };
        let mut ask = |query: &str| client.get(&format!("{CONFIG_MAPS}?{query}")).expect(200);
        assert_eq!(names(&ask("labelSelector=turn%3D1")), ["some-01", "some-04", "some-07", "some-10"]);
        assert_eq!(names(&ask("labelSelector=turn+in+(0,9),odd%3D")), ["some-00", "some-03", "some-06", "some-09"]);
        assert_eq!(names(&ask("labelSelector=turn+notin+(0,1),odd")).len(), 4);
        assert_eq!(names(&ask("labelSelector=turn%3D9")).len(), 0);
        // Four objects match the selector. Others, which do not match, follow the last of them.
        for (limit, selected) in [(4, 4), (5, 4)] {
            let page = ask(&format!("labelSelector=turn%3D0&limit={limit}"));
            assert_eq!(names(&page).len(), selected);
            assert_eq!(page["metadata"]["continue"].is_string(), limit == 4, "{limit}");
            assert!(page["metadata"]["remainingItemCount"].is_null());
            if let Some(token) = page["metadata"]["continue"].as_str() {
                let rest = ask(&format!("labelSelector=turn%3D0&limit={limit}&continue={token}"));
                assert!(names(&rest).is_empty() && rest["metadata"]["continue"].is_null());
            }
        }
    }
}
