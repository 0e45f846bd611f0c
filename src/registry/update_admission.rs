//! Admission and validation of a changed object.

use flotilla_proto::value::Value;

use super::change::Change;
use super::{Registry, Target, WriteOptions, convert, place};
use crate::admission::{Operation, Question};
use crate::field::Errors;
use crate::metrics::admission::Phase;
use crate::request::Caller;
use crate::rules::metadata;
use crate::status::{ApiError, ApiResult};

impl Registry {
    /// Validates a changed object: by the rules of its kind, by policies and webhooks that match, and by quotas.
    pub(super) async fn judge(
        &self,
        target: Target<'_>,
        change: &mut dyn Change,
        (new, old): (&mut Value, &Value),
        options: &WriteOptions,
        caller: &mut Caller,
    ) -> ApiResult<()> {
        let warned = caller.notices.warnings.len();
        let mut checked = self.validate_update(target, new, old, caller);
        while caller.inquiry.asks(caller.ends).await {
            caller.notices.warnings.truncate(warned);
            checked = self.validate_update(target, new, old, caller);
        }
        convert::default_valid(target.served, new);
        checked?;
        self.admission.validate_changed_within(target, new, old, caller).await?;
        if self.is_seen_outside(Phase::Validate, target, change, (new, old), caller) {
            Box::pin(self.validate_updated(target, change, (new, old), options, caller)).await?;
        }
        self.admission.validate_changed_last(target, new, old, options, caller).await
    }

    /// Returns whether a policy or webhook may match a changed object, or the document that the client changes.
    pub(super) fn is_seen_outside(
        &self,
        phase: Phase,
        target: Target<'_>,
        change: &dyn Change,
        (new, old): (&Value, &Value),
        caller: &Caller,
    ) -> bool {
        let what = (target, Operation::Update);
        if !self.admission.is_decided_outside(target, Operation::Update) {
            return false;
        }
        let (document, before) = (change.document(new), change.document(old));
        let (new, old) = (document.as_ref().or(Some(new)), before.as_ref().or(Some(old)));
        match phase {
            Phase::Admit => self.admission.is_changed_outside(what, new, old, caller),
            Phase::Validate => self.admission.is_refused_outside(what, new, old, caller),
        }
    }

    /// Lets policies and webhooks change an updated object, or the document that the client changes.
    pub(super) async fn mutate_updated(
        &self,
        target: Target<'_>,
        change: &mut dyn Change,
        (new, old): (&mut Value, &Value),
        options: &WriteOptions,
        caller: &mut Caller,
    ) -> ApiResult<()> {
        if let (Some(document), Some(before)) = (change.document(new), change.document(old)) {
            let mut document = document;
            let owners = change.owners();
            if !owners.is_null() {
                document.set_at(&["metadata", "managedFields"], owners.clone());
            }
            let question = Question::update(target, &document, &before, options);
            let mutated = self.admission.mutate_outside(question, caller, async |_, _| Ok(())).await?;
            change.take_over(&mutated, new);
            return Ok(());
        }
        let again = async |object: &mut Value, caller: &mut Caller| {
            self.admission.mutate_changed_within(target, object, old, caller)
        };
        *new = self.admission.mutate_outside(Question::update(target, new, old, options), caller, again).await?;
        place(target, new)
    }

    /// Lets policies and webhooks validate a finished object, or the document that the client changes.
    async fn validate_updated(
        &self,
        target: Target<'_>,
        change: &mut dyn Change,
        (new, old): (&Value, &Value),
        options: &WriteOptions,
        caller: &mut Caller,
    ) -> ApiResult<()> {
        let (document, before) = (change.document(new), change.document(old));
        let (new, old) = (document.as_ref().unwrap_or(new), before.as_ref().unwrap_or(old));
        self.admission.validate_outside(Question::update(target, new, old, options), caller).await
    }

    fn validate_update(&self, target: Target<'_>, new: &Value, old: &Value, caller: &mut Caller) -> ApiResult<()> {
        let (served, strategy) = (target.served, target.served.strategy);
        let mut errors = Errors::default();
        metadata::validate_update(strategy, served.resource.namespaced, new, old, &mut errors);
        match (target.subresource, strategy.subresource(target.subresource)) {
            ("status", _) => {
                self.check_admin_access(target, new, Some(old), &mut errors)?;
                self.check_status_writer(target, new, old, caller, &mut errors);
                (strategy.validate_status)(new, old, &mut errors);
            }
            (_, Some(rules)) => (rules.validate)(new, old, &mut errors),
            _ => (strategy.validate_update)(new, old, &mut errors),
        }
        if let Some(custom) = &served.custom {
            custom.validate_update(target.subresource, new, old, &mut errors, &mut caller.notices.warnings);
        }
        if errors.is_empty() {
            match (target.subresource, strategy.subresource(target.subresource)) {
                ("status", _) => (strategy.status_warnings)(new, &mut caller.notices.warnings),
                (_, Some(_)) => {}
                _ => (strategy.warnings)(new, Some(old), &mut caller.notices.warnings),
            }
            return Ok(());
        }
        // A webhook may have changed the name, and the error is then about that name.
        let name = if target.subresource.is_empty() { new.str_at(&["metadata", "name"]) } else { target.name };
        Err(ApiError::invalid(&served.stored.group, &served.kind().name, name, &errors.0))
    }
}
