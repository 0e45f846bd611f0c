//! Starting, being ready, and ending.

use crate::support::{CONFIG_MAPS, DataDir, config_map, config_map_path};

#[test]
fn starts_serves_and_ends_when_told() {
    let directory = DataDir::new();
    let server = directory.start();
    let mut administrator = server.connect();
    for path in ["/readyz", "/livez", "/healthz"] {
        let answer = administrator.get(path);
        assert_eq!((answer.status, &*answer.text()), (200, "ok"), "{path}");
    }
    let namespaces = administrator.get("/api/v1/namespaces").expect(200);
    let items = namespaces["items"].as_array().expect("items");
    let names: Vec<_> = items.iter().filter_map(|item| item["metadata"]["name"].as_str()).collect();
    assert_eq!(names, ["default", "kube-node-lease", "kube-public", "kube-system"]);
    administrator.post(CONFIG_MAPS, &config_map("kept", "1")).expect(201);

    let mut nobody = server.connect_anonymously();
    assert_eq!(nobody.get("/readyz").status, 200);
    let refused = nobody.get("/api/v1/namespaces").expect(403);
    assert_eq!(refused["reason"], "Forbidden");

    assert_eq!(server.terminate().code(), Some(0));
    let server = directory.start();
    let kept = server.connect().get(&config_map_path("kept")).expect(200);
    assert_eq!(kept["data"]["value"], "1");
}

#[test]
fn a_second_server_in_the_same_directory_is_refused() {
    let directory = DataDir::new();
    let server = directory.start();
    let refusal = directory.try_start().err().expect("a refusal");
    assert_eq!(refusal.code, Some(1));
    assert!(refusal.messages.contains("is in use by another process"), "{}", refusal.messages);
    // The first one is none the worse for it.
    server.connect().post(CONFIG_MAPS, &config_map("after", "1")).expect(201);
    assert_eq!(server.terminate().code(), Some(0));
}

#[test]
fn a_directory_keeps_its_shards_whatever_the_flags_say() {
    let directory = DataDir::new();
    let flags = ["--shards", "configmaps=4,leases=2"];
    let server = directory.start_with(&flags);
    for number in 0..20 {
        server.connect().post(CONFIG_MAPS, &config_map(&format!("kept-{number}"), "1")).expect(201);
    }
    assert_eq!(server.terminate().code(), Some(0));
    for other in [["--shards", "configmaps=8,leases=2"].as_slice(), &[]] {
        // What the cluster was founded with counts.
        let server = directory.start_with(other);
        let cluster = server.connect().get("/flotilla/v1/cluster").expect(200);
        assert_eq!(cluster["shards"][0]["resource"], "configmaps", "{cluster}");
        assert_eq!(cluster["shards"][0]["groups"].as_array().map(Vec::len), Some(4), "{cluster}");
        assert_eq!(server.terminate().code(), Some(0));
    }
    let refusal = directory.try_start_with(&["--shards", "configmaps=0"]).err().expect("a refusal");
    assert_eq!(refusal.code, Some(2));
    let server = directory.start_with(&flags);
    let list = server.connect().get(&format!("{CONFIG_MAPS}?limit=500")).expect(200);
    let kept = list["items"].as_array().expect("items").iter().filter(|item| item["data"]["value"] == "1");
    assert_eq!(kept.count(), 20);
}
