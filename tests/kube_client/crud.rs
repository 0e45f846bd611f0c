//! Objects of several kinds, written and read as Rust types.

use std::time::{Duration, Instant};

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod, ServiceAccount};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt as _};
use serde_json::json;
use tokio::time::sleep;

use crate::support::{DataDir, PATIENCE};
use crate::{client, config_map, value};

#[tokio::test]
async fn objects_are_created_read_replaced_patched_and_deleted() {
    let directory = DataDir::new();
    let server = directory.start();
    let api: Api<ConfigMap> = Api::namespaced(client(&server).await, "default");
    let created = api.create(&PostParams::default(), &config_map("crud", "1")).await.expect("created");
    assert!(created.uid().is_some() && created.resource_version().is_some() && created.creation_timestamp().is_some());
    let mut read = api.get("crud").await.expect("read");
    assert_eq!(read, created);
    read.data.as_mut().expect("data").insert("value".to_owned(), "2".to_owned());
    let replaced = api.replace("crud", &PostParams::default(), &read).await.expect("replaced");
    assert_eq!((value(&replaced), replaced.uid()), ("2", created.uid()));
    assert_ne!(replaced.resource_version(), created.resource_version());
    let patch = Patch::Merge(json!({"data": {"value": "3"}, "metadata": {"labels": {"a": "b"}}}));
    let patched = api.patch("crud", &PatchParams::default(), &patch).await.expect("patched");
    assert_eq!((value(&patched), patched.labels()["a"].as_str()), ("3", "b"));
    let metadata = api.get_metadata("crud").await.expect("metadata");
    assert_eq!(metadata.metadata, patched.metadata);
    let deleted = api.delete("crud", &DeleteParams::default()).await.expect("deleted");
    assert!(deleted.right().expect("a status").is_success());
    assert_eq!(api.get_opt("crud").await.expect("an answer"), None);
}

#[tokio::test]
async fn defaults_are_seen_in_types() {
    let directory = DataDir::new();
    let server = directory.start();
    let client = client(&server).await;
    let namespace: Namespace = serde_json::from_value(json!({"metadata": {"name": "typed"}})).expect("a namespace");
    Api::all(client.clone()).create(&PostParams::default(), &namespace).await.expect("a namespace");
    let labels = json!({"app": "x"});
    let deployment: Deployment = serde_json::from_value(json!({"metadata": {"name": "d"}, "spec": {
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}},
    }}))
    .expect("a deployment");
    let api: Api<Deployment> = Api::namespaced(client.clone(), "typed");
    let spec = api.create(&PostParams::default(), &deployment).await.expect("created").spec.expect("a spec");
    assert_eq!((spec.replicas, spec.revision_history_limit), (Some(1), Some(10)));
    let three = Patch::Merge(json!({"spec": {"replicas": 3}}));
    let scale = api.patch_scale("d", &PatchParams::default(), &three).await.expect("scaled");
    assert_eq!(scale.spec.expect("a spec").replicas, Some(3));
    let mut pods = Api::<Pod>::namespaced(client.clone(), "typed").list(&ListParams::default()).await.expect("a list");
    assert!(pods.items.pop().is_none(), "no controller creates pods for deployments here");
    let accounts: Api<ServiceAccount> = Api::all(client);
    // A controller creates them.
    let deadline = Instant::now() + PATIENCE;
    loop {
        let found = accounts.list(&ListParams::default().fields("metadata.name=default")).await.expect("accounts");
        assert!(found.iter().all(|account| account.name_any() == "default"));
        if found.iter().count() > 0 {
            break;
        }
        assert!(Instant::now() < deadline, "no namespace has gotten its account");
        sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn lists_come_in_pages_of_one_revision() {
    let directory = DataDir::new();
    let server = directory.start();
    let api: Api<ConfigMap> = Api::namespaced(client(&server).await, "default");
    let names: Vec<String> = (0..25).map(|number| format!("page-{number:02}")).collect();
    for name in &names {
        let mut object = config_map(name, "1");
        object.labels_mut().insert("test".to_owned(), "pages".to_owned());
        api.create(&PostParams::default(), &object).await.expect("created");
    }
    let mut params = ListParams::default().labels("test=pages").limit(10);
    let (mut listed, mut revisions, mut sizes) = (Vec::new(), Vec::new(), Vec::new());
    loop {
        let page = api.list(&params).await.expect("a page");
        listed.extend(page.iter().map(|object| object.name_any()));
        sizes.push(page.items.len());
        revisions.push(page.metadata.resource_version.clone());
        let Some(token) = page.metadata.continue_.filter(|token| !token.is_empty()) else { break };
        params = params.continue_token(&token);
        // The pages still show objects that are deleted after the first page.
        if listed.len() == 10 {
            api.delete("page-15", &DeleteParams::default()).await.expect("deleted");
        }
    }
    assert_eq!((listed, sizes), (names, vec![10, 10, 5]));
    assert!(revisions.iter().all(|revision| revision.is_some() && *revision == revisions[0]));
}
