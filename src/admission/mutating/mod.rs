//! MutatingAdmissionPolicy: policies that change objects before they are checked.

mod policy;

use std::sync::Arc;
use std::time::{Duration, Instant};

use flotilla_proto::schema::Type;
use flotilla_proto::value::Value;

pub use policy::{MutatingPolicy, Mutation};

use super::conditions::Matched as Conditions;
use super::policy::{Binding, Policies, Policy as _, Scene, forbidden, requests, select};
use super::{Attributes, Matched};
use crate::expressions::OUT_OF_BUDGET;
use crate::field::quote;
use crate::metrics::policies::Sort;
use crate::status::{ApiError, ApiResult};

/// Why a policy could not be used.
struct Failure {
    message: String,
    ignored: bool,
    /// What the `Status` says instead of `Forbidden`.
    reason: Option<&'static str>,
}

impl Failure {
    fn of(policy: &MutatingPolicy, binding: Option<&Binding>, why: &str, reason: Option<&'static str>) -> Self {
        let spec = policy.spec();
        let message = match binding {
            Some(binding) => format!("policy '{}' with binding '{}' denied request: {why}", spec.name, binding.name),
            None => format!("policy {} denied request: {why}", quote(&spec.name)),
        };
        Self { message, ignored: spec.ignores_failure, reason }
    }
}

/// A policy that is evaluated, through which binding.
struct Invocation {
    policy: Arc<MutatingPolicy>,
    binding: Arc<Binding>,
    matched: Arc<Matched>,
    params: Value,
}

impl Invocation {
    /// What tells it apart from others of the same write.
    fn key(&self) -> String {
        let param = |field: &str| self.params.str_at(&["metadata", field]);
        let (policy, binding) = (&self.policy.spec().name, &self.binding.name);
        format!("{policy}/{binding}/{}/{}", param("namespace"), param("name"))
    }
}

/// Has the policies change a write.
///
/// # Errors
/// What the client is answered where one of them fails.
pub async fn mutate(policies: &Policies<MutatingPolicy>, attributes: &mut Attributes<'_>) -> ApiResult<()> {
    let selected = select(&policies.index(), attributes).await;
    if selected.is_empty() {
        return Ok(());
    }
    let (mut failures, mut invocations) = (Vec::new(), Vec::new());
    for one in selected {
        match (one.found, one.binding) {
            (Ok((matched, params)), Some(binding)) => invocations.extend(params.into_iter().map(|params| {
                let (policy, binding, matched) = (Arc::clone(&one.policy), Arc::clone(&binding), Arc::clone(&matched));
                Invocation { policy, binding, matched, params }
            })),
            (Err(why), binding) => failures.push(Failure::of(&one.policy, binding.as_deref(), &why, None)),
            (Ok(_), None) => {}
        }
    }
    if !invocations.is_empty() {
        let scene = Scene::of(attributes)?;
        let is_second = attributes.reinvocation.is_second;
        attributes.reinvocation.policies.begin(is_second, attributes.object.as_ref());
        let mut changing = Changing { attributes, scene, failures, is_touched: false };
        let invoked = changing.invoke_all(&invocations).await;
        failures = changing.failures;
        attributes.reinvocation.policies.end(attributes.object.as_ref());
        invoked?;
    }
    failures.retain(|failure| !failure.ignored);
    match &failures[..] {
        [] => Ok(()),
        failures => Err(refusal(attributes, failures)),
    }
}

/// The first failure is what the client is told, all are the causes.
fn refusal(attributes: &Attributes<'_>, failures: &[Failure]) -> ApiError {
    let mut error = forbidden(attributes, "");
    if let Some(first) = failures.first() {
        error.message.clone_from(&first.message);
        error.reason = first.reason.unwrap_or(error.reason);
    }
    failures.iter().fold(error, |error, failure| error.with_cause("", failure.message.as_str(), ""))
}

struct Changing<'c, 'a> {
    attributes: &'c mut Attributes<'a>,
    scene: Scene,
    failures: Vec<Failure>,
    /// Whether any change was made, even one that changes nothing.
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

    /// The object was changed: all that were asked before are asked again.
    fn changed(&mut self) {
        self.attributes.reinvocation.policies.changed();
        self.attributes.reinvocation.is_wanted = true;
    }

    fn fail(&mut self, invocation: &Invocation, why: &str) {
        self.failures.push(Failure::of(&invocation.policy, Some(&invocation.binding), why, Some("Invalid")));
    }

    async fn invoke(&mut self, invocation: &Invocation) -> ApiResult<()> {
        let Invocation { policy, matched, params, .. } = invocation;
        let seen = match self.attributes.seen_as(matched).await {
            Ok(seen) => seen,
            Err(error) => {
                let why = format!("failed to configure policy: {}", error.message);
                self.failures.push(Failure::of(policy, None, &why, None));
                return Ok(());
            }
        };
        let (of_conditions, request) = requests(self.attributes, matched);
        let spec = policy.spec();
        match spec.conditions.matches(self.scene.inputs(&seen, &of_conditions, params), &spec.variables) {
            Conditions::Yes => {}
            Conditions::No(_) => return Ok(()),
            Conditions::Failed(why) => {
                self.fail(invocation, &why);
                return Ok(());
            }
        }
        let key = invocation.key();
        let reinvocation = &self.attributes.reinvocation;
        if reinvocation.is_second && !reinvocation.policies.is_due(&key) {
            return Ok(());
        }
        let mut is_changed = false;
        // There is nothing to change in a deletion.
        let mutations = if seen.object.is_some() { &policy.mutations[..] } else { &[] };
        for mutation in mutations {
            let began = Instant::now();
            match self.change(invocation, mutation, &request).await {
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
            tokio::task::yield_now().await; // others wait for one change at most
        }
        if is_changed {
            self.changed();
        }
        if policy.is_reinvoked {
            self.attributes.reinvocation.policies.is_willing(&key);
        }
        Ok(())
    }

    /// Makes one change. Whether it changed anything, or why it failed.
    async fn change(
        &mut self,
        invocation: &Invocation,
        mutation: &Mutation,
        request: &Value,
    ) -> ApiResult<Result<bool, String>> {
        let Invocation { policy, matched, params, .. } = invocation;
        let seen = self.attributes.seen_as(matched).await?;
        let inputs = self.scene.inputs(&seen, request, params);
        let patched = match mutation.patched(policy.spec(), inputs, type_of(self.attributes, matched)) {
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
        let metrics = &self.attributes.registry.metrics;
        metrics.by_policy(Sort::Mutating, &[&invocation.policy.spec().name, &invocation.binding.name, error], elapsed);
    }
}

/// What metrics call an error.
fn error_type(why: &str) -> &'static str {
    match why {
        why if why.starts_with("compilation") => "compile_error",
        OUT_OF_BUDGET => "out_of_budget",
        _ => "invalid_error",
    }
}

/// The type of the object, or of the document of a subresource, in the version that was matched.
fn type_of<'s>(attributes: &'s Attributes<'_>, matched: &'s Matched) -> &'s Type {
    let version = matched.other.as_deref().unwrap_or(attributes.served);
    version.part(attributes.subresource).map_or(version, |part| part).of()
}
