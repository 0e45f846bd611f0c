//! The parts that all test programs share: servers as child processes, and an HTTPS client.

use std::time::Duration;

mod backend;
#[allow(dead_code, reason = "not every test program runs it under another name")]
pub mod called;
mod client;
mod credentials;
pub mod frames;
#[allow(dead_code, reason = "not every test program chooses ports")]
pub mod ports;
mod server;
mod webhook;

pub use backend::{Backend, Exchange};
pub use client::{Answer, Connection, Watch, patiently};
pub use credentials::Credentials;
pub use server::{DataDir, Server};
pub use webhook::{Caller, Reply, Webhook};

/// How long tests wait for something that must happen. Even on a busy machine, it takes longer only if it hangs.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Returns the bound of a time that clients notice. Release builds on idle machines are held to `promised`. Other
/// builds are tested on busy machines, whose delays say nothing about the server.
#[allow(dead_code, reason = "not every test program measures times")]
pub const fn noticed(promised: Duration) -> Duration {
    if cfg!(debug_assertions) { PATIENCE } else { promised }
}

/// Returns a ConfigMap with one entry, `value`.
pub fn config_map(name: &str, value: &str) -> serde_json::Value {
    serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"value": value}})
}

/// The collection of ConfigMaps that the tests write to.
pub const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// Returns the path of an object in [`CONFIG_MAPS`].
pub fn config_map_path(name: &str) -> String {
    format!("{CONFIG_MAPS}/{name}")
}

/// Returns `metadata.resourceVersion` as a number.
pub fn revision(object: &serde_json::Value) -> u64 {
    let text = object["metadata"]["resourceVersion"].as_str().unwrap_or_default();
    text.parse().unwrap_or_else(|_| panic!("no resourceVersion in {object}"))
}
