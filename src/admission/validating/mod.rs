//! ValidatingAdmissionPolicy: policies that refuse writes, warn clients, or add audit annotations.

mod annotations;
mod checking;
mod policy;
mod verdict;

use std::sync::Arc;
use std::time::Duration;

use flotilla_proto::json;
use flotilla_proto::value;
use flotilla_proto::value::Value;

pub use checking::warnings;
pub use policy::ValidatingPolicy;
pub use verdict::{Decision, Evaluation, Judged};

use self::annotations::{Annotation, Collected};
use super::Presence;
use super::conditions::MatchResult;
use super::plugin::Plugin;
use super::policy::{
    Action, Binding, Param, Policies, Policy as _, PolicyVariables, Selected, forbidden, requests, select,
};
use super::{DynamicAttributes, Effort, MatchedVersion, Seen};
use crate::expressions::Inputs;
use crate::metrics::policies::Sort;
use crate::status::{ApiError, ApiResult};

/// The plugin.
pub const PLUGIN: Plugin = Plugin::new("ValidatingAdmissionPolicy", Presence::On)
    .validating_outside(|attributes| Box::pin(validate(&attributes.admission.validating, attributes)));

/// The key of the audit annotation about violations.
const FAILURE: &str = "validation.policy.admission.k8s.io/validation_failure";

/// A refusal. The client gets the first one.
struct PolicyRefusal {
    message: String,
    reason: &'static str,
}

/// Lets policies check a finished write.
///
/// # Errors
/// The error for the client when a policy refuses the write.
pub async fn validate(policies: &Policies<ValidatingPolicy>, attributes: &DynamicAttributes<'_>) -> ApiResult<()> {
    let mut effort = Effort::default();
    let selected = select(&policies.index(), attributes, &mut effort).await;
    if selected.is_empty() {
        return Ok(());
    }
    let mut judge = Judge { attributes, refused: None, effort };
    // The entries of one policy are adjacent.
    for of_policy in selected.chunk_by(|one, next| Arc::ptr_eq(&one.policy, &next.policy)) {
        judge.policy(of_policy).await?;
    }
    match judge.refused {
        Some(PolicyRefusal { message, reason }) => Err(refusal(attributes, &message, reason)),
        None => Ok(()),
    }
}

fn refusal(attributes: &DynamicAttributes<'_>, message: &str, reason: &'static str) -> ApiError {
    let mut error = forbidden(attributes, message).with_cause("", message, "");
    error.reason = reason;
    error.code = match reason {
        "Forbidden" => 403,
        "RequestEntityTooLarge" => 413,
        _ => 422,
    };
    error
}

struct Judge<'j, 'a> {
    attributes: &'j DynamicAttributes<'a>,
    refused: Option<PolicyRefusal>,
    effort: Effort,
}

impl Judge<'_, '_> {
    /// Evaluates a policy through all of its bindings.
    async fn policy(&mut self, selected: &[Selected<ValidatingPolicy>]) -> ApiResult<()> {
        let (mut collected, mut seen) = (Collected::default(), None);
        for one in selected {
            match &one.found {
                Ok((matched, params)) => self.through(one, matched, params, &mut seen, &mut collected).await?,
                Err(why) => self.unusable(one, why),
            }
        }
        let name = selected.first().map_or("", |one| &one.policy.spec().name);
        collected.tell(name, self.attributes);
        Ok(())
    }

    /// Evaluates a policy through one binding, with each of its parameters.
    async fn through(
        &mut self,
        one: &Selected<ValidatingPolicy>,
        matched: &MatchedVersion,
        params: &[Param],
        shown: &mut Option<Shown>,
        collected: &mut Collected,
    ) -> ApiResult<()> {
        let Some(binding) = &one.binding else { return Ok(()) };
        if shown.is_none() {
            match self.attributes.seen_as(matched).await {
                Ok(seen) => *shown = Some(Shown::new(seen, self.attributes, matched)?),
                Err(error) => {
                    let why =
                        format!("failed to configure binding: failed to convert object version: {}", error.message);
                    self.unusable(one, &why);
                    return Ok(());
                }
            }
        }
        let Some(shown) = shown else { return Ok(()) };
        for param in params {
            let params = match param.read(&self.attributes.admission.tables).await {
                Ok(params) => params,
                Err(why) => {
                    self.unusable(one, &format!("failed to configure binding: {why}"));
                    continue;
                }
            };
            let policy = &one.policy;
            let holds = match &shown.holds {
                Some(holds) => holds.clone(),
                None => loop {
                    let before = self.effort.left();
                    let holds = policy.holds(shown.inputs(&shown.requests.0, &params), &mut self.effort).await;
                    let Some(asking) = shown.variables.pending() else { break holds };
                    asking.await;
                    self.effort.restore(before);
                },
            };
            if policy.spec().param_kind.is_none() {
                shown.holds = Some(holds.clone()); // the conditions do not depend on the binding
            }
            let judged = loop {
                let before = self.effort.left();
                let inputs = shown.inputs(&shown.requests.1, &params);
                let judged = policy.judge(inputs, holds.clone(), &mut self.effort).await;
                let Some(asking) = shown.variables.pending() else { break judged };
                asking.await;
                self.effort.restore(before);
            };
            self.take(policy, binding, judged, collected);
            self.effort.pause().await;
        }
        Ok(())
    }

    fn refuse(&mut self, policy: &str, binding: Option<&str>, message: &str, reason: &'static str) {
        let with = binding.map(|binding| format!(" with binding '{binding}'")).unwrap_or_default();
        let message = format!("ValidatingAdmissionPolicy '{policy}'{with} denied request: {message}");
        self.refused.get_or_insert(PolicyRefusal { message, reason });
    }

    /// Records that a policy cannot be evaluated: refuses the write unless the policy ignores failures.
    fn unusable(&mut self, one: &Selected<ValidatingPolicy>, why: &str) {
        let spec = one.policy.spec();
        if !spec.ignores_failure {
            self.refuse(&spec.name, one.binding.as_ref().map(|binding| binding.name.as_str()), why, "Invalid");
        }
    }

    /// Carries out the binding's actions for the decisions of a policy.
    fn take(&mut self, policy: &ValidatingPolicy, binding: &Binding, judged: Judged, collected: &mut Collected) {
        let name = &policy.spec().name;
        for (index, decision) in judged.decisions.into_iter().enumerate() {
            if !decision.denies {
                if decision.evaluation == Evaluation::Error {
                    self.observe(name, binding, decision.error_type(), "allow", decision.elapsed);
                }
                continue;
            }
            for action in &binding.actions {
                let done = match action {
                    Action::Deny => {
                        self.refuse(name, Some(&binding.name), &decision.message, decision.reason);
                        "deny"
                    }
                    Action::Audit => {
                        self.attributes.annotate(FAILURE.to_owned(), failure(index, binding, &decision));
                        "audit"
                    }
                    Action::Warn => {
                        let (binding, message) = (&binding.name, &decision.message);
                        self.attributes.warn(format!(
                            "Validation failed for ValidatingAdmissionPolicy '{name}' with binding '{binding}': {message}"
                        ));
                        "warn"
                    }
                };
                self.observe(name, binding, decision.error_type(), done, decision.elapsed);
            }
        }
        for annotation in judged.annotations {
            match annotation {
                Annotation::Value(key, value) => collected.add(key, value),
                Annotation::Failed(message, elapsed) => {
                    let decision = Decision::failed(message, elapsed);
                    self.observe(name, binding, decision.error_type(), "deny", elapsed);
                    self.refuse(name, Some(&binding.name), &decision.message, "Invalid");
                }
            }
        }
    }

    fn observe(&self, policy: &str, binding: &Binding, error: &str, action: &str, elapsed: Duration) {
        let metrics = &self.attributes.admission.tables.metrics;
        metrics.by_policy(Sort::Validating, [policy, &binding.name, error, action], elapsed);
    }
}

/// The variables of a policy for a write, which are the same through all of its bindings.
struct Shown {
    seen: Seen,
    variables: Arc<PolicyVariables>,
    /// The request as conditions see it, and as all other expressions see it.
    requests: (Value, Value),
    /// Whether the conditions hold; cached for policies without parameters.
    holds: Option<MatchResult>,
}

impl Shown {
    fn new(seen: Seen, attributes: &DynamicAttributes<'_>, matched: &MatchedVersion) -> ApiResult<Self> {
        let (variables, requests) = (PolicyVariables::of(attributes)?, requests(attributes, matched));
        Ok(Self { seen, variables, requests, holds: None })
    }

    fn inputs<'a>(&'a self, request: &'a Value, params: &'a Value) -> Inputs<'a> {
        self.variables.inputs(&self.seen, request, params)
    }
}

/// Returns the audit annotation about a validation that failed.
fn failure(index: usize, binding: &Binding, decision: &Decision) -> String {
    let actions: Vec<Value> = binding.actions.iter().map(|action| Value::from(action.name())).collect();
    let failure = value!({
        "message": (decision.message.as_str()), "policy": (binding.policy.as_str()),
        "binding": (binding.name.as_str()), "expressionIndex": (index as i64), "validationActions": actions,
    });
    String::from_utf8(json::to_vec(&Value::Array(vec![failure]))).unwrap_or_default()
}
