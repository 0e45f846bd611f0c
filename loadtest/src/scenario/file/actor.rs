//! Actors: kinds of clients, each with its options.

use serde::Deserialize;

use super::count;
use super::pace::Pace;
use crate::limits;

/// An actor.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Actor {
    /// Nodes that renew leases and update their status.
    Heartbeat(Heartbeat),
    /// Clients that list, watch, and remember the received objects.
    Reflector(Reflector),
    /// Changes of a set of objects, which watches can identify.
    Writer(Writer),
    /// Requests that read lists, discovery and other documents.
    Lister(Lister),
    /// Objects that are created, become ready and are deleted.
    Churn(Churn),
    /// Custom resource definitions, and objects of them.
    Definitions(Definitions),
}

/// Nodes that renew leases and update their status.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Heartbeat {
    /// The number of nodes.
    pub count: usize,
    /// Seconds between two renewals of a node's lease.
    #[serde(default = "lease_seconds")]
    pub lease_seconds: f64,
    /// Seconds between two status updates of a node.
    #[serde(default = "status_seconds")]
    pub status_seconds: f64,
}

fn lease_seconds() -> f64 {
    10.0
}

fn status_seconds() -> f64 {
    300.0
}

/// How a reflector gets the initial objects.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sync {
    /// By a list in pages, then a watch.
    #[default]
    Pages,
    /// By a list from the server's cache (`resourceVersion=0`), then a watch.
    Cached,
    /// By a watch with initial events (WatchList, KEP-3157).
    WatchList,
}

/// Clients that list and watch.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Reflector {
    /// The number of clients. Each has a watch for each path.
    pub count: usize,
    /// The paths to watch. `{namespace}` and `{node}` stand for names.
    pub paths: Vec<String>,
    /// How a client gets the initial objects.
    #[serde(default)]
    pub sync: Sync,
    /// The number of objects in a page.
    #[serde(default = "page")]
    pub page: usize,
    /// Whether all clients start together with the first phase, and not before.
    #[serde(default)]
    pub herd: bool,
    /// Whether each client has its own connection.
    #[serde(default)]
    pub own_connection: bool,
    /// How many bytes per second a client reads. 0 for no limit.
    #[serde(default)]
    pub read_bytes_per_second: u64,
}

fn page() -> usize {
    500
}

/// Kinds of objects that actors create and change.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Made {
    /// ConfigMaps with a text of configurable length.
    #[default]
    ConfigMap,
    /// Deployments that no controller acts on: they are paused and have no replicas.
    Deployment,
    /// Pods that are bound and become ready.
    Pod,
    /// Events.
    Event,
    /// A custom resource and its pod, which both become ready.
    Sandbox,
}

/// How objects are changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verb {
    /// By PUT.
    #[default]
    Put,
    /// By merge patches.
    Patch,
    /// By server-side apply.
    Apply,
}

/// Changes of a set of objects.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Writer {
    /// How often an object is changed.
    pub pace: Pace,
    /// The number of objects.
    pub objects: usize,
    /// The kind of the objects: ConfigMaps or Deployments.
    #[serde(default)]
    pub object: Made,
    /// The length of the text in each ConfigMap, in bytes.
    #[serde(default = "bytes")]
    pub bytes: usize,
    /// How the objects are changed.
    #[serde(default)]
    pub verb: Verb,
    /// The number of field managers that apply by turns.
    #[serde(default = "one")]
    pub managers: usize,
    /// The share of changes after which the object is read, to check that the change is visible.
    #[serde(default)]
    pub read_back: f64,
}

fn bytes() -> usize {
    256
}

fn one() -> usize {
    1
}

/// Requests that read.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Lister {
    /// How often requests are sent.
    pub pace: Pace,
    /// The paths to read, one after the other. `{namespace}` and `{node}` stand for names.
    pub paths: Vec<String>,
    /// The number of objects in a page; all pages are read. 0 for no pages.
    #[serde(default)]
    pub page: usize,
    /// The header `Accept`.
    #[serde(default)]
    pub accept: Option<String>,
}

/// Objects that are created, become ready and are deleted.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Churn {
    /// How often an object is created.
    pub pace: Pace,
    /// The kind of the objects.
    pub object: Made,
    /// Seconds from ready until the deletion. `None` if objects are not deleted.
    #[serde(default)]
    pub hold_seconds: Option<f64>,
}

/// Custom resource definitions, and objects of them.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Definitions {
    /// The number of definitions, which are created before the first phase.
    pub count: usize,
    /// How often objects are created.
    pub pace: Pace,
}

impl Actor {
    /// Multiplies counts and rates.
    pub(super) fn scale(&mut self, factor: f64) {
        match self {
            Self::Heartbeat(it) => count::scale(&mut it.count, factor),
            Self::Reflector(it) => count::scale(&mut it.count, factor),
            Self::Writer(it) => {
                count::scale(&mut it.objects, factor);
                it.pace.scale(factor);
            }
            Self::Lister(it) => it.pace.scale(factor),
            Self::Churn(it) => it.pace.scale(factor),
            Self::Definitions(it) => {
                count::scale(&mut it.count, factor);
                it.pace.scale(factor);
            }
        }
    }

    /// Checks the bounds of the actor. `Err` states the fault.
    pub(super) fn check(&self) -> Result<(), String> {
        match self {
            Self::Heartbeat(it) => {
                count::check("count", it.count)?;
                let spans = [it.lease_seconds, it.status_seconds];
                if spans.iter().any(|span| !(0.001..=limits::SCENARIO_SECONDS_MAX).contains(span)) {
                    return Err(format!("lease-seconds or status-seconds is out of bounds: {spans:?}"));
                }
                Ok(())
            }
            Self::Reflector(it) => {
                count::check("count", it.count)?;
                count::check("page", it.page)?;
                count::check("number of paths", it.paths.len())
            }
            Self::Writer(it) => {
                count::check("objects", it.objects)?;
                count::check("managers", it.managers)?;
                if it.bytes > limits::PAYLOAD_BYTES_MAX {
                    return Err(format!("bytes is {}, more than {}", it.bytes, limits::PAYLOAD_BYTES_MAX));
                }
                if !matches!(it.object, Made::ConfigMap | Made::Deployment) {
                    return Err("a writer changes objects of kind config-map or deployment".into());
                }
                it.pace.check()
            }
            Self::Lister(it) => {
                count::check("number of paths", it.paths.len())?;
                it.pace.check()
            }
            Self::Churn(it) => {
                if it.object == Made::Deployment {
                    return Err("churn needs objects of kind config-map, pod, event or sandbox".into());
                }
                it.pace.check()
            }
            Self::Definitions(it) => {
                count::check("count", it.count)?;
                it.pace.check()
            }
        }
    }
}
