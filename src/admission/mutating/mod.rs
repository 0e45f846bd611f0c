//! MutatingAdmissionPolicy: policies that change objects before they are validated.

mod policy;

use std::sync::Arc;
use std::time::{Duration, Instant};

use flotilla_proto::schema::Type;
use flotilla_proto::value::Value;

pub use policy::{MutatingPolicy, Mutation};

use super::Presence;
use super::conditions::MatchResult;
use super::plugin::Plugin;
use super::policy::{Binding, Param, Policies, Policy as _, PolicyVariables, forbidden, requests, select};
use super::{DynamicAttributes, Effort, MatchedVersion};
use crate::expressions::OUT_OF_BUDGET;
use crate::field::quote;
use crate::limits;
use crate::metrics::policies::Sort;
use crate::status::{ApiError, ApiResult};

/// The plugin.
pub const PLUGIN: Plugin = Plugin::new("MutatingAdmissionPolicy", Presence::On).mutating_outside(|attributes| {
    let admission = attributes.admission;
    Box::pin(mutate(&admission.mutating, attributes))
});

/// The reason why a policy could not be evaluated.
struct EvaluationFailure {
    message: String,
    ignored: bool,
    /// The reason of the `Status`, if it is not `Forbidden`.
    reason: Option<&'static str>,
}

impl EvaluationFailure {
    fn of(policy: &MutatingPolicy, binding: Option<&Binding>, why: &str, reason: Option<&'static str>) -> Self {
        let spec = policy.spec();
        let message = match binding {
            Some(binding) => format!("policy '{}' with binding '{}' denied request: {why}", spec.name, binding.name),
            None => format!("policy {} denied request: {why}", quote(&spec.name)),
        };
        Self { message, ignored: spec.ignores_failure, reason }
    }
}

/// The failures that are not ignored, up to [`ERROR_BYTES`](limits::ERROR_BYTES).
#[derive(Default)]
struct Failures {
    all: Vec<EvaluationFailure>,
    bytes: usize,
}

impl Failures {
    fn add(&mut self, failure: EvaluationFailure) {
        if !failure.ignored && self.bytes < limits::ERROR_BYTES {
            self.bytes += failure.message.len() + size_of::<EvaluationFailure>();
            self.all.push(failure);
        }
    }
}

/// One evaluation of a policy: through a binding, with a parameter.
struct Invocation {
    policy: Arc<MutatingPolicy>,
    binding: Arc<Binding>,
    matched: Arc<MatchedVersion>,
    param: Param,
}

impl Invocation {
    /// Returns a key that identifies the invocation within a write.
    fn key(&self, params: &Value) -> String {
        let param = |field: &str| params.str_at(&["metadata", field]);
        let (policy, binding) = (&self.policy.spec().name, &self.binding.name);
        format!("{policy}/{binding}/{}/{}", param("namespace"), param("name"))
    }
}

/// Lets policies change a write.
///
/// # Errors
/// The error for the client when a policy fails.
pub async fn mutate(policies: &Policies<MutatingPolicy>, attributes: &mut DynamicAttributes<'_>) -> ApiResult<()> {
    let mut effort = Effort::default();
    let selected = select(&policies.index(), attributes, &mut effort).await;
    if selected.is_empty() {
        return Ok(());
    }
    let (mut failures, mut invocations) = (Failures::default(), Vec::new());
    for one in selected {
        match (one.found, one.binding) {
            (Ok((matched, params)), Some(binding)) => invocations.extend(params.into_iter().map(|param| {
                let (policy, binding, matched) = (Arc::clone(&one.policy), Arc::clone(&binding), Arc::clone(&matched));
                Invocation { policy, binding, matched, param }
            })),
            (Err(why), binding) => failures.add(EvaluationFailure::of(&one.policy, binding.as_deref(), &why, None)),
            (Ok(_), None) => {}
        }
    }
    if !invocations.is_empty() {
        let variables = PolicyVariables::of(attributes)?;
        let is_second = attributes.reinvocation.is_second;
        attributes.reinvocation.policies.begin(is_second, attributes.object.as_ref());
        let mut changing = Changing { attributes, variables, failures, effort, is_touched: false };
        let invoked = changing.invoke_all(&invocations).await;
        failures = changing.failures;
        attributes.reinvocation.policies.end(attributes.object.as_ref());
        invoked?;
    }
    match &failures.all[..] {
        [] => Ok(()),
        failures => Err(refusal(attributes, failures)),
    }
}

/// Returns the refusal: the first failure is its message, all failures are its causes.
fn refusal(attributes: &DynamicAttributes<'_>, failures: &[EvaluationFailure]) -> ApiError {
    let mut error = forbidden(attributes, "");
    if let Some(first) = failures.first() {
        error.message.clone_from(&first.message);
        error.reason = first.reason.unwrap_or(error.reason);
    }
    failures.iter().fold(error, |error, failure| error.with_cause("", failure.message.as_str(), ""))
}

struct Changing<'c, 'a> {
    attributes: &'c mut DynamicAttributes<'a>,
    variables: Arc<PolicyVariables>,
    failures: Failures,
    effort: Effort,
    /// Whether a mutation was applied, even without effect.
    is_touched: bool,
}

impl Changing<'_, '_> {
    async fn invoke_all(&mut self, invocations: &[Invocation]) -> ApiResult<()> {
        for invocation in invocations {
            self.invoke(invocation).await?;
        }
        if self.is_touched {
            self.changed();
        }
        Ok(())
    }

    /// Records that the object changed. All earlier policies then run again.
    fn changed(&mut self) {
        self.attributes.reinvocation.policies.changed();
        self.attributes.reinvocation.is_wanted = true;
    }

    fn fail(&mut self, invocation: &Invocation, why: &str) {
        self.failures.add(EvaluationFailure::of(&invocation.policy, Some(&invocation.binding), why, Some("Invalid")));
    }

    async fn invoke(&mut self, invocation: &Invocation) -> ApiResult<()> {
        let Invocation { policy, binding, matched, param } = invocation;
        let seen = match self.attributes.seen_as(matched).await {
            Ok(seen) => seen,
            Err(error) => {
                let why = format!("failed to configure policy: {}", error.message);
                self.failures.add(EvaluationFailure::of(policy, None, &why, None));
                return Ok(());
            }
        };
        let params = &match param.read(&self.attributes.admission.tables).await {
            Ok(params) => params,
            Err(why) => {
                let why = format!("failed to configure binding: {why}");
                self.failures.add(EvaluationFailure::of(policy, Some(binding), &why, None));
                return Ok(());
            }
        };
        let (of_conditions, request) = requests(self.attributes, matched);
        let spec = policy.spec();
        let inputs = self.variables.inputs(&seen, &of_conditions, params);
        let matched = loop {
            let before = self.effort.left();
            let matched = spec.conditions.matches(inputs, &spec.variables, &mut self.effort).await;
            let Some(asking) = self.variables.pending() else { break matched };
            asking.await;
            self.effort.restore(before);
        };
        match matched {
            MatchResult::Yes => {}
            MatchResult::No(_) => return Ok(()),
            MatchResult::Failed(why) => {
                self.fail(invocation, &why);
                return Ok(());
            }
        }
        let key = invocation.key(params);
        let reinvocation = &self.attributes.reinvocation;
        if reinvocation.is_second && !reinvocation.policies.is_due(&key) {
            return Ok(());
        }
        // A deletion has no object to change.
        if seen.object.is_some() && self.mutate(invocation, (&request, params)).await? {
            self.changed();
        }
        if policy.is_reinvoked {
            self.attributes.reinvocation.policies.is_willing(&key);
        }
        Ok(())
    }

    /// Applies the mutations of a policy. Returns whether any of them changed the object.
    async fn mutate(&mut self, invocation: &Invocation, inputs: (&Value, &Value)) -> ApiResult<bool> {
        let mut is_changed = false;
        for mutation in &invocation.policy.mutations {
            let began = Instant::now();
            match self.change(invocation, mutation, inputs).await {
                Ok(Ok(changed)) => {
                    is_changed |= changed;
                    self.observe(invocation, "no_error", began.elapsed());
                }
                Ok(Err(why)) => {
                    self.observe(invocation, error_type(&why), began.elapsed());
                    self.fail(invocation, &why);
                }
                Err(refused) => {
                    self.observe(invocation, "invalid_error", began.elapsed());
                    return Err(refused);
                }
            }
            self.effort.pause().await;
        }
        Ok(is_changed)
    }

    /// Applies one mutation. Returns whether it changed the object; the inner error says why the mutation failed.
    async fn change(
        &mut self,
        invocation: &Invocation,
        mutation: &Mutation,
        (request, params): (&Value, &Value),
    ) -> ApiResult<Result<bool, String>> {
        let Invocation { policy, matched, .. } = invocation;
        let seen = self.attributes.seen_as(matched).await?;
        let inputs = self.variables.inputs(&seen, request, params);
        let of = type_of(self.attributes, matched);
        let patched = loop {
            let before = self.effort.left();
            let patched = mutation.patched(policy.spec(), inputs, of, &mut self.effort);
            let Some(asking) = self.variables.pending() else { break patched };
            asking.await;
            self.effort.restore(before);
        };
        let patched = match patched {
            Ok(patched) => patched,
            Err(why) => return Ok(Err(why)),
        };
        match self.attributes.replace(matched, patched).await {
            Ok(changed) => {
                self.is_touched = true;
                Ok(Ok(changed))
            }
            Err(error) if mutation.is_json_patch => Err(error),
            Err(error) => Ok(Err(error.message)),
        }
    }

    fn observe(&self, invocation: &Invocation, error: &str, elapsed: Duration) {
        let metrics = &self.attributes.admission.tables.metrics;
        let (policy, binding) = (&invocation.policy.spec().name, &invocation.binding.name);
        metrics.by_policy(Sort::Mutating, [policy, binding, error, ""], elapsed);
    }
}

/// Returns the label that metrics use for an error.
fn error_type(why: &str) -> &'static str {
    match why {
        why if why.starts_with("compilation") => "compile_error",
        OUT_OF_BUDGET => "out_of_budget",
        _ => "invalid_error",
    }
}

/// Returns the type of the object, or of the document of a subresource, in the version that was matched.
fn type_of<'s>(attributes: &'s DynamicAttributes<'_>, matched: &'s MatchedVersion) -> &'s Type {
    let version = matched.other.as_deref().unwrap_or(attributes.served);
    version.part(attributes.subresource).map_or(version, |part| part).of()
}
