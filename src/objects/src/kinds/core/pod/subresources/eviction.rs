//! The `eviction` subresource: a deletion that a disruption budget may refuse (policy/v1 Eviction).

use flotilla_proto::time::Timestamp;
use flotilla_proto::value::Value;

use crate::kinds::core::pod::status::conditions;
use crate::status::ApiError;

/// Most evictions in a budget's status that its controller has not processed yet.
const OPEN_EVICTIONS_MAX: usize = 2000;
const REFUSAL: &str = "Cannot evict pod as it would violate the pod's disruption budget.";
const CAUSE: &str = "DisruptionBudget";
/// Seconds after which a client may try again while a budget is being computed.
const RETRY_SECONDS: u32 = 10;

/// The decision of a budget about the eviction of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EvictionDecision {
    /// The pod may be evicted without a change of the budget.
    Free,
    /// As `Free`, but only if the pod has not changed since it was read.
    FreeIfUnchanged,
    /// The pod may be evicted if the budget has a disruption left, which is spent.
    Ask,
}

/// Returns whether a pod can be evicted without asking its budgets: it has ended, not begun, or is being deleted.
pub fn ignores_budgets(pod: &Value) -> bool {
    matches!(pod.str_at(&["status", "phase"]), "Succeeded" | "Failed" | "Pending") || is_terminating(pod)
}

/// Returns whether the deletion of a pod that ignores budgets must fail if the pod has changed since it was read: a
/// pending pod may just have started.
pub fn must_be_unchanged(pod: &Value) -> bool {
    !matches!(pod.str_at(&["status", "phase"]), "Succeeded" | "Failed") && !is_terminating(pod)
}

fn is_terminating(pod: &Value) -> bool {
    !pod.at(&["metadata", "deletionTimestamp"]).is_null()
}

fn is_ready(pod: &Value) -> bool {
    let mut conditions = pod.list_at(&["status", "conditions"]).iter();
    conditions.any(|c| c.str_at(&["type"]) == "Ready" && c.str_at(&["status"]) == "True")
}

/// Returns the decision of the only budget that selects a running pod.
pub fn decide(pod: &Value, budget: &Value) -> EvictionDecision {
    if is_ready(pod) {
        return EvictionDecision::Ask;
    }
    let healthy = |key: &str| budget.int_at(&["status", key]).unwrap_or(0);
    let enough = healthy("currentHealthy") >= healthy("desiredHealthy") && healthy("desiredHealthy") > 0;
    let always = budget.str_at(&["spec", "unhealthyPodEvictionPolicy"]) == "AlwaysAllow";
    if always || enough { EvictionDecision::FreeIfUnchanged } else { EvictionDecision::Ask }
}

/// Returns the error if several budgets select one pod: a `Status` without a reason.
pub fn several_budgets() -> ApiError {
    ApiError::unknown(
        "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
    )
}

/// Returns the error if a budget's status is behind its spec, or if other requests keep changing the budget.
pub fn still_processed(budget: &Value) -> ApiError {
    let name = budget.str_at(&["metadata", "name"]);
    let mut error = refused(RETRY_SECONDS);
    error =
        error.with_cause(CAUSE, format!("The disruption budget {name} is still being processed by the server."), "");
    error
}

fn refused(retry_seconds: u32) -> ApiError {
    let details = crate::status::Details { retry_after_seconds: retry_seconds, ..Default::default() };
    ApiError { details: Some(Box::new(details)), ..ApiError::new(429, "TooManyRequests", REFUSAL) }
}

/// Spends a disruption of a budget for a pod, at the time `now`. `Err` is the answer if none can be spent.
pub fn spend(budget: &mut Value, pod: &str, dry_run: bool, now: Timestamp) -> Result<(), ApiError> {
    let name = budget.str_at(&["metadata", "name"]).to_owned();
    let number = |path: &[&str]| budget.int_at(path).unwrap_or(0);
    if number(&["status", "observedGeneration"]) < number(&["metadata", "generation"]) {
        return Err(still_processed(budget));
    }
    let allowed = number(&["status", "disruptionsAllowed"]);
    let forbidden = |why: &str| ApiError::forbidden("policy", "poddisruptionbudget", &name, why);
    if allowed < 0 {
        return Err(forbidden("pdb disruptions allowed is negative"));
    }
    if budget.map_at(&["status", "disruptedPods"]).is_some_and(|pods| pods.len() > OPEN_EVICTIONS_MAX) {
        return Err(forbidden("DisruptedPods map too big - too many evictions not confirmed by PDB controller"));
    }
    if allowed == 0 {
        return Err(refused(0).with_cause(CAUSE, why_none(budget, &name), ""));
    }
    budget.set_at(&["status", "disruptionsAllowed"], allowed - 1);
    if allowed == 1 {
        set_insufficient(budget, now);
    }
    if !dry_run {
        budget.set_at(&["status", "disruptedPods", pod], now.to_string());
    }
    Ok(())
}

fn why_none(budget: &Value, name: &str) -> String {
    let status = budget.at(&["status"]);
    let of = |key: &str| status.int_at(&[key]).unwrap_or(0);
    let mut found = status.list_at(&["conditions"]).iter();
    let condition = found.find(|condition| condition.str_at(&["type"]) == "DisruptionAllowed");
    let refusal = condition.filter(|condition| condition.str_at(&["status"]) == "False");
    let message = refusal.map_or("", |condition| condition.str_at(&["message"]));
    let reason = refusal.map_or("", |condition| condition.str_at(&["reason"]));
    if !message.is_empty() && reason == "SyncFailed" {
        let why = "does not allow evicting pods currently because it failed sync";
        return format!("The disruption budget {name} {why}: {message}");
    }
    let (current, desired) = (of("currentHealthy"), of("desiredHealthy"));
    if current <= desired {
        return format!("The disruption budget {name} needs {desired} healthy pods and has {current} currently");
    }
    let why = format!("The disruption budget {name} does not allow evicting pods currently");
    if message.is_empty() { why } else { format!("{why} ({reason}): {message}") }
}

/// Sets the budget's condition to "no disruption is left".
fn set_insufficient(budget: &mut Value, now: Timestamp) {
    let generation = budget.int_at(&["status", "observedGeneration"]).unwrap_or(0);
    let mut condition = conditions::condition("DisruptionAllowed", "False", "InsufficientPods", "", now);
    condition.remove_at(&["lastProbeTime"]);
    condition.set_at(&["message"], "");
    if generation != 0 {
        condition.set_at(&["observedGeneration"], generation);
    }
    conditions::set(budget, condition);
}

/// Sets the condition of an evicted pod, before it is deleted.
pub fn mark(pod: &mut Value, now: Timestamp) {
    let condition =
        conditions::condition("DisruptionTarget", "True", "EvictionByEvictionAPI", "Eviction API: evicting", now);
    conditions::set(pod, condition);
}
