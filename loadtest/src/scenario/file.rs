//! Scenarios as they are written down: TOML files, and what the command line changes about them.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::limits;

/// Why a scenario cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No file has this name, and no scenario that comes with the harness.
    #[error("no scenario {0:?}: `loadtest scenarios` lists those that come along, others are paths that end in .toml")]
    Unknown(String),
    /// The file cannot be read.
    #[error("cannot read {0}: {1}")]
    Read(String, #[source] std::io::Error),
    /// It is no TOML, or names what does not exist.
    #[error("the scenario is not understood: {0}")]
    Toml(#[from] toml::de::Error),
    /// `--set` has no `=`, or leads into something that is no table.
    #[error("--set {0:?} is not PATH=VALUE with a path of tables, as in actors.nodes.count=10")]
    Set(String),
    /// A number is out of its bounds.
    #[error("the scenario cannot be run: {0}")]
    Bounds(String),
}

/// What is asked of a server, by whom, how much and how long.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Scenario {
    /// Its name, which results bear.
    pub name: String,
    /// One sentence for lists and reports.
    pub about: String,
    /// Connections that requests share; watches have their own.
    #[serde(default = "connections")]
    pub connections: usize,
    /// Seconds after the phases until what is still under way is given up.
    #[serde(default = "drain_seconds")]
    pub drain_seconds: f64,
    /// What is there before the first phase.
    #[serde(default)]
    pub setup: Setup,
    /// What happens one after the other.
    pub phases: Vec<Phase>,
    /// Who does something, by name.
    pub actors: BTreeMap<String, Actor>,
}

fn connections() -> usize {
    8
}

fn drain_seconds() -> f64 {
    30.0
}

/// What is there before the first phase.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Setup {
    /// Pods of some 11 KB.
    #[serde(default)]
    pub pods: usize,
    /// Nodes.
    #[serde(default)]
    pub nodes: usize,
}

/// A stretch of time in which the load is steady, or rises or falls evenly.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Phase {
    /// Its name.
    pub name: String,
    /// How long it is.
    pub seconds: f64,
    /// By what the rates of actors are multiplied: a number, or one at the beginning and one at the end.
    #[serde(default)]
    pub load: Factor,
    /// Whether its requests are left out of totals, as those of a server that warms up.
    #[serde(default)]
    pub warmup: bool,
    /// Whether all watches lose their connections when it begins.
    #[serde(default)]
    pub reconnect: bool,
}

/// The load of a phase.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(untagged)]
pub enum Factor {
    /// The same all the time.
    Steady(f64),
    /// From one to another.
    Ramp([f64; 2]),
}

impl Default for Factor {
    fn default() -> Self {
        Self::Steady(1.0)
    }
}

impl Factor {
    /// At the beginning and at the end.
    pub fn ends(self) -> [f64; 2] {
        match self {
            Self::Steady(factor) => [factor; 2],
            Self::Ramp(ends) => ends,
        }
    }
}

/// How often an actor does what it does. One of `rate` and `clients` is given.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Pace {
    /// Times a second, whether answers come or not.
    pub rate: Option<f64>,
    /// How many do it, each as soon as it is done with the time before.
    pub clients: Option<usize>,
    /// When the times of a rate are.
    #[serde(default)]
    pub arrivals: Arrivals,
    /// How often in all, at most.
    pub total: Option<u64>,
}

/// When requests of a rate are due.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arrivals {
    /// At random, as those of clients that know nothing of each other (a Poisson process).
    #[default]
    Random,
    /// At even distances.
    Even,
}

/// Who does something.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Actor {
    /// Nodes that renew leases and tell their status.
    Heartbeat(Heartbeat),
    /// Clients that list and watch, and keep what they were told.
    Reflector(Reflector),
    /// Changes of a set of objects, which can be recognised in watches.
    Writer(Writer),
    /// Requests that read: lists, discovery, documents.
    Lister(Lister),
    /// Objects that are made, go through their life, and are deleted.
    Life(Life),
    /// Definitions of custom resources.
    Definitions(Definitions),
}

/// Nodes that renew leases and tell their status.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Heartbeat {
    /// How many nodes.
    pub count: usize,
    /// Seconds between two renewals of a node.
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

/// How a reflector learns what there is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sync {
    /// By a list in pages, then a watch.
    #[default]
    Pages,
    /// By a list from the cache of the server (`resourceVersion=0`), then a watch.
    Cached,
    /// By a watch that begins with everything (WatchList, KEP-3157).
    WatchList,
}

/// Clients that list and watch.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Reflector {
    /// How many clients; each has a watch for each path.
    pub count: usize,
    /// What is watched. `{namespace}` and `{node}` stand for names.
    pub paths: Vec<String>,
    /// How a client learns what there is.
    #[serde(default)]
    pub sync: Sync,
    /// Objects of a page.
    #[serde(default = "page")]
    pub page: usize,
    /// Whether all begin at once when the first phase does, and not before it.
    #[serde(default)]
    pub herd: bool,
    /// Whether each client has a connection of its own.
    #[serde(default)]
    pub own_connection: bool,
    /// How fast a client reads; 0 for as fast as it can.
    #[serde(default)]
    pub read_bytes_per_second: u64,
}

fn page() -> usize {
    500
}

/// Kinds of objects that are written and made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Made {
    /// ConfigMaps, with a text of the length that is asked for.
    #[default]
    ConfigMap,
    /// Deployments; nobody acts on them (they are paused and have no replicas).
    Deployment,
    /// Pods, which are bound and become ready.
    Pod,
    /// Events.
    Event,
    /// A custom resource and a pod of it; both become ready.
    Sandbox,
}

/// How objects are changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verb {
    /// By replacing them.
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
    /// How often one of them is changed.
    pub pace: Pace,
    /// How many objects there are.
    pub objects: usize,
    /// What they are: ConfigMaps or Deployments.
    #[serde(default)]
    pub object: Made,
    /// Bytes of text in each ConfigMap.
    #[serde(default = "bytes")]
    pub bytes: usize,
    /// How they are changed.
    #[serde(default)]
    pub verb: Verb,
    /// How many managers apply by turns.
    #[serde(default = "one")]
    pub managers: usize,
    /// The share of changes after which the object is read, to see whether the change is there.
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
    /// How often.
    pub pace: Pace,
    /// What, one after the other. `{namespace}` and `{node}` stand for names.
    pub paths: Vec<String>,
    /// Objects of a page; all pages are read. 0 for no pages.
    #[serde(default)]
    pub page: usize,
    /// Media types that are asked for.
    #[serde(default)]
    pub accept: Option<String>,
}

/// Objects that are made, go through their life, and are deleted.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Life {
    /// How often one begins.
    pub pace: Pace,
    /// What they are.
    pub object: Made,
    /// Seconds from ready to deleted; never when it is not given.
    #[serde(default)]
    pub hold_seconds: Option<f64>,
}

/// Definitions of custom resources.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Definitions {
    /// How many are made before the first phase.
    pub count: usize,
    /// How often objects of them are made.
    pub pace: Pace,
}

/// What the command line changes.
#[derive(Debug, Clone, Default)]
pub struct Changes {
    /// `PATH=VALUE`, applied first.
    pub set: Vec<String>,
    /// By what counts and rates are multiplied.
    pub scale: Option<f64>,
    /// How long all phases are together.
    pub seconds: Option<f64>,
}

/// Reads a scenario.
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

/// At least one of each, unless there is none.
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
    /// How long all phases are together.
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
