//! Start, readiness and end of a server.

use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::{CONFIG_MAPS, DataDir, PATIENCE, Server, config_map, config_map_path};

#[test]
fn a_server_starts_serves_and_ends_on_sigterm() {
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
    // The first server is not affected.
    server.connect().post(CONFIG_MAPS, &config_map("after", "1")).expect(201);
    assert_eq!(server.terminate().code(), Some(0));
}

#[test]
fn a_directory_keeps_its_shards_even_if_flags_differ() {
    let directory = DataDir::new();
    let flags = ["--shards", "configmaps=4,leases=2"];
    let server = directory.start_with(&flags);
    for number in 0..20 {
        server.connect().post(CONFIG_MAPS, &config_map(&format!("kept-{number}"), "1")).expect(201);
    }
    assert_eq!(server.terminate().code(), Some(0));
    for other in [["--shards", "configmaps=8,leases=2"].as_slice(), &[]] {
        // The directory's own division counts, not the flags.
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

#[test]
fn a_server_has_a_lease() {
    let directory = DataDir::new();
    let path = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";
    // The server writes its lease when it is ready, but does not wait for that before it reports readiness.
    let known = |server: &Server, but: &str| {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let leases = server.connect().get(path).expect(200)["items"].clone();
            if leases[0]["spec"]["holderIdentity"].as_str().is_some_and(|holder| holder != but) {
                assert_eq!(leases.as_array().map(Vec::len), Some(1), "{leases}");
                return leases[0].clone();
            }
            assert!(Instant::now() < deadline, "{leases}");
            sleep(Duration::from_millis(20));
        }
    };
    let server = directory.start_with(&["--embedded-controllers=false"]);
    let lease = known(&server, "");
    let name = lease["metadata"]["name"].as_str().expect("a name").to_owned();
    let holder = lease["spec"]["holderIdentity"].as_str().expect("a holder");
    assert!(name.starts_with("apiserver-") && holder.starts_with(&format!("{name}_")), "{lease}");
    assert_eq!(lease["metadata"]["labels"]["apiserver.kubernetes.io/identity"], "kube-apiserver");
    assert_eq!(lease["metadata"]["managedFields"][0]["manager"], "kube-apiserver");
    assert_eq!(lease["spec"]["leaseDurationSeconds"], 3600);
    // The lease of a server that ended long ago.
    let mut gone = lease.clone();
    gone["metadata"] = json!({"name": "apiserver-gone", "labels": lease["metadata"]["labels"]});
    gone["spec"]["renewTime"] = json!("2020-01-01T00:00:00.000000Z");
    server.connect().post(path, &gone).expect(201);
    assert_eq!(server.terminate().code(), Some(0));

    // The lease belongs to the server, not to the process.
    let server = directory.start();
    let deadline = Instant::now() + PATIENCE;
    while server.connect().get(&format!("{path}/apiserver-gone")).status != 404 {
        assert!(Instant::now() < deadline, "the lease of the ended server is not deleted");
        sleep(Duration::from_millis(20));
    }
    assert_eq!(known(&server, holder)["metadata"]["uid"], lease["metadata"]["uid"]);
}
