//! Reads scenarios: TOML files, and the changes that the command line makes to them.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::limits;

/// Why a scenario cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Neither a file nor a scenario of the harness has this name.
    #[error("no scenario {0:?}: `loadtest scenarios` lists the known ones, paths of others end in .toml")]
    Unknown(String),
    /// The file cannot be read.
    #[error("cannot read {0}: {1}")]
    Read(String, #[source] std::io::Error),
    /// The file is not TOML, or contains an unknown field or value.
    #[error("invalid scenario: {0}")]
    Toml(#[from] toml::de::Error),
    /// `--set` has no `=`, or its path leads through a value that is not a table.
    #[error("--set {0:?} is not PATH=VALUE with a path of tables, as in actors.nodes.count=10")]
    Set(String),
    /// A number is out of its bounds.
    #[error("invalid scenario: {0}")]
    Bounds(String),
}

/// A scenario: which clients send which requests, how many and for how long.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Scenario {
    /// The name, which results contain.
    pub name: String,
    /// One sentence for lists and reports.
    pub about: String,
    /// The number of connections that requests share. Watches have their own.
    #[serde(default = "connections")]
    pub connections: usize,
    /// Seconds after the last phase until requests in progress are abandoned.
    #[serde(default = "drain_seconds")]
    pub drain_seconds: f64,
    /// Objects that exist before the first phase.
    #[serde(default)]
    pub setup: Setup,
    /// The phases, one after the other.
    pub phases: Vec<Phase>,
    /// The actors by name.
    pub actors: BTreeMap<String, Actor>,
}

fn connections() -> usize {
    8
}

fn drain_seconds() -> f64 {
    30.0
}

/// Objects that exist before the first phase.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Setup {
    /// The number of pods, each of about 11 KB.
    #[serde(default)]
    pub pods: usize,
    /// The number of nodes.
    #[serde(default)]
    pub nodes: usize,
}

/// A period in which the load is steady, or changes evenly.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Phase {
    /// The name of the phase.
    pub name: String,
    /// The length of the phase in seconds.
    pub seconds: f64,
    /// The factor for the rates of actors: a number, or one at the beginning and one at the end.
    #[serde(default)]
    pub load: Factor,
    /// Whether totals leave its requests out, for instance while a server warms up.
    #[serde(default)]
    pub warmup: bool,
    /// Whether all watches lose their connections when the phase begins.
    #[serde(default)]
    pub reconnect: bool,
}

/// The load factor of a phase.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(untagged)]
pub enum Factor {
    /// The same during the whole phase.
    Steady(f64),
    /// Changes evenly from the first to the second value.
    Ramp([f64; 2]),
}

impl Default for Factor {
    fn default() -> Self {
        Self::Steady(1.0)
    }
}

impl Factor {
    /// Returns the factor at the beginning and at the end.
    pub fn ends(self) -> [f64; 2] {
        match self {
            Self::Steady(factor) => [factor; 2],
            Self::Ramp(ends) => ends,
        }
    }
}

/// How often an actor acts. Either `rate` or `clients` is set.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Pace {
    /// Actions per second, whether earlier ones have been answered or not.
    pub rate: Option<f64>,
    /// The number of clients. Each acts again as soon as its previous action is complete.
    pub clients: Option<usize>,
    /// How the actions of a rate are distributed over time.
    #[serde(default)]
    pub arrivals: Arrivals,
    /// The largest number of actions.
    pub total: Option<u64>,
}

/// How the actions of a rate are distributed over time.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arrivals {
    /// At random, like those of independent clients (a Poisson process).
    #[default]
    Random,
    /// At equal intervals.
    Even,
}

/// An actor.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Actor {
    /// Nodes that renew leases and update their status.
    Heartbeat(Heartbeat),
    /// Clients that list, watch, and remember what they received.
    Reflector(Reflector),
    /// Changes of a set of objects, which watches can identify.
    Writer(Writer),
    /// Requests that read lists, discovery and other documents.
    Lister(Lister),
    /// Objects that are created, become ready and are deleted.
    Life(Life),
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
pub struct Life {
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

/// Changes that the command line makes to a scenario.
#[derive(Debug, Clone, Default)]
pub struct Changes {
    /// Values in the form `PATH=VALUE`, which are applied first.
    pub set: Vec<String>,
    /// The factor for counts and rates.
    pub scale: Option<f64>,
    /// The length of all phases together, in seconds.
    pub seconds: Option<f64>,
}

/// Reads a scenario, applies the changes, and checks all bounds.
///
/// # Errors
/// States what is wrong with the scenario or the changes.
pub fn parse(text: &str, changes: &Changes) -> Result<Scenario, Error> {
    let mut table: toml::Value = toml::from_str(text)?;
    for set in &changes.set {
        replace(&mut table, set)?;
    }
    let mut scenario: Scenario = table.try_into()?;
    if let Some(factor) = changes.scale {
        scale(&mut scenario, factor);
    }
    if let Some(seconds) = changes.seconds {
        let factor = seconds / scenario.seconds().max(f64::MIN_POSITIVE);
        scenario.phases.iter_mut().for_each(|phase| phase.seconds *= factor);
    }
    scenario.check()?;
    Ok(scenario)
}

fn replace(table: &mut toml::Value, set: &str) -> Result<(), Error> {
    let wrong = || Error::Set(set.into());
    let (path, value) = set.split_once('=').ok_or_else(wrong)?;
    let value = toml::from_str::<toml::Table>(&format!("value = {value}"))
        .ok()
        .and_then(|mut table| table.remove("value"))
        .unwrap_or_else(|| toml::Value::String(value.into()));
    let (parents, last) = path.rsplit_once('.').unwrap_or(("", path));
    let mut at = table;
    for key in parents.split('.').filter(|key| !key.is_empty()) {
        at = match at {
            toml::Value::Array(items) => key.parse().ok().and_then(|index: usize| items.get_mut(index)),
            other => other.get_mut(key),
        }
        .ok_or_else(wrong)?;
    }
    at.as_table_mut().ok_or_else(wrong)?.insert(last.into(), value);
    Ok(())
}

/// Scales a count. A count above zero stays above zero.
fn scaled(count: &mut usize, factor: f64) {
    *count = ((*count as f64 * factor).ceil() as usize).max(usize::from(*count > 0));
}

fn scale(scenario: &mut Scenario, factor: f64) {
    let pace = |pace: &mut Pace| {
        pace.rate = pace.rate.map(|rate| rate * factor);
        if let Some(clients) = &mut pace.clients {
            scaled(clients, factor);
        }
        pace.total = pace.total.map(|total| ((total as f64 * factor).ceil() as u64).max(1));
    };
    scaled(&mut scenario.setup.pods, factor);
    scaled(&mut scenario.setup.nodes, factor);
    for actor in scenario.actors.values_mut() {
        match actor {
            Actor::Heartbeat(it) => scaled(&mut it.count, factor),
            Actor::Reflector(it) => scaled(&mut it.count, factor),
            Actor::Writer(it) => {
                scaled(&mut it.objects, factor);
                pace(&mut it.pace);
            }
            Actor::Lister(it) => pace(&mut it.pace),
            Actor::Life(it) => pace(&mut it.pace),
            Actor::Definitions(it) => {
                scaled(&mut it.count, factor);
                pace(&mut it.pace);
            }
        }
    }
}

impl Scenario {
    /// Returns the length of all phases together, in seconds.
    pub fn seconds(&self) -> f64 {
        self.phases.iter().fold(0.0, |sum, phase| sum + phase.seconds)
    }

    fn check(&self) -> Result<(), Error> {
        let bad = |what: String| Err(Error::Bounds(what));
        let seconds = self.seconds();
        if !(seconds > 0.0 && seconds <= limits::SCENARIO_SECONDS_MAX) {
            return bad(format!("its phases are {seconds} s, which is not up to {} s", limits::SCENARIO_SECONDS_MAX));
        }
        if !(0.0..=limits::SCENARIO_SECONDS_MAX).contains(&self.drain_seconds) {
            return bad(format!("drain-seconds is {}", self.drain_seconds));
        }
        if !(1..=limits::SCENARIO_CONNECTIONS_MAX).contains(&self.connections) {
            return bad(format!("connections is {}", self.connections));
        }
        for phase in &self.phases {
            if phase.seconds.is_nan() || phase.seconds < 0.0 {
                return bad(format!("phase {} is {} s", phase.name, phase.seconds));
            }
            if phase.load.ends().iter().any(|factor| !(0.0..=limits::LOAD_FACTOR_MAX).contains(factor)) {
                return bad(format!("the load of phase {} is not from 0 to {}", phase.name, limits::LOAD_FACTOR_MAX));
            }
        }
        let counts = [("setup.pods", self.setup.pods), ("setup.nodes", self.setup.nodes)];
        if let Some((what, count)) = counts.iter().find(|(_, count)| *count > limits::SCENARIO_COUNT_MAX) {
            return bad(format!("{what} is {count}"));
        }
        self.actors.iter().try_for_each(|(name, actor)| actor.check().or_else(|what| bad(format!("{name}: {what}"))))
    }
}

impl Actor {
    fn check(&self) -> Result<(), String> {
        match self {
            Self::Heartbeat(it) => {
                counted("count", it.count)?;
                let spans = [it.lease_seconds, it.status_seconds];
                if spans.iter().any(|span| !(0.001..=limits::SCENARIO_SECONDS_MAX).contains(span)) {
                    return Err(format!("lease-seconds or status-seconds is out of bounds: {spans:?}"));
                }
                Ok(())
            }
            Self::Reflector(it) => {
                counted("count", it.count)?;
                counted("page", it.page)?;
                counted("number of paths", it.paths.len())
            }
            Self::Writer(it) => {
                counted("objects", it.objects)?;
                counted("managers", it.managers)?;
                if it.bytes > limits::PAYLOAD_BYTES_MAX {
                    return Err(format!("bytes is {}, more than {}", it.bytes, limits::PAYLOAD_BYTES_MAX));
                }
                if !matches!(it.object, Made::ConfigMap | Made::Deployment) {
                    return Err("a writer changes objects of kind config-map or deployment".into());
                }
                it.pace.check()
            }
            Self::Lister(it) => {
                counted("number of paths", it.paths.len())?;
                it.pace.check()
            }
            Self::Life(it) => {
                if it.object == Made::Deployment {
                    return Err("a life is that of a config-map, a pod, an event or a sandbox".into());
                }
                it.pace.check()
            }
            Self::Definitions(it) => {
                counted("count", it.count)?;
                it.pace.check()
            }
        }
    }
}

fn counted(what: &str, count: usize) -> Result<(), String> {
    if (1..=limits::SCENARIO_COUNT_MAX).contains(&count) {
        return Ok(());
    }
    Err(format!("{what} is {count}, not from 1 to {}", limits::SCENARIO_COUNT_MAX))
}

impl Pace {
    fn check(&self) -> Result<(), String> {
        match (self.rate, self.clients) {
            (Some(rate), None) if rate > 0.0 && rate <= limits::RATE_MAX => Ok(()),
            (None, Some(clients)) => counted("clients", clients),
            (Some(rate), None) => Err(format!("rate is {rate}, not up to {}", limits::RATE_MAX)),
            _ => Err("pace has one of rate and clients".into()),
        }
    }
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
