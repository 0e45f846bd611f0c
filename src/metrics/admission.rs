//! Admission of writes, and the writes themselves.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dashmap::DashMap;
use flotilla_cluster::TableId;
use parking_lot::Mutex;

use super::Metrics;
use crate::limits;
use crate::prometheus::Histogram;
use crate::prometheus::families;
use crate::status::ApiResult;

/// The operation of a request on an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Creates the object.
    Create,
    /// Changes the object.
    Update,
    /// Deletes the object.
    Delete,
    /// Connects to something behind the object.
    Connect,
}

impl Operation {
    /// Returns its name in the API of admission.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }
}

/// A phase of admission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Plugins may change the object.
    Admit,
    /// Plugins only validate the object.
    Validate,
}

impl Phase {
    /// Both, in their order.
    pub const ALL: [Self; 2] = [Self::Admit, Self::Validate];

    const fn name(self) -> &'static str {
        match self {
            Self::Admit => "admit",
            Self::Validate => "validate",
        }
    }
}

/// The name of a plugin, or empty for a step; operation, phase, whether the write was refused.
type Labels = (&'static str, Operation, Phase, bool);

/// Handles by their labels. The number of handles is bounded, since the number of plugins is.
#[derive(Default)]
pub struct Admission {
    durations: DashMap<Labels, Arc<Histogram>>,
    writes: DashMap<(&'static str, TableId), Arc<Histogram>>,
    /// Combinations of labels with the names of policies, bindings and webhooks, which clients choose.
    named: Mutex<HashSet<String>>,
}

/// Labels whose values clients choose.
const CHOSEN: [&str; 3] = ["name", "policy", "policy_binding"];
/// The value of these labels above the bound.
const OTHERS: &str = "others";

impl Admission {
    /// Replaces the labels that clients choose by `others`, if this combination is new and there are `most` already.
    fn bound(&self, labels: &mut [(&'static str, &str)], most: usize) {
        let mut text = String::new();
        labels.iter().for_each(|(_, value)| text.extend([value, "\0"]));
        let mut named = self.named.lock();
        if named.len() < most {
            named.insert(text);
        } else if !named.contains(&text) {
            labels.iter_mut().filter(|(name, _)| CHOSEN.contains(name)).for_each(|(_, value)| *value = OTHERS);
        }
    }
}

impl Metrics {
    /// Returns labels with the names of policies or webhooks, in at most [`ADMISSION_SERIES`](limits::ADMISSION_SERIES)
    /// combinations.
    pub fn bounded<'l, const N: usize>(
        &self,
        mut labels: [(&'static str, &'l str); N],
    ) -> [(&'static str, &'l str); N] {
        self.admission.bound(&mut labels, limits::ADMISSION_SERIES);
        labels
    }

    /// Runs a plugin of admission, and measures it.
    pub fn by_plugin<T>(
        &self,
        plugin: &'static str,
        operation: Operation,
        phase: Phase,
        work: impl FnOnce() -> ApiResult<T>,
    ) -> ApiResult<T> {
        let began = Instant::now();
        let done = work();
        self.took_plugin(plugin, operation, phase, began.elapsed(), done.is_err());
        done
    }

    /// Records a run of a plugin of admission.
    pub fn took_plugin(
        &self,
        plugin: &'static str,
        operation: Operation,
        phase: Phase,
        took: Duration,
        is_refused: bool,
    ) {
        let labels = (plugin, operation, phase, is_refused);
        let took = took.as_nanos() as u64;
        self.admission.durations.entry(labels).or_insert_with(|| self.duration(labels)).observe(took);
    }

    /// Runs a step of admission, and measures it.
    pub fn by_step<T>(&self, operation: Operation, phase: Phase, work: impl FnOnce() -> ApiResult<T>) -> ApiResult<T> {
        self.by_plugin("", operation, phase, work)
    }

    /// Records a step of admission.
    pub fn took_step(&self, operation: Operation, phase: Phase, took: Duration, is_refused: bool) {
        self.took_plugin("", operation, phase, took, is_refused);
    }

    fn duration(&self, (plugin, operation, phase, rejected): Labels) -> Arc<Histogram> {
        let rejected = if rejected { "true" } else { "false" };
        let (operation, phase) = (("operation", operation.name()), ("type", phase.name()));
        let labels = [("name", plugin), operation, ("rejected", rejected), phase];
        match plugin {
            "" => self.meter().histogram(&families::ADMISSION_STEP_DURATION, &labels[1..]),
            _ => self.meter().histogram(&families::ADMISSION_CONTROLLER_DURATION, &labels),
        }
    }

    /// Records a write of the store: `create`, `update` or `delete`, and its table.
    pub fn stored(&self, operation: &'static str, table: TableId, took: Duration) {
        let histogram = self.admission.writes.entry((operation, table.clone())).or_insert_with(|| {
            let (group, resource) = table.as_str().split_once('/').unwrap_or(("", table.as_str()));
            let labels = [("group", group), ("operation", operation), ("resource", resource)];
            self.meter().histogram(&families::STORE_DURATION, &labels)
        });
        histogram.observe(took.as_nanos() as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_names_chosen_by_clients_is_bounded() {
        let admission = Admission::default();
        let seen = |name: &str| {
            let mut labels = [("name", name), ("operation", "CREATE")];
            admission.bound(&mut labels, 2);
            labels.map(|(_, value)| value.to_owned())
        };
        assert_eq!(["a", "b", "c", "a"].map(|name| seen(name)[0].clone()), ["a", "b", OTHERS, "a"]);
        assert_eq!(seen("c")[1], "CREATE");
    }
}
