//! Runs the plugins within the server that concern a write, in order. A write that none concerns costs the look at its
//! empty set of plugins.

use std::time::Instant;

use flotilla_proto::value::Value;

use super::BuiltInAttributes;
use super::chain::CHAIN;
use super::plugin::{DecidesBy, Mutating, Part, Validating};
use crate::metrics::admission::{Operation, Phase};
use crate::registry::{Registry, Target};
use crate::status::ApiResult;

impl Registry {
    /// Lets plugins change or refuse an object that is not finished. For a deletion the object is null.
    ///
    /// # Errors
    /// The refusal of the first plugin that refuses the write.
    pub fn mutate_within(&self, write: &BuiltInAttributes<'_>, object: &mut Value) -> ApiResult<()> {
        for position in self.steps(write.target, write.operation).mutating.iter() {
            let plugin = &CHAIN[position];
            if let Some(Mutating::Within(run)) = plugin.mutating.map(|step| step.run)
                && (plugin.applies)(write, object)
            {
                write.measured(plugin.name, Phase::Admit, || run(write, object))?;
            }
        }
        Ok(())
    }

    /// Lets plugins refuse a finished object.
    ///
    /// # Errors
    /// The refusal of the first plugin that refuses the write.
    pub fn validate_within(&self, write: &BuiltInAttributes<'_>, object: &Value) -> ApiResult<()> {
        for position in self.steps(write.target, write.operation).validating.iter() {
            let plugin = &CHAIN[position];
            if let Some(Validating::Within(run)) = plugin.validating.map(|step| step.run)
                && (plugin.applies)(write, object)
            {
                write.measured(plugin.name, Phase::Validate, || run(write, object))?;
            }
        }
        Ok(())
    }

    /// Lets plugins refuse a finished object after policies and webhooks have allowed it.
    ///
    /// # Errors
    /// The refusal of the first plugin that refuses the write, or the reason why it could not decide.
    pub async fn validate_within_last(&self, write: &BuiltInAttributes<'_>, object: &Value) -> ApiResult<()> {
        for position in self.steps(write.target, write.operation).last.iter() {
            let plugin = &CHAIN[position];
            if let Some(Validating::Last(run)) = plugin.validating.map(|step| step.run)
                && (plugin.applies)(write, object)
            {
                let began = Instant::now();
                let validated = run(write, object).await;
                let (took, is_refused) = (began.elapsed(), validated.is_err());
                self.metrics.took_plugin(plugin.name, write.operation, Phase::Validate, took, is_refused);
                validated?;
            }
        }
        Ok(())
    }

    /// Returns whether plugins decide about all updates by other objects of the server.
    pub fn updates_need_tables(&self, target: Target<'_>) -> bool {
        self.steps(target, Operation::Update).by_tables
    }

    /// Returns whether plugins decide about this update by other objects of the server, although they do not for most
    /// updates of the resource.
    pub fn change_needs_tables(&self, target: Target<'_>, object: &Value, old: &Value) -> bool {
        let part = Part { served: target.served, subresource: target.subresource };
        let is_so = |by: Option<DecidesBy>| matches!(by, Some(DecidesBy::TablesFor(holds)) if holds(object, old));
        self.steps(target, Operation::Update).by_tables_for_some.iter().map(|position| &CHAIN[position]).any(|plugin| {
            is_so(plugin.mutating.and_then(|step| (step.decides_by)(part, Operation::Update)))
                || is_so(plugin.validating.and_then(|step| (step.decides_by)(part, Operation::Update)))
        })
    }
}
