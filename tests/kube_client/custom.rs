//! A custom resource as a Rust type: defined, and watched while the server is killed and started again.

use std::sync::Arc;
use std::time::Instant;

use futures_util::{Stream, StreamExt as _};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::{Metadata, NamespaceResourceScope, Resource};
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::runtime::wait::{await_condition, conditions};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, ResourceExt as _};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::client;
use crate::restart::kill_and_restart;
use crate::support::{DataDir, PATIENCE, ports};

const NAME: &str = "widgets.example.com";

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Widget {
    api_version: String,
    kind: String,
    metadata: ObjectMeta,
    spec: WidgetSpec,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct WidgetSpec {
    size: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    color: Option<String>,
}

impl Resource for Widget {
    const API_VERSION: &'static str = "example.com/v1";
    const GROUP: &'static str = "example.com";
    const KIND: &'static str = "Widget";
    const VERSION: &'static str = "v1";
    const URL_PATH_SEGMENT: &'static str = "widgets";
    type Scope = NamespaceResourceScope;
}

impl Metadata for Widget {
    type Ty = ObjectMeta;

    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn metadata_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

fn definition() -> CustomResourceDefinition {
    let spec = json!({"type": "object", "required": ["size"], "properties": {
        "size": {"type": "integer", "minimum": 1}, "color": {"type": "string", "default": "blue"},
    }});
    let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}});
    let definition = json!({"metadata": {"name": NAME}, "spec": {
        "group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}],
    }});
    serde_json::from_value(definition).expect("a definition")
}

fn widget(name: &str, size: u32) -> Widget {
    let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
    let (api_version, kind) = (Widget::API_VERSION.to_owned(), Widget::KIND.to_owned());
    Widget { api_version, kind, metadata, spec: WidgetSpec { size, color: None } }
}

/// Returns the next object that was added or changed, and skips other events and errors.
async fn next(events: &mut (impl Stream<Item = watcher::Result<watcher::Event<Widget>>> + Unpin)) -> Widget {
    loop {
        match tokio::time::timeout(PATIENCE, events.next()).await.expect("an event in time").expect("no end") {
            Ok(watcher::Event::Apply(widget) | watcher::Event::InitApply(widget)) => return widget,
            Ok(watcher::Event::Delete(widget)) => panic!("an unexpected deletion of {widget:?}"),
            Ok(watcher::Event::Init | watcher::Event::InitDone) | Err(_) => {}
        }
    }
}

#[tokio::test]
async fn a_custom_type_is_written_and_watched_over_a_kill() {
    let directory = Arc::new(DataDir::new());
    let server = directory.start_on(ports::free(1)[0]);
    let (address, client) = (server.credentials().address, client(&server).await);
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    definitions.create(&PostParams::default(), &definition()).await.expect("created");
    let established = await_condition(definitions, NAME, conditions::is_crd_established());
    tokio::time::timeout(PATIENCE, established).await.expect("in time").expect("established");

    let api: Api<Widget> = Api::namespaced(client, "default");
    let deadline = Instant::now() + PATIENCE;
    while let Err(error) = api.list(&ListParams::default()).await {
        let passes = matches!(&error, kube::Error::Api(status) if status.code == 503);
        assert!(passes && Instant::now() < deadline, "{error}");
    }
    let mut events = std::pin::pin!(watcher(api.clone(), watcher::Config::default()).default_backoff());
    let first = api.create(&PostParams::default(), &widget("first", 1)).await.expect("created");
    assert_eq!(first.spec, WidgetSpec { size: 1, color: Some("blue".to_owned()) });
    assert_eq!(next(&mut events).await, first);
    let refused = api.create(&PostParams::default(), &widget("none", 0)).await.expect_err("not valid");
    assert!(matches!(&refused, kube::Error::Api(status) if status.code == 422), "{refused:?}");

    let server = kill_and_restart(&directory, server, address).await;
    assert_eq!(api.get("first").await.expect("served at once"), first);
    let patch = Patch::Merge(json!({"spec": {"size": 2}}));
    let second = api.patch("first", &PatchParams::default(), &patch).await.expect("patched");
    assert_eq!((second.spec.size, second.uid()), (2, first.uid()));
    // The watch resumes: earlier events do not come again.
    assert_eq!(next(&mut events).await, second);
    drop(server);
}
