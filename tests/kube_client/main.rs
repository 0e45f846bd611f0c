//! Tests with `kube`, the Rust client of Kubernetes: typed objects, pages, apply, errors, and watches that resume after
//! the server was killed.
//!
//! `cargo test --workspace --test kube_client`
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests and their stand-ins may block")]

mod crud;
mod custom;
mod errors;
mod restart;
#[path = "../support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "other test programs use the rest")]
mod support;

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

use support::Server;

/// A client with the administrator's credentials.
async fn client(server: &Server) -> Client {
    let kubeconfig = Kubeconfig::read_from(server.data().join("admin.kubeconfig")).expect("a kubeconfig");
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    Client::try_from(config.expect("a configuration")).expect("a client")
}

fn config_map(name: &str, value: &str) -> ConfigMap {
    let mut object =
        ConfigMap { data: Some(BTreeMap::from([("value".to_owned(), value.to_owned())])), ..ConfigMap::default() };
    object.metadata.name = Some(name.to_owned());
    object
}

/// Returns the value that [`config_map`] put into an object.
fn value(object: &ConfigMap) -> &str {
    object.data.as_ref().and_then(|data| data.get("value")).map_or("", |value| value)
}
