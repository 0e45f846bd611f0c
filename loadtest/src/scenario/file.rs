//! Reads scenarios: TOML files, and the changes that the command line makes to them.

mod actor;
mod count;
mod pace;
pub mod phase;

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::limits;

pub use actor::{Actor, Churn, Definitions, Heartbeat, Lister, Made, Reflector, Sync, Verb, Writer};
pub use pace::{Arrivals, Pace};
pub use phase::Phase;

/// The reason why a scenario cannot be used.
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
/// States the fault of the scenario or of the changes.
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

fn scale(scenario: &mut Scenario, factor: f64) {
    count::scale(&mut scenario.setup.pods, factor);
    count::scale(&mut scenario.setup.nodes, factor);
    scenario.actors.values_mut().for_each(|actor| actor.scale(factor));
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
            return bad(format!(
                "its phases take {seconds} s, not over 0 and up to {} s",
                limits::SCENARIO_SECONDS_MAX
            ));
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

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
