//! Phases of a scenario: their length and their load.

use serde::Deserialize;

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
