//! The pace of an actor: how often it acts, and how its actions are distributed over time.

use serde::Deserialize;

use super::count;
use crate::limits;

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

impl Pace {
    /// Multiplies the rate, or the number of clients, and the largest number of actions.
    pub(super) fn scale(&mut self, factor: f64) {
        self.rate = self.rate.map(|rate| rate * factor);
        if let Some(clients) = &mut self.clients {
            count::scale(clients, factor);
        }
        self.total = self.total.map(|total| ((total as f64 * factor).ceil() as u64).max(1));
    }

    pub(super) fn check(&self) -> Result<(), String> {
        match (self.rate, self.clients) {
            (Some(rate), None) if rate > 0.0 && rate <= limits::RATE_MAX => Ok(()),
            (None, Some(clients)) => count::check("clients", clients),
            (Some(rate), None) => Err(format!("rate is {rate}, not over 0 and up to {}", limits::RATE_MAX)),
            _ => Err("a pace needs either rate or clients".into()),
        }
    }
}
