//! Refusals as typed `Status`, and conflicts of server-side apply.

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Error, ResourceExt as _};
use serde_json::json;

use crate::support::DataDir;
use crate::{client, config_map, value};

/// Returns the `Status` of a refused request.
fn refusal<T: std::fmt::Debug>(result: Result<T, Error>) -> kube::core::Status {
    match result.expect_err("a refusal") {
        Error::Api(status) => *status,
        other => panic!("no status: {other:?}"),
    }
}

#[tokio::test]
async fn refusals_are_statuses() {
    let directory = DataDir::new();
    let server = directory.start();
    let client = client(&server).await;
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let status = refusal(api.get("absent").await);
    assert!(status.is_not_found(), "{status:?}");
    let details = status.details.expect("details");
    assert_eq!((status.code, &*details.name, &*details.kind), (404, "absent", "configmaps"));
    let created = api.create(&PostParams::default(), &config_map("one", "1")).await.expect("created");
    let status = refusal(api.create(&PostParams::default(), &config_map("one", "1")).await);
    assert!(status.is_already_exists(), "{status:?}");
    api.replace("one", &PostParams::default(), &config_map("one", "2")).await.expect("replaced");
    let status = refusal(api.replace("one", &PostParams::default(), &created).await);
    assert!(status.is_conflict() && status.code == 409, "{status:?}");
    let status = refusal(api.list(&ListParams::default().at("1").matching(kube::api::VersionMatch::Exact)).await);
    assert_eq!((status.code, &*status.reason), (410, "Expired"));
    let pods: Api<Pod> = Api::namespaced(client.clone(), "default");
    let pod = serde_json::from_value(json!({"metadata": {"name": "p"}, "spec": {"containers": []}})).expect("a pod");
    let status = refusal(pods.create(&PostParams::default(), &pod).await);
    assert!(status.is_invalid() && status.code == 422, "{status:?}");
    let causes = status.details.expect("details").causes;
    assert!(causes.iter().any(|cause| cause.field == "spec.containers"), "{causes:?}");
    let elsewhere: Api<ConfigMap> = Api::namespaced(client, "absent");
    let status = refusal(elsewhere.create(&PostParams::default(), &config_map("one", "1")).await);
    assert!(status.is_not_found() && status.message.contains("\"absent\""), "{status:?}");
}

#[tokio::test]
async fn an_apply_of_owned_fields_conflicts_unless_forced() {
    let directory = DataDir::new();
    let server = directory.start();
    let api: Api<ConfigMap> = Api::namespaced(client(&server).await, "default");
    let apply = |manager: &str| PatchParams::apply(manager);
    let mut wanted = config_map("applied", "1");
    let applied = api.patch("applied", &apply("first"), &Patch::Apply(&wanted)).await.expect("applied");
    let owners: Vec<_> = applied.managed_fields().iter().filter_map(|owner| owner.manager.as_deref()).collect();
    assert_eq!((value(&applied), owners), ("1", vec!["first"]));
    let again = api.patch("applied", &apply("first"), &Patch::Apply(&wanted)).await.expect("applied again");
    assert_eq!(again.resource_version(), applied.resource_version());
    wanted.data.as_mut().expect("data").insert("value".to_owned(), "2".to_owned());
    let status = refusal(api.patch("applied", &apply("second"), &Patch::Apply(&wanted)).await);
    assert!(status.is_conflict(), "{status:?}");
    let causes = status.details.expect("details").causes;
    assert_eq!((&*causes[0].reason, &*causes[0].field), ("FieldManagerConflict", ".data.value"));
    let forced = api.patch("applied", &apply("second").force(), &Patch::Apply(&wanted)).await.expect("forced");
    assert_eq!((value(&forced), forced.managed_fields().len()), ("2", 1));
}
