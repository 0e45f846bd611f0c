//! Finds and charges the disruption budgets that an eviction must respect.

use std::sync::Arc;

use flotilla_cluster::{Scope, Selection};
use flotilla_proto::value::{Map, Value};

use super::Target;
use crate::kinds::core::pod::subresources::eviction;
use crate::registry::change::Change;
use crate::registry::{Registry, now};
use crate::request::{Caller, WriteOptions};
use crate::rules::labels;
use crate::scan::scan;
use crate::served::Served;
use crate::status::{ApiError, ApiResult};
use crate::tables::stored_value;

/// The field manager under which the server counts disruptions.
const MANAGER: &str = "kube-apiserver";

impl Registry {
    fn budgets(&self) -> ApiResult<Arc<Served>> {
        self.tables.resources.of_resource("policy", "poddisruptionbudgets").ok_or_else(ApiError::no_such_path)
    }

    /// Returns the budgets whose selector matches a pod.
    pub(super) async fn budgets_of(&self, namespace: &str, pod: &Value) -> ApiResult<Vec<Value>> {
        let Some(own) = pod.map_at(&["metadata", "labels"]).filter(|labels| !labels.is_empty()) else {
            return Ok(Vec::new());
        };
        let selection = Selection { scope: Scope::namespace(namespace), ..Selection::default() };
        let table = self.tables.table(&*self.budgets()?);
        self.tables.barrier(&table).await?; // every acknowledged budget counts, in whichever group it is
        let mut found = Vec::new();
        for objects in scan(&table.snapshot(), selection) {
            let objects = objects
                .map_err(|error| ApiError::internal(format!("cannot read the disruption budgets: {error:?}")))?;
            for object in &objects {
                // A budget that cannot be decoded may protect any pod of its namespace, so no pod there is evicted.
                let budget = stored_value(object)?;
                if selects(&budget, own) {
                    found.push(budget);
                }
            }
        }
        Ok(found)
    }

    /// Counts a disruption of a pod against a budget. Fails if the budget does not allow it.
    pub(super) async fn spend_disruption(&self, budget: &Value, pod: &str, dry_run: bool) -> ApiResult<()> {
        if dry_run {
            return eviction::spend(&mut budget.clone(), pod, true, now());
        }
        let served = self.budgets()?;
        let meta = |field: &str| budget.str_at(&["metadata", field]);
        let target = Target::object(&served, meta("namespace"), meta("name")).with_subresource("status");
        let options = WriteOptions { manager: MANAGER.into(), ..WriteOptions::default() };
        let mut server = Caller::server(MANAGER);
        match self.update(target, &mut CountDisruption { pod }, &options, &mut server).await {
            Err(error) if error.reason == "Conflict" => Err(eviction::still_processed(budget)),
            other => other.map(drop),
        }
    }
}

/// The change of a budget that counts one disruption.
struct CountDisruption<'a> {
    pod: &'a str,
}

impl Change for CountDisruption<'_> {
    fn apply(&mut self, current: &Value, _: &mut Caller) -> ApiResult<Value> {
        let mut budget = current.clone();
        eviction::spend(&mut budget, self.pod, false, now())?;
        Ok(budget)
    }
}

/// Returns whether a budget selects a pod with these labels. Without a selector it selects none, with an empty one all.
fn selects(budget: &Value, own: &Map) -> bool {
    let selector = budget.at(&["spec", "selector"]);
    !selector.is_null() && labels::selector_matches(selector, Some(own))
}
