//! Runs the plugins within the server that concern a write, in order. A write that concerns no plugin costs only the
//! check that its set is empty.

use std::sync::Arc;
use std::time::Instant;

use flotilla_proto::value::Value;

use super::chain::CHAIN;
use super::plugin::{DecidesBy, Mutating, Prepare, Provide, ResourcePart, Validating};
use super::{Admission, BuiltInAttributes};
use crate::access::Inquiry;
use crate::metrics::admission::{Operation, Phase};
use crate::rules::plugins::PluginSet;
use crate::status::ApiResult;
use crate::tables::Target;

impl Admission {
    /// Has `provide` create the objects that plugins need before everything else.
    pub(super) async fn prepare_within(
        &self,
        write: &BuiltInAttributes<'_>,
        object: &Value,
        provide: &Provide<'_>,
    ) -> ApiResult<()> {
        for position in self.steps(write.target, write.operation).first.iter() {
            let plugin = &CHAIN[position];
            if let Some(Mutating::First(run)) = plugin.mutating.map(|step| step.run)
                && (plugin.applies)(write, object)
            {
                let prepared = self.provided(run, write, object, provide);
                self.timed(plugin.name, write, Phase::Admit, prepared).await?;
            }
        }
        Ok(())
    }

    /// Has `provide` create the object that a step needs, and waits until this replica has it.
    async fn provided(
        &self,
        prepare: Prepare,
        write: &BuiltInAttributes<'_>,
        object: &Value,
        provide: &Provide<'_>,
    ) -> ApiResult<()> {
        let Some(needed) = prepare(write)? else { return Ok(()) };
        let metadata = |field: &str| needed.object.str_at(&["metadata", field]).to_owned();
        let (served, namespace, name) = (Arc::clone(&needed.served), metadata("namespace"), metadata("name"));
        match provide(needed).await {
            Err(error) if error.reason != "AlreadyExists" => Err(write.refuse(object, &error.message)),
            _ => self.tables.catch_up_with(&served, &namespace, &name).await,
        }
    }

    /// Lets plugins change or refuse an object that is not finished. For a deletion the object is null.
    ///
    /// # Errors
    /// The refusal of the first plugin that refuses the write.
    pub(super) fn mutate_within(&self, write: &BuiltInAttributes<'_>, object: &mut Value) -> ApiResult<()> {
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

    /// Returns whether plugins prepare the server for an operation.
    pub fn is_prepared(&self, target: Target<'_>, operation: Operation) -> bool {
        self.steps(target, operation).first != PluginSet::NONE
    }

    /// Lets plugins refuse a finished object, if none of them asks outside: see [`Admission::plugins_ask_outside`].
    ///
    /// # Errors
    /// The refusal of the first plugin that refuses the write.
    pub(super) fn validate_within(&self, write: &BuiltInAttributes<'_>, object: &Value) -> ApiResult<()> {
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

    /// Lets plugins refuse a finished object, if some of them may ask outside.
    ///
    /// # Errors
    /// The refusal of the first plugin that refuses the write.
    pub(super) async fn validate_asking(&self, write: &BuiltInAttributes<'_>, object: &Value) -> ApiResult<()> {
        for position in self.steps(write.target, write.operation).validating.iter() {
            let plugin = &CHAIN[position];
            let Some(step) = plugin.validating.filter(|_| (plugin.applies)(write, object)) else { continue };
            match step.run {
                Validating::Within(run) => {
                    let (inquiry, ends) = (&write.caller.inquiry, write.caller.ends);
                    let decide = |_: &Inquiry| write.measured(plugin.name, Phase::Validate, || run(write, object));
                    inquiry.settled(ends, decide).await?;
                }
                Validating::Asking(run) => {
                    self.timed(plugin.name, write, Phase::Validate, run(write, object)).await?;
                }
                Validating::Outside(_) | Validating::Last(_) => {}
            }
        }
        Ok(())
    }

    /// Lets plugins refuse a finished object after policies and webhooks have allowed it.
    ///
    /// # Errors
    /// The refusal of the first plugin that refuses the write, or the reason why it could not decide.
    pub(super) async fn validate_within_last(&self, write: &BuiltInAttributes<'_>, object: &Value) -> ApiResult<()> {
        for position in self.steps(write.target, write.operation).last.iter() {
            let plugin = &CHAIN[position];
            if let Some(Validating::Last(run)) = plugin.validating.map(|step| step.run)
                && (plugin.applies)(write, object)
            {
                self.timed(plugin.name, write, Phase::Validate, run(write, object)).await?;
            }
        }
        Ok(())
    }

    /// Runs a step that may wait, and measures it.
    async fn timed(
        &self,
        plugin: &'static str,
        write: &BuiltInAttributes<'_>,
        phase: Phase,
        run: impl Future<Output = ApiResult<()>>,
    ) -> ApiResult<()> {
        let began = Instant::now();
        let done = run.await;
        self.tables.metrics.took_plugin(plugin, write.operation, phase, began.elapsed(), done.is_err());
        done
    }

    /// Returns whether plugins within the server may change or refuse an object that is not finished.
    pub fn is_decided_within(&self, target: Target<'_>, operation: Operation) -> bool {
        self.steps(target, operation).mutating != PluginSet::NONE
    }

    /// Returns whether plugins within the server may ask outside about an operation: by themselves, or by asking an
    /// authorization webhook about the permissions of the user.
    pub fn plugins_ask_outside(&self, target: Target<'_>, operation: Operation) -> bool {
        let steps = self.steps(target, operation);
        steps.by_outside || steps.validating != PluginSet::NONE && self.tables.authorizer.asks_outside()
    }

    /// Returns whether plugins decide about all updates by other objects of the server, or by asking outside. They must
    /// not ask outside about an older state.
    pub fn updates_need_tables(&self, target: Target<'_>) -> bool {
        let steps = self.steps(target, Operation::Update);
        steps.by_tables || steps.by_outside
    }

    /// Returns whether plugins decide about this update by other objects of the server. They do that for few updates of
    /// the resource.
    pub fn change_needs_tables(&self, target: Target<'_>, object: &Value, old: &Value) -> bool {
        let part = ResourcePart { served: target.served, subresource: target.subresource };
        let needs_tables =
            |by: Option<DecidesBy>| matches!(by, Some(DecidesBy::TablesFor(holds)) if holds(object, old));
        self.steps(target, Operation::Update).by_tables_for_some.iter().map(|position| &CHAIN[position]).any(|plugin| {
            needs_tables(plugin.mutating.and_then(|step| (step.decides_by)(part, Operation::Update)))
                || needs_tables(plugin.validating.and_then(|step| (step.decides_by)(part, Operation::Update)))
        })
    }
}
