//! Selects the policies that match a write, with the bindings and parameters of each.

use std::sync::Arc;

use super::super::{DynamicAttributes, Effort, Index, MatchedVersion};
use super::{Binding, BoundPolicy, Param, Policy, is_exempt, params};

/// A policy that matches a write, through one binding.
#[derive(Debug)]
pub struct Selected<P> {
    /// The policy.
    pub policy: Arc<P>,
    /// The binding. `None` if the policy itself cannot be evaluated.
    pub binding: Option<Arc<Binding>>,
    /// The version in which the write matched, and the parameters. `Err` states why the policy cannot be evaluated.
    pub found: Result<(Arc<MatchedVersion>, Vec<Param>), String>,
}

/// Returns the policies that match a write, in order.
pub async fn select<P: Policy>(
    index: &Index<BoundPolicy<P>>,
    attributes: &DynamicAttributes<'_>,
    effort: &mut Effort,
) -> Vec<Selected<P>> {
    let (mut selected, write) = (Vec::new(), attributes.for_matching());
    if is_exempt(&write) {
        return selected;
    }
    for bound in index.concerned(&attributes.resource.resource) {
        let spec = bound.policy.spec();
        let mut add = |binding: Option<&Arc<Binding>>, found: Result<_, String>| {
            let sort = if binding.is_some() { "binding" } else { "policy" };
            let found = found.map_err(|why| format!("failed to configure {sort}: {why}"));
            selected.push(Selected { policy: Arc::clone(&bound.policy), binding: binding.cloned(), found });
        };
        let matched = match spec.criteria.find(&write) {
            Ok(Some(version)) => Arc::new(attributes.through(version)),
            Ok(None) => continue,
            Err(error) => {
                add(None, Err(error.message));
                continue;
            }
        };
        let kind =
            spec.param_kind.as_ref().map(|kind| params::resource(&attributes.admission.tables, kind)).transpose();
        let kind = match kind {
            Ok(kind) => kind,
            Err(why) => {
                add(None, Err(why));
                continue;
            }
        };
        for binding in &bound.bindings {
            match binding.criteria.as_ref().map(|criteria| criteria.find(&write)).transpose() {
                Ok(Some(None)) => continue,
                Ok(_) => {}
                Err(error) => {
                    add(Some(binding), Err(error.message));
                    continue;
                }
            }
            match params::collect(attributes, kind.as_ref(), binding.param_ref.as_ref(), effort).await {
                Ok(params) if params.is_empty() => {}
                Ok(params) => add(Some(binding), Ok((Arc::clone(&matched), params))),
                Err(why) => add(Some(binding), Err(why)),
            }
        }
    }
    selected
}
