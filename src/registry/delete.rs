//! Deletes objects: at once, after a grace period, or once their finalizers are gone (KEP-2839 names the phases).

use std::sync::Arc;

use flotilla_cluster::{Expectation, Mutation, Object, Outcome, Write};
use flotilla_proto::value::Value;

use super::deletion_step::{DeletionStep, Grace, grace, is_definition, is_namespace, step};
use super::{DeleteOptions, Entity, Registry, Served, Target, WriteOptions, convert, encode, stored_tree};
use crate::admission::plugins::namespace_lifecycle;
use crate::kinds::scheduling::priority_class;
use crate::limits;
use crate::request::Caller;
use crate::status::{ApiError, ApiResult};
use crate::unreadable;

pub use super::deletion_step::{FOREGROUND, ORPHAN};

/// Namespaces that a cluster needs and that cannot be deleted.
const PROTECTED_NAMESPACES: [&str; 3] = ["default", "kube-public", "kube-system"];

/// The outcome of a deletion.
#[derive(Debug)]
pub struct Deleted {
    /// The object as it is now, or as it was before it was removed.
    pub entity: Entity,
    /// UID of the object.
    pub uid: String,
    /// Whether the object was removed, rather than only marked.
    pub gone: bool,
    /// Whether the object could not be decoded. The answer then has nothing to show.
    pub is_unreadable: bool,
    /// Whether the store made a write.
    stored: bool,
}

impl Deleted {
    /// Returns the outcome for an object that still exists.
    fn marked(entity: Entity, uid: String, stored: bool) -> Self {
        Self { entity, uid, gone: false, is_unreadable: false, stored }
    }

    /// Returns the outcome for an object that was removed, with the last state of the object.
    fn removed(object: Arc<Object>, uid: String) -> Self {
        Self { gone: true, ..Self::marked(Entity::Stored(object), uid, true) }
    }

    /// Returns the outcome for an object that was removed although it could not be decoded.
    pub(super) fn removed_unread(object: Arc<Object>) -> Self {
        Self { is_unreadable: true, ..Self::removed(object, String::new()) }
    }
}

/// Warns the client about the dependents of the object, if the request does not state their fate and the default of the
/// kind may be a surprise.
pub(super) fn warn_of_dependents(served: &Served, options: &DeleteOptions, caller: &mut Caller) {
    if options.propagation.is_none() {
        caller.notices.warnings.extend(served.strategy.dependents_warning.map(str::to_owned));
    }
}

impl Registry {
    /// Deletes an object, or marks it as being deleted if finalizers or a grace period must pass first.
    pub async fn delete(&self, target: Target<'_>, options: &DeleteOptions, caller: &mut Caller) -> ApiResult<Deleted> {
        let served = target.served;
        admit_delete(target, self.admission.plugins.is_on(&namespace_lifecycle::PLUGIN))?;
        warn_of_dependents(served, options, caller);
        let mut options = options.clone();
        if options.grace_seconds.is_some_and(|seconds| seconds < 0) {
            options.grace_seconds = Some(1);
        }
        let mut marked: Option<Deleted> = None;
        for _ in 0..limits::CHANGE_ATTEMPTS {
            let current = self.tables.current(served, target.namespace, target.name);
            // Another client may have removed the object that was marked here: then the request is fulfilled.
            if let Some(done) = marked.take() {
                if !is_there(current.as_deref(), &done.uid)? {
                    return Ok(done);
                }
                marked = Some(done);
            }
            let Some(current) = current else {
                match self.confirm_basis(target, None, caller).await? {
                    true => return Err(served.not_found(target.name)),
                    false => continue,
                }
            };
            let tried = match options.despite_read_errors {
                Some(_) if unreadable::prove(&current).is_err() => {
                    self.remove_unreadable(target, &current, &options, caller).await
                }
                _ => self.try_delete(target, &current, &mut options, &mut marked, caller).await,
            };
            if self.is_final(target, &current, &tried, |deleted| deleted.stored, caller).await?
                && let Some(deleted) = tried.transpose()
            {
                return deleted;
            }
        }
        Err(ApiError::conflict(served.group(), &served.resource.name, target.name, "the object keeps changing"))
    }

    async fn try_delete(
        &self,
        target: Target<'_>,
        current: &Arc<Object>,
        options: &mut DeleteOptions,
        marked: &mut Option<Deleted>,
        caller: &mut Caller,
    ) -> ApiResult<Option<Deleted>> {
        self.tables.convert_to_show(target.served, std::slice::from_ref(current)).await?;
        let old = stored_tree(current)?;
        check_preconditions(target, options, &old, current)?;
        self.admission.admit_deletion(target, &old, options, caller)?;
        let uid = old.str_at(&["metadata", "uid"]).to_owned();
        let is_marked = !old.at(&["metadata", "deletionTimestamp"]).is_null();
        let step = step(target.served, &old, options);
        let is_decided_outside = !options.is_decided
            && !matches!(step, DeletionStep::Wait)
            && self.admission.is_deletion_decided_outside(target, &old, options, caller);
        if is_decided_outside {
            if !self.confirm_basis(target, Some(current), caller).await? {
                return Ok(None);
            }
            if let (Grace::Set { seconds, .. }, false) = (grace(target.served, &old, options), is_marked) {
                options.grace_seconds = Some(seconds);
            }
            let with_uid = with_own_uid(target, &uid, options);
            Box::pin(self.admission.decide_deletion(target, current, with_uid.as_ref().unwrap_or(options), caller))
                .await?;
        }
        match step {
            DeletionStep::Wait => Ok(Some(Deleted::marked(Entity::Stored(current.clone()), uid, false))),
            DeletionStep::Remove => {
                if options.dry_run {
                    let entity = Entity::Stored(current.clone());
                    return Ok(Some(Deleted { gone: true, ..Deleted::marked(entity, uid, false) }));
                }
                let removed = self.remove(target, current).await?;
                Ok(removed.map(|object| Deleted::removed(object, uid)))
            }
            DeletionStep::Mark(mut state, at_once) => {
                encode::order_metadata(&mut state, &target.served.stored.of);
                let write = WriteOptions { dry_run: options.dry_run, ..WriteOptions::default() };
                let Some((entity, stored)) = self.keep(target, state, &old, current, &write).await? else {
                    return Ok(None);
                };
                let object = match entity {
                    Entity::Stored(object) if at_once => object,
                    entity => return Ok(Some(Deleted { gone: at_once, ..Deleted::marked(entity, uid, stored) })),
                };
                // A revision that the client demanded now means the revision of the marked object.
                options.resource_version.iter_mut().for_each(|seen| *seen = object.revision().to_string());
                if is_decided_outside {
                    Box::pin(self.admission.decide_deletion(target, &object, options, caller)).await?;
                }
                self.remove_marked(target, object, uid, marked).await
            }
        }
    }

    /// Removes a marked object that nothing holds any more. The mark was stored only for watchers. If another write
    /// came first, leaves the outcome in `marked` and returns `None`.
    async fn remove_marked(
        &self,
        target: Target<'_>,
        object: Arc<Object>,
        uid: String,
        marked: &mut Option<Deleted>,
    ) -> ApiResult<Option<Deleted>> {
        match self.remove(target, &object).await? {
            Some(object) => Ok(Some(Deleted::removed(object, uid))),
            None => {
                *marked = Some(Deleted::removed(object, uid));
                Ok(None)
            }
        }
    }

    /// Removes an object whose lifetime is over, as etcd does at the end of a lease: without admission, and even if it
    /// has finalizers. An object that has changed meanwhile stays.
    ///
    /// # Errors
    /// The store cannot write.
    pub async fn remove_expired(&self, target: Target<'_>, object: &Object) -> ApiResult<()> {
        self.remove(target, object).await.map(drop)
    }

    /// Removes an object from its table. Returns `None` if the object has changed meanwhile.
    async fn remove(&self, target: Target<'_>, current: &Object) -> ApiResult<Option<Arc<Object>>> {
        let write = Write {
            table: target.served.table.clone(),
            key: current.key().clone(),
            expectation: Expectation::Revision(current.revision()),
            mutation: Mutation::Delete,
        };
        Ok(match self.tables.write(write).await? {
            Outcome::Committed { object, .. } => {
                self.after_delete(target, &object).await;
                Some(object)
            }
            Outcome::Conflict { .. } => None,
        })
    }

    /// Stores a mark. Unlike an update, this never removes the object. Returns the object, and whether the store made a
    /// write. Returns `None` if another write came first.
    async fn keep(
        &self,
        target: Target<'_>,
        marked: Value,
        old: &Value,
        current: &Arc<Object>,
        options: &WriteOptions,
    ) -> ApiResult<Option<(Entity, bool)>> {
        if marked == *old {
            return Ok(Some((Entity::Stored(current.clone()), false)));
        }
        self.tables.convert_to_store(target.served, &marked, options.dry_run).await?;
        if options.dry_run {
            return Ok(Some((Entity::Built(convert::as_if_stored(target.served, marked)?), false)));
        }
        let draft = encode::draft(target.served, &marked)?;
        let expectation = Expectation::Revision(current.revision());
        Ok(match self.tables.put(target.served, current.key().clone(), expectation, draft).await? {
            Outcome::Committed { object, .. } => Some((Entity::Stored(object), true)),
            Outcome::Conflict { .. } => None,
        })
    }
}

/// Returns the options as policies and webhooks see them for Namespaces and definitions: with the object's UID as a
/// precondition, because their deletion takes long and must not hit a later object with the same name. Returns `None`
/// if the options stay as they are.
fn with_own_uid(target: Target<'_>, uid: &str, options: &DeleteOptions) -> Option<DeleteOptions> {
    const KINDS: [(&str, &str); 2] = [("", "namespaces"), ("apiextensions.k8s.io", "customresourcedefinitions")];
    let is_such = KINDS.contains(&(target.served.group(), &*target.served.resource.name));
    (is_such && options.uid.is_none()).then(|| DeleteOptions { uid: Some(uid.to_owned()), ..options.clone() })
}

/// Refuses deletions that would break the cluster.
fn admit_delete(target: Target<'_>, protects_namespaces: bool) -> ApiResult<()> {
    if protects_namespaces && is_namespace(target.served) && PROTECTED_NAMESPACES.contains(&target.name) {
        let why = "this namespace may not be deleted";
        return Err(ApiError::forbidden("", "namespaces", target.name, why));
    }
    let (group, resource) = (target.served.group(), &*target.served.resource.name);
    if (group, resource) == ("scheduling.k8s.io", "priorityclasses") && is_system_class(target.name) {
        let why = "this is a system priority class and cannot be deleted";
        return Err(ApiError::forbidden(group, resource, target.name, why));
    }
    Ok(())
}

/// Returns whether the current object has this UID. Another object may have taken the name.
fn is_there(current: Option<&Object>, uid: &str) -> ApiResult<bool> {
    let current = current.map(stored_tree).transpose()?;
    Ok(current.is_some_and(|current| current.str_at(&["metadata", "uid"]) == uid))
}

fn is_system_class(name: &str) -> bool {
    priority_class::SYSTEM_CLASSES.iter().any(|(known, _)| *known == name)
}

fn check_preconditions(target: Target<'_>, options: &DeleteOptions, old: &Value, current: &Object) -> ApiResult<()> {
    // Namespaces and definitions are checked by rules of their own, which have other wordings.
    let plain = is_namespace(target.served) || is_definition(target.served);
    let resource = if plain { &target.served.resource.name } else { &target.served.kind().name };
    let failed = |what: &str, stated: &str, own: &str, since: &str| {
        let why = if plain {
            format!("Precondition failed: {what} in precondition: {stated}, {what} in object meta: {own}")
        } else {
            format!(
                "the {what} in the precondition ({stated}) does not match the {what} in record ({own}). The object might have been {since}"
            )
        };
        // Events are stored as those of the core group.
        let group = Some(target.served.group()).filter(|group| *group != "events.k8s.io").unwrap_or_default();
        Err(ApiError::conflict(group, resource, target.name, &why))
    };
    let own = old.str_at(&["metadata", "uid"]);
    if let Some(uid) = options.uid.as_deref().filter(|uid| *uid != own) {
        return failed("UID", uid, own, "deleted and then recreated");
    }
    let own = current.revision().to_string();
    if let Some(revision) = options.resource_version.as_deref().filter(|revision| *revision != own) {
        return failed("ResourceVersion", revision, &own, "modified");
    }
    Ok(())
}

#[cfg(test)]
#[path = "delete_tests.rs"]
mod tests;
