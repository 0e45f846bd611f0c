//! The points of a write at which admission runs: the plugins within the server, then policies and webhooks.
//!
//! A write passes admission twice. Plugins first change or refuse the object that is not finished; once the kind's own
//! preparation and validation are done, they may refuse the finished object.

use std::time::Instant;

use flotilla_proto::value::Value;

use super::outside::{Question, deleted};
use super::{Admission, BuiltInAttributes, Operation, Provide, Results};
use crate::metrics::admission::Phase;
use crate::request::{Caller, DeleteOptions, WriteOptions};
use crate::status::ApiResult;
use crate::tables::Target;

fn add_results(results: Results, caller: &mut Caller) {
    caller.notices.warnings.extend(results.warnings);
    caller.notices.annotations.extend(results.annotations);
}

impl Admission {
    /// Has `provide` create the objects that must exist before a create, or before an action on a document.
    ///
    /// # Errors
    /// The refusal of the first plugin that refuses the write, or whose object cannot be created.
    pub async fn prepare(
        &self,
        target: Target<'_>,
        object: &Value,
        options: &WriteOptions,
        caller: &Caller,
        provide: &Provide<'_>,
    ) -> ApiResult<()> {
        let write = BuiltInAttributes::create(self, target, caller).with_dry_run(options.dry_run);
        self.prepare_within(&write, object, provide).await
    }

    /// Lets plugins, policies and webhooks change or refuse a new object that is not finished. The object is in its
    /// stored version.
    ///
    /// # Errors
    /// The refusal of the first of them that refuses the write.
    pub async fn mutate_new(
        &self,
        target: Target<'_>,
        object: &mut Value,
        options: &WriteOptions,
        caller: &mut Caller,
    ) -> ApiResult<()> {
        self.mutate_new_within(target, object, caller)?;
        if self.is_changed_outside((target, Operation::Create), Some(object), None, caller) {
            Box::pin(self.mutate_created(target, object, options, caller)).await?;
        }
        Ok(())
    }

    /// Lets the plugins within the server change or refuse a new object that is not finished.
    ///
    /// # Errors
    /// The refusal of the first of them that refuses the write.
    pub(super) fn mutate_new_within(&self, target: Target<'_>, object: &mut Value, caller: &Caller) -> ApiResult<()> {
        let write = BuiltInAttributes::create(self, target, caller);
        self.tables.metrics.by_step(write.operation, Phase::Admit, || self.mutate_within(&write, object))
    }

    /// Lets the plugins within the server change or refuse an updated object that is not finished. Both objects are in
    /// their stored version.
    ///
    /// # Errors
    /// The refusal of the first of them that refuses the write.
    pub fn mutate_changed_within(
        &self,
        target: Target<'_>,
        object: &mut Value,
        old: &Value,
        caller: &Caller,
    ) -> ApiResult<()> {
        let write = BuiltInAttributes::create(self, target, caller).changes(Operation::Update, old);
        self.tables.metrics.by_step(write.operation, Phase::Admit, || self.mutate_within(&write, object))
    }

    /// Lets the plugins within the server change or refuse the document of an action, such as an access review.
    ///
    /// # Errors
    /// 404 or 403 where the namespace does not exist or is being deleted. Access reviews are answered for any
    /// namespace.
    pub async fn admit_action(&self, target: Target<'_>, document: &mut Value, caller: &Caller) -> ApiResult<()> {
        let write = BuiltInAttributes::create(self, target, caller);
        caller.inquiry.settled(caller.ends, |_| self.mutate_within(&write, document)).await
    }

    /// Lets the plugins within the server refuse a document that policies and webhooks have seen.
    ///
    /// # Errors
    /// Their refusal.
    pub async fn validate_action(&self, target: Target<'_>, document: &Value, caller: &Caller) -> ApiResult<()> {
        self.validate_asking(&BuiltInAttributes::create(self, target, caller), document).await
    }

    /// Lets the plugins within the server refuse a connection.
    ///
    /// # Errors
    /// Their refusal.
    pub fn admit_connection(&self, target: Target<'_>, caller: &Caller) -> ApiResult<()> {
        let write = BuiltInAttributes::create(self, target, caller).of(Operation::Connect);
        self.mutate_within(&write, &mut Value::Null)
    }

    /// Lets the plugins within the server refuse a deletion.
    ///
    /// # Errors
    /// The refusal of the first of them that refuses the write.
    pub fn admit_deletion(
        &self,
        target: Target<'_>,
        old: &Value,
        options: &DeleteOptions,
        caller: &Caller,
    ) -> ApiResult<()> {
        let target = deleted(target, options);
        let write = BuiltInAttributes::create(self, target, caller).changes(Operation::Delete, old);
        self.mutate_within(&write, &mut Value::Null)
    }

    /// Lets plugins, policies and webhooks refuse a finished object that is about to be created.
    ///
    /// # Errors
    /// The refusal of the first of them that refuses the write.
    pub async fn validate_new(
        &self,
        target: Target<'_>,
        object: &Value,
        options: &WriteOptions,
        caller: &mut Caller,
    ) -> ApiResult<()> {
        let (results, validated) = match self.plugins_ask_outside(target, Operation::Create) {
            true => Box::pin(self.validated_asking(BuiltInAttributes::create(self, target, caller), object)).await,
            false => self.validated(BuiltInAttributes::create(self, target, caller), object),
        };
        add_results(results, caller);
        validated?;
        if self.is_refused_outside((target, Operation::Create), Some(object), None, caller) {
            Box::pin(self.validate_outside(Question::create(target, object, options), caller)).await?;
        }
        let write = BuiltInAttributes::create(self, target, caller).with_dry_run(options.dry_run);
        let validated = self.validate_within_last(&write, object).await;
        caller.basis.note_charged(write.into_results().charged);
        validated
    }

    /// Lets the plugins within the server refuse a finished object that is about to replace another.
    ///
    /// # Errors
    /// The refusal of the first of them that refuses the write.
    pub async fn validate_changed_within(
        &self,
        target: Target<'_>,
        object: &Value,
        old: &Value,
        caller: &mut Caller,
    ) -> ApiResult<()> {
        let write = |caller| BuiltInAttributes::create(self, target, caller).changes(Operation::Update, old);
        let (results, validated) = match self.plugins_ask_outside(target, Operation::Update) {
            true => Box::pin(self.validated_asking(write(caller), object)).await,
            false => self.validated(write(caller), object),
        };
        add_results(results, caller);
        validated
    }

    /// Lets the plugins within the server refuse a finished object. Returns their results, and whether it is refused.
    fn validated(&self, write: BuiltInAttributes<'_>, object: &Value) -> (Results, ApiResult<()>) {
        let validated =
            self.tables.metrics.by_step(write.operation, Phase::Validate, || self.validate_within(&write, object));
        (write.into_results(), validated)
    }

    /// Does the same as [`Admission::validated`] if a plugin may ask another server. Callers box the future: other
    /// writes then do not carry its state.
    async fn validated_asking(&self, write: BuiltInAttributes<'_>, object: &Value) -> (Results, ApiResult<()>) {
        let began = Instant::now();
        let validated = self.validate_asking(&write, object).await;
        self.tables.metrics.took_step(write.operation, Phase::Validate, began.elapsed(), validated.is_err());
        (write.into_results(), validated)
    }

    /// Lets the plugins that come after policies and webhooks refuse the finished object.
    ///
    /// # Errors
    /// The refusal of the first of them that refuses the write.
    pub async fn validate_changed_last(
        &self,
        target: Target<'_>,
        object: &Value,
        old: &Value,
        options: &WriteOptions,
        caller: &mut Caller,
    ) -> ApiResult<()> {
        let write = BuiltInAttributes::create(self, target, caller).changes(Operation::Update, old);
        let write = write.with_dry_run(options.dry_run);
        let validated = self.validate_within_last(&write, object).await;
        caller.basis.note_charged(write.into_results().charged);
        validated
    }
}
