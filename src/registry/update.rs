//! Changes objects: the path that PUT, PATCH and apply share.

use std::borrow::Cow;
use std::sync::Arc;

use flotilla_cluster::{Expectation, Mutation, Object, Outcome, Revision, Write};
use flotilla_proto::value::{Map, Value};

use super::carry_over::prepare;
use super::create::place;
use super::outside::Question;
use super::precondition::{MODIFIED, check_revision, check_uid, registry_key, wrong_uid};
use super::{Entity, Incoming, Registry, Target, WriteOptions, Written, convert, encode, owners, ownership};
use crate::admission::Operation;
use crate::field::Errors;
use crate::fieldmanager;
use crate::limits;
use crate::metrics::admission::Phase;
use crate::request::Caller;
use crate::rules::metadata;
use crate::status::{ApiError, ApiResult};

/// Makes a changed object from its current state. Both are in the version of the request. The result has its defaults,
/// and its `managedFields` if the change is an apply.
pub trait Change: Send {
    /// Makes the changed object.
    fn apply(&mut self, current: &Value, caller: &mut Caller) -> ApiResult<Value>;

    /// Returns whether the change maintains `managedFields` itself.
    fn owns_managed_fields(&self) -> bool {
        false
    }

    /// Returns whether the client turns the tracking of field owners off.
    fn untracked(&self) -> bool {
        false
    }

    /// Returns whether a UID in the result is a precondition, rather than a change of the UID.
    fn names_uid(&self) -> bool {
        false
    }

    /// Returns the document that the client changes, if that is a part of the object with a kind of its own; else
    /// `None`.
    fn document(&self, _object: &Value) -> Option<Value> {
        None
    }

    /// Returns the field owners of that document, while it can still be changed.
    fn owners(&self) -> &Value {
        &Value::Null
    }

    /// Copies a changed document into the object.
    fn take_over(&self, _document: &Value, _object: &mut Value) {}
}

/// A PUT: the body replaces the object.
pub(super) struct Replace(pub(super) Incoming);

impl Change for Replace {
    fn apply(&mut self, _: &Value, _: &mut Caller) -> ApiResult<Value> {
        Ok(self.0.value.clone())
    }

    fn untracked(&self) -> bool {
        self.0.untracked
    }

    fn names_uid(&self) -> bool {
        true
    }
}

impl Registry {
    /// Replaces an object by a decoded body, or creates it if the kind allows that.
    pub async fn replace(
        &self,
        target: Target<'_>,
        mut incoming: Incoming,
        options: &WriteOptions,
        caller: &mut Caller,
    ) -> ApiResult<Written> {
        place(target, &mut incoming.value)?;
        check_identity(target, &incoming.value)?;
        if !target.served.strategy.create_on_update || !target.subresource.is_empty() {
            convert::default(target.served, &mut incoming.value)?;
            return self.update(target, &mut Replace(incoming), options, caller).await;
        }
        // Other clients may create or delete the object between two steps.
        for _ in 0..limits::CHANGE_ATTEMPTS {
            let is_absent = self.current(target.served, target.namespace, target.name).is_none();
            if is_absent && !self.confirm_basis(target, None, caller).await? {
                continue;
            }
            let (mut incoming, race) = (incoming.clone(), if is_absent { "AlreadyExists" } else { "NotFound" });
            let written = if is_absent {
                self.create_by_put(target, incoming, options, caller).await
            } else {
                convert::default(target.served, &mut incoming.value)?;
                self.update(target, &mut Replace(incoming), options, caller).await
            };
            match written {
                Err(error) if error.reason == race && self.presence_changed(target, is_absent) => {}
                written => return written,
            }
        }
        Err(ApiError::conflict(target.served.group(), &target.served.resource.name, target.name, MODIFIED))
    }

    /// Returns whether an object that was absent exists now, or the reverse.
    fn presence_changed(&self, target: Target<'_>, was_absent: bool) -> bool {
        self.current(target.served, target.namespace, target.name).is_none() != was_absent
    }

    async fn create_by_put(
        &self,
        target: Target<'_>,
        mut incoming: Incoming,
        options: &WriteOptions,
        caller: &mut Caller,
    ) -> ApiResult<Written> {
        let stated = incoming.value.str_at(&["metadata", "uid"]);
        if !stated.is_empty() {
            let why = format!(
                "StorageError: invalid object, Code: 4, Key: {}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: {stated}, UID in object meta: ",
                registry_key(target, options.dry_run)
            );
            return Err(ApiError::conflict(target.served.group(), &target.served.resource.name, target.name, &why));
        }
        incoming.value.remove_at(&["metadata", "resourceVersion"]);
        self.create(target, incoming, options, caller).await
    }

    /// Changes an object. Repeats that on the newer state when another write comes first, up to a bound.
    pub async fn update(
        &self,
        target: Target<'_>,
        change: &mut dyn Change,
        options: &WriteOptions,
        caller: &mut Caller,
    ) -> ApiResult<Written> {
        let served = target.served;
        let warned = caller.warnings.len();
        for _ in 0..limits::CHANGE_ATTEMPTS {
            let Some(current) = self.current(served, target.namespace, target.name) else {
                match self.confirm_basis(target, None, caller).await? {
                    true => return Err(served.not_found(target.name)),
                    false => continue,
                }
            };
            let tried = self.try_update(target, change, &current, options, caller).await;
            if self.is_final(target, &current, &tried, |written| written.stored, caller).await?
                && let Some(written) = tried.transpose()
            {
                return written;
            }
            caller.warnings.truncate(warned);
        }
        Err(ApiError::conflict(served.group(), &served.resource.name, target.name, MODIFIED))
    }

    /// Changes a stored object without the rules of its kind, as actions on it do. Returns the new revision. `uid` and
    /// `revision` are preconditions where they are given.
    pub async fn revise(
        &self,
        target: Target<'_>,
        uid: Option<&str>,
        revision: Option<&str>,
        dry_run: bool,
        change: &(dyn Fn(&mut Value) -> ApiResult<()> + Sync),
    ) -> ApiResult<Revision> {
        let served = target.served;
        let conflict = |why: &str| ApiError::conflict(served.group(), &served.resource.name, target.name, why);
        for _ in 0..limits::CHANGE_ATTEMPTS {
            let current = self.current(served, target.namespace, target.name);
            let current = current.ok_or_else(|| served.not_found(target.name))?;
            let old = encode::stored_tree(&current)?;
            let mut object = old.clone();
            if let Some(uid) = uid {
                let own = object.str_at(&["metadata", "uid"]);
                if uid != own {
                    return Err(conflict(&wrong_uid(target, uid, own, dry_run)));
                }
            }
            if revision.is_some_and(|revision| revision != current.revision().to_string()) {
                return Err(conflict(MODIFIED));
            }
            change(&mut object)?;
            if dry_run {
                return Ok(current.revision());
            }
            encode::order_changed(&mut object, &served.stored.of, &old);
            let expectation = Expectation::Revision(current.revision());
            self.convert_to_store(served, &object, false).await?;
            let draft = encode::draft(served, &object)?;
            if let Outcome::Committed { object, .. } =
                self.put(served, current.key().clone(), expectation, draft).await?
            {
                return Ok(object.revision());
            }
        }
        Err(conflict(MODIFIED))
    }

    /// Returns 404 if the object does not exist.
    pub(super) async fn must_exist(&self, target: Target<'_>, caller: &mut Caller) -> ApiResult<()> {
        let is_absent = || self.current(target.served, target.namespace, target.name).is_none();
        match is_absent() && self.confirm_basis(target, None, caller).await? {
            true => Err(target.served.not_found(target.name)),
            false => Ok(()),
        }
    }

    /// Attempts a change on one state of an object. `None` when that state is no longer the newest and the change may
    /// be repeated.
    async fn try_update(
        &self,
        target: Target<'_>,
        change: &mut dyn Change,
        current: &Arc<Object>,
        options: &WriteOptions,
        caller: &mut Caller,
    ) -> ApiResult<Option<Written>> {
        let served = target.served;
        self.convert_to_show(served, std::slice::from_ref(current)).await?;
        let old = convert::current(served, encode::stored_tree(current)?)?;
        let shown = if served.custom.is_some() || served.is_stored_version() {
            Cow::Borrowed(&old)
        } else {
            Cow::Owned(convert::to_served(served, old.clone())?)
        };
        let mut new = change.apply(&shown, caller)?;
        owners::dedup(&mut new, &mut caller.warnings);
        share(&mut new, &shown);
        place(target, &mut new)?;
        check_identity(target, &new)?;
        if change.names_uid() {
            check_uid(target, &new, &old, options.dry_run)?;
        }
        let is_seen = Phase::ALL.iter().any(|phase| self.is_seen_outside(*phase, target, change, (&new, &old), caller));
        if is_seen && !self.confirm_basis(target, Some(current), caller).await? {
            return Ok(None);
        }
        if !change.owns_managed_fields() {
            ownership::record(served, target.subresource, options, Some(&shown), &mut new, change.untracked());
        }
        convert::forget_equal(served, &mut new, &shown);
        let mut new = convert::to_stored(served, new);
        self.mutate_changed_within(target, &mut new, &old, caller)?;
        if self.is_seen_outside(Phase::Admit, target, change, (&new, &old), caller) {
            Box::pin(self.mutate_updated(target, change, (&mut new, &old), options, caller)).await?;
        }
        self.check_grants(target, &new, Some(&old), caller).await?;
        check_revision(target, &new, current)?;
        if self.is_decided_by_tables(target, &new, &old) && !self.confirm_basis(target, Some(current), caller).await? {
            return Ok(None);
        }
        let allocation = self.allocate_update(target, &mut new, &old, options).await?;
        prepare(target, &mut new, &old);
        fieldmanager::restore_times(&old, &mut new);
        encode::order_changed(&mut new, &served.stored.of, &old);
        let checked = self.judge(target, change, (&mut new, &old), options, caller).await;
        convert::forget_empty(served, &mut new, &old);
        let stored = match checked.and_then(|()| allocation.begin_writing()) {
            Ok(()) => self.store_change(target, new, &old, current, options).await,
            Err(error) => Err(error),
        };
        match stored {
            Ok(Some((entity, stored))) => {
                self.finish_allocation(target, allocation).await;
                return Ok(Some(Written { entity, created: false, stored }));
            }
            other => {
                self.release(target, target.name, allocation, other.as_ref().err()).await;
                other?;
            }
        }
        // A change with a revision is refused when the next attempt compares it with the newer state.
        Ok(None)
    }

    /// Validates a changed object: by the rules of its kind, by policies and webhooks that match, and by quotas.
    async fn judge(
        &self,
        target: Target<'_>,
        change: &mut dyn Change,
        (new, old): (&mut Value, &Value),
        options: &WriteOptions,
        caller: &mut Caller,
    ) -> ApiResult<()> {
        let checked = self.validate_update(target, new, old, caller);
        convert::default_valid(target.served, new);
        checked?;
        self.validate_changed_within(target, new, old, caller)?;
        if self.is_seen_outside(Phase::Validate, target, change, (new, old), caller) {
            Box::pin(self.validate_updated(target, change, (new, old), options, caller)).await?;
        }
        self.validate_changed_last(target, new, old, options, caller).await
    }

    /// Returns whether a policy or webhook may match a changed object, or the document that the client changes.
    fn is_seen_outside(
        &self,
        phase: Phase,
        target: Target<'_>,
        change: &dyn Change,
        (new, old): (&Value, &Value),
        caller: &Caller,
    ) -> bool {
        let what = (target, Operation::Update);
        if !self.is_decided_outside(target, Operation::Update) {
            return false;
        }
        let (document, before) = (change.document(new), change.document(old));
        let (new, old) = (document.as_ref().or(Some(new)), before.as_ref().or(Some(old)));
        match phase {
            Phase::Admit => self.is_changed_outside(what, new, old, caller),
            Phase::Validate => self.is_refused_outside(what, new, old, caller),
        }
    }

    /// Lets policies and webhooks change an updated object, or the document that the client changes.
    async fn mutate_updated(
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
            let mutated = self.mutate_outside(question, caller, async |_, _| Ok(())).await?;
            change.take_over(&mutated, new);
            return Ok(());
        }
        let again =
            async |object: &mut Value, caller: &mut Caller| self.mutate_changed_within(target, object, old, caller);
        *new = self.mutate_outside(Question::update(target, new, old, options), caller, again).await?;
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
        self.validate_outside(Question::update(target, new, old, options), caller).await
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
            custom.validate_update(target.subresource, new, old, &mut errors, &mut caller.warnings);
        }
        if errors.is_empty() {
            match (target.subresource, strategy.subresource(target.subresource)) {
                ("status", _) => (strategy.status_warnings)(new, &mut caller.warnings),
                (_, Some(_)) => {}
                _ => (strategy.warnings)(new, Some(old), &mut caller.warnings),
            }
            return Ok(());
        }
        // A webhook may have given it another name, which is what is wrong then.
        let name = if target.subresource.is_empty() { new.str_at(&["metadata", "name"]) } else { target.name };
        Err(ApiError::invalid(&served.stored.group, &served.kind().name, name, &errors.0))
    }

    /// Stores a changed object. Writes nothing if it did not change, and removes it if it waited only for its
    /// finalizers. Returns the object and whether a write was made; `None` when `current` is no longer the newest
    /// state.
    async fn store_change(
        &self,
        target: Target<'_>,
        new: Value,
        old: &Value,
        current: &Arc<Object>,
        options: &WriteOptions,
    ) -> ApiResult<Option<(Entity, bool)>> {
        let served = target.served;
        let gone = may_go(&new);
        self.convert_to_store(served, &new, options.dry_run || gone).await?;
        let unchanged = convert::is_unchanged(served, &new, old, current)?;
        if options.dry_run || (unchanged && !gone) {
            if unchanged {
                return Ok(Some((Entity::Stored(current.clone()), false)));
            }
            let mut shown = convert::as_if_stored(served, new)?;
            shown.set_at(&["metadata", "resourceVersion"], current.revision().to_string());
            encode::order_metadata(&mut shown, served.of());
            return Ok(Some((Entity::Built(shown), false)));
        }
        let key = served.key(target.namespace, target.name);
        let expectation = Expectation::Revision(current.revision());
        if gone {
            let write = Write { table: served.table.clone(), key, expectation, mutation: Mutation::Delete };
            return Ok(match self.write(write).await? {
                Outcome::Committed { object, .. } => {
                    self.after_delete(target, &object).await;
                    let mut shown = convert::as_if_stored(served, new)?;
                    shown.set_at(&["metadata", "resourceVersion"], current.revision().to_string());
                    encode::order_metadata(&mut shown, served.of());
                    Some((Entity::Built(shown), true))
                }
                Outcome::Conflict { .. } => None,
            });
        }
        Ok(match self.put(served, key, expectation, encode::draft(served, &new)?).await? {
            Outcome::Committed { object, .. } => Some((Entity::Stored(object), true)),
            Outcome::Conflict { .. } => None,
        })
    }
}

/// Replaces members of `new` that equal those of `old` by the same shared value, so that later steps need not compare,
/// check or encode them again.
fn share(new: &mut Value, old: &Value) {
    for (key, member) in new.as_object_mut().into_iter().flat_map(Map::iter_mut) {
        let before = old.at(&[key]);
        if matches!(member, Value::Object(_)) && !member.is_same(before) && member == before {
            *member = before.clone();
        }
    }
}

/// Returns whether an object that is being deleted has nothing left to wait for.
pub(super) fn may_go(object: &Value) -> bool {
    let metadata = object.at(&["metadata"]);
    !metadata.at(&["deletionTimestamp"]).is_null()
        && metadata.int_at(&["deletionGracePeriodSeconds"]).unwrap_or(0) == 0
        && metadata.list_at(&["finalizers"]).is_empty()
        && object.list_at(&["spec", "finalizers"]).is_empty()
}

/// Returns 400 when the body names another object than the path.
pub(super) fn check_identity(target: Target<'_>, object: &Value) -> ApiResult<()> {
    let name = object.str_at(&["metadata", "name"]);
    if name.is_empty() {
        let message =
            format!("the name of the object ({} based on URL) was undeterminable: name must be provided", target.name);
        return Err(ApiError::bad_request(message));
    }
    if name != target.name {
        let message = format!("the name of the object ({name}) does not match the name on the URL ({})", target.name);
        return Err(ApiError::bad_request(message));
    }
    let namespace = object.str_at(&["metadata", "namespace"]);
    if !namespace.is_empty() && namespace != target.namespace && target.served.resource.namespaced {
        let message = format!(
            "the namespace of the object ({namespace}) does not match the namespace on the URL ({})",
            target.namespace
        );
        return Err(ApiError::bad_request(message));
    }
    Ok(())
}
