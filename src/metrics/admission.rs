//! Admission of writes, and the writes themselves.

use std::sync::Arc;
use std::time::{Duration, Instant};

use dashmap::DashMap;
use flotilla_cluster::TableId;

use super::Metrics;
use super::families;
use super::histogram::Histogram;
use crate::status::ApiResult;

/// What a request does to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// It is new.
    Create,
    /// It changes.
    Update,
    /// It goes.
    Delete,
    /// It is the way to something else.
    Connect,
}

impl Operation {
    /// Its name, as admission has it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }
}

/// When admission looks at a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Phase {
    /// While it can still be changed.
    Admit,
    /// When it is finished.
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

/// A plugin or, without a name, a step; operation, phase, whether it refused.
type Labels = (&'static str, Operation, Phase, bool);

/// Handles by their labels, of which there are as many as plugins.
#[derive(Default)]
pub struct Admission {
    durations: DashMap<Labels, Arc<Histogram>>,
    writes: DashMap<(&'static str, TableId), Arc<Histogram>>,
}

impl Metrics {
    /// Does the work of a plugin of admission, and measures it.
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

    /// Measures what a plugin did of admission.
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

    /// Does a step of admission, and measures it.
    pub fn by_step<T>(&self, operation: Operation, phase: Phase, work: impl FnOnce() -> ApiResult<T>) -> ApiResult<T> {
        self.by_plugin("", operation, phase, work)
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

    /// Measures a write of the store: `create`, `update` or `delete`, and the table that it went to.
    pub fn stored(&self, operation: &'static str, table: TableId, took: Duration) {
        let histogram = self.admission.writes.entry((operation, table.clone())).or_insert_with(|| {
            let (group, resource) = table.as_str().split_once('/').unwrap_or(("", table.as_str()));
            let labels = [("group", group), ("operation", operation), ("resource", resource)];
            self.meter().histogram(&families::STORE_DURATION, &labels)
        });
        histogram.observe(took.as_nanos() as u64);
    }
}
