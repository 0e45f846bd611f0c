//! Changes objects: the path that PUT, PATCH and apply share.

use std::borrow::Cow;
use std::sync::Arc;

use flotilla_cluster::{Expectation, Mutation, Object, Outcome, Write};
use flotilla_proto::value::{Map, Value};

use super::carry_over::prepare;
use super::change::{Change, check_identity};
use super::ownership::{Recorded, TOO_MANY_VERSIONS};
use super::precondition::{MODIFIED, check_revision, check_uid};
use super::{Entity, Registry, Served, Target, WriteOptions, Written, convert, encode, owners, place};
use crate::fieldmanager;
use crate::limits;
use crate::metrics::admission::Phase;
use crate::request::Caller;
use crate::status::{ApiError, ApiResult};

impl Registry {
    /// Changes an object. When another write comes first, repeats the change on the newer state, up to a bound.
    pub async fn update(
        &self,
        target: Target<'_>,
        change: &mut dyn Change,
        options: &WriteOptions,
        caller: &mut Caller,
    ) -> ApiResult<Written> {
        let served = target.served;
        let warned = caller.notices.warnings.len();
        for _ in 0..limits::CHANGE_ATTEMPTS {
            let Some(current) = self.tables.current(served, target.namespace, target.name) else {
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
            caller.notices.warnings.truncate(warned);
        }
        Err(ApiError::conflict(served.group(), &served.resource.name, target.name, MODIFIED))
    }

    /// Returns 404 if the object does not exist.
    pub(super) async fn must_exist(&self, target: Target<'_>, caller: &mut Caller) -> ApiResult<()> {
        let is_absent = || self.tables.current(target.served, target.namespace, target.name).is_none();
        match is_absent() && self.confirm_basis(target, None, caller).await? {
            true => Err(target.served.not_found(target.name)),
            false => Ok(()),
        }
    }

    /// Attempts a change on one state of an object. Returns `None` when that state is no longer the newest and the
    /// change may be repeated.
    async fn try_update(
        &self,
        target: Target<'_>,
        change: &mut dyn Change,
        current: &Arc<Object>,
        options: &WriteOptions,
        caller: &mut Caller,
    ) -> ApiResult<Option<Written>> {
        let served = target.served;
        self.tables.convert_to_show(served, std::slice::from_ref(current)).await?;
        let old = convert::current(served, encode::stored_tree(current)?)?;
        let shown = if served.custom.is_some() || served.is_stored_version() {
            Cow::Borrowed(&old)
        } else {
            Cow::Owned(convert::to_served(served, old.clone())?)
        };
        let mut new = self.applied(served, change, &shown, caller).await?;
        match change.replaces() {
            true => owners::dedup(&mut new, &mut caller.notices.warnings),
            false => owners::dedup_mutated(&mut new, &mut caller.notices.warnings),
        }
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
            let (subresource, untracked) = (target.subresource, change.untracked());
            self.record(Recorded { served, subresource, options, live: Some(&shown), untracked }, &mut new).await?;
        }
        convert::forget_equal(served, &mut new, &shown);
        let mut new = convert::to_stored(served, new);
        self.admission.mutate_changed_within(target, &mut new, &old, caller)?;
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

    /// Applies a change to an object, and has webhooks make the conversions that it needs for that.
    async fn applied(
        &self,
        served: &Served,
        change: &mut dyn Change,
        shown: &Value,
        caller: &mut Caller,
    ) -> ApiResult<Value> {
        let (warned, mut held) = (caller.notices.warnings.len(), Vec::new());
        for _ in 0..limits::OWNERS_CONVERSIONS_MAX {
            let applied = change.apply(shown, caller);
            let missing = change.missing_conversions();
            if missing.is_empty() {
                return applied;
            }
            caller.notices.warnings.truncate(warned);
            self.convert_missing(served, missing, &mut held).await?;
        }
        Err(ApiError::internal(TOO_MANY_VERSIONS))
    }

    /// Stores a changed object. Writes nothing if it did not change, and removes it if it waited only for its
    /// finalizers. Returns the object and whether a write was made. Returns `None` when `current` is no longer the
    /// newest state.
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
        self.tables.convert_to_store(served, &new, options.dry_run || gone).await?;
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
            return Ok(match self.tables.write(write).await? {
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
        Ok(match self.tables.put(served, key, expectation, encode::draft(served, &new)?).await? {
            Outcome::Committed { object, .. } => Some((Entity::Stored(object), true)),
            Outcome::Conflict { .. } => None,
        })
    }
}

/// Replaces members of `new` that equal those of `old` by the same shared value. Later steps then
/// need not compare, check or encode them again.
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
