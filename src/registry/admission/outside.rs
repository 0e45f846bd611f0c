//! Asking policies and webhooks about writes: what registry operations call, at their places in the reference's order.
//!
//! A write that none of them wants to see pays for [`Registry::is_changed_outside`] and
//! [`Registry::is_refused_outside`] alone.

use std::sync::Arc;

use flotilla_cluster::Object;
use flotilla_proto::value::Value;

use super::super::{DeleteOptions, Registry, Target, WriteOptions, convert, owners, stored_tree, subresources};
use crate::admission::{Attributes, GroupVersionKind, GroupVersionResource, Operation, Subject};
use crate::fieldmanager;
use crate::request::Caller;
use crate::status::ApiResult;

/// Metadata that no client sets on what it creates.
const SYSTEM_FIELDS: [&str; 5] =
    ["creationTimestamp", "uid", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"];

/// What those outside are asked about.
pub(in super::super) struct Asked<'a> {
    pub(in super::super) target: Target<'a>,
    pub(in super::super) operation: Operation,
    pub(in super::super) object: Option<&'a Value>,
    pub(in super::super) old: Option<&'a Value>,
    /// Options of the request as the object that they are.
    pub(in super::super) options: Option<Value>,
    pub(in super::super) dry_run: bool,
}

impl<'a> Asked<'a> {
    /// A new object, or a document that is acted on.
    pub(in super::super) fn create(target: Target<'a>, object: &'a Value, options: &WriteOptions) -> Self {
        let dry_run = options.dry_run;
        let options = Some(options.to_value("CreateOptions"));
        Self { target, operation: Operation::Create, object: Some(object), old: None, options, dry_run }
    }

    /// A changed object.
    pub(in super::super) fn update(
        target: Target<'a>,
        object: &'a Value,
        old: &'a Value,
        options: &WriteOptions,
    ) -> Self {
        let dry_run = options.dry_run;
        let options = Some(options.to_value("UpdateOptions"));
        Self { target, operation: Operation::Update, object: Some(object), old: Some(old), options, dry_run }
    }

    fn subject(&self, registry: &'a Registry) -> Subject<'a> {
        Subject::of(registry, self.target, self.operation, self.object, self.old)
    }

    fn attributes(self, registry: &'a Registry, caller: &Caller) -> Attributes<'a> {
        let Subject { served, subresource, namespace, name, .. } = self.subject(registry);
        Attributes {
            registry,
            served,
            kind: GroupVersionKind::of(served, subresource),
            resource: GroupVersionResource::of(served),
            subresource,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            operation: self.operation,
            object: self.object.cloned(),
            old: self.old.cloned(),
            options: self.options,
            dry_run: self.dry_run,
            user: caller.user.clone(),
            ends: caller.ends,
            reinvocation: Default::default(),
            told: Default::default(),
            scene: Default::default(),
        }
    }
}

/// Passes on what those outside told besides their decision.
fn tell(attributes: &mut Attributes<'_>, caller: &mut Caller) {
    let told = std::mem::take(attributes.told.get_mut());
    caller.warnings.extend(told.warnings);
    caller.annotations.extend(told.annotations);
}

impl Registry {
    /// Whether anybody outside may have something to say of what a caller does to a resource.
    pub fn is_decided_outside(&self, target: Target<'_>, operation: Operation) -> bool {
        self.admission.concerns(&target.served.resource.name, operation)
    }

    /// Whether anybody outside may want to change an object; `old` is what it was. Asking costs a look at what they say
    /// they want, and no allocation.
    pub(in super::super) fn is_changed_outside(
        &self,
        (target, operation): (Target<'_>, Operation),
        object: Option<&Value>,
        old: Option<&Value>,
        caller: &Caller,
    ) -> bool {
        !caller.is_server
            && self.is_decided_outside(target, operation)
            && self.admission.may_change(&Subject::of(self, target, operation, object, old))
    }

    /// Whether anybody outside may want to refuse an object, as for [`Registry::is_changed_outside`].
    pub(in super::super) fn is_refused_outside(
        &self,
        (target, operation): (Target<'_>, Operation),
        object: Option<&Value>,
        old: Option<&Value>,
        caller: &Caller,
    ) -> bool {
        !caller.is_server
            && self.is_decided_outside(target, operation)
            && self.admission.may_refuse(&Subject::of(self, target, operation, object, old))
    }

    /// Has those outside change what is to be written, and the server's own plugins (`again`) once more after them
    /// where they did.
    pub(in super::super) async fn mutate_outside(
        &self,
        asked: Asked<'_>,
        caller: &mut Caller,
        mut again: impl AsyncFnMut(&mut Value, &mut Caller) -> ApiResult<()>,
    ) -> ApiResult<Value> {
        let mut attributes = asked.attributes(self, caller);
        let before = attributes.object.clone().unwrap_or_default();
        let mutated = loop {
            match self.admission.mutate(&mut attributes).await {
                Ok(true) => {
                    attributes.reinvocation.is_second = true;
                    let Some(object) = &mut attributes.object else { break Ok(()) };
                    if let Err(refused) = again(object, caller).await {
                        break Err(refused);
                    }
                }
                Ok(false) => break Ok(()),
                Err(refused) => break Err(refused),
            }
        };
        tell(&mut attributes, caller);
        mutated?;
        let mut object = attributes.object.take().unwrap_or_default();
        if !object.is_same(&before) && object != before {
            keep_owners(&mut object, &before, caller);
            owners::dedup_mutated(&mut object, &mut caller.warnings);
        }
        Ok(object)
    }

    /// Has those outside look at what is finished.
    pub(in super::super) async fn validate_outside(&self, asked: Asked<'_>, caller: &mut Caller) -> ApiResult<()> {
        let mut attributes = asked.attributes(self, caller);
        let validated = self.admission.validate(&attributes).await;
        tell(&mut attributes, caller);
        validated
    }

    /// Has those outside decide about a new object that may still change.
    pub(in super::super) async fn mutate_created(
        &self,
        target: Target<'_>,
        object: &mut Value,
        options: &WriteOptions,
        caller: &mut Caller,
    ) -> ApiResult<()> {
        for field in SYSTEM_FIELDS {
            object.remove_at(&["metadata", field]);
        }
        let again =
            async |object: &mut Value, caller: &mut Caller| self.admit_create_within(target, object, caller).await;
        *object = self.mutate_outside(Asked::create(target, object, options), caller, again).await?;
        super::super::place(target, object)
    }

    /// Whether anybody outside may have something to say of the deletion of an object.
    pub(in super::super) fn is_deletion_decided_outside(
        &self,
        target: Target<'_>,
        old: &Value,
        options: &DeleteOptions,
        caller: &Caller,
    ) -> bool {
        let what = (deleted(target, options), Operation::Delete);
        self.is_changed_outside(what, None, Some(old), caller) || self.is_refused_outside(what, None, Some(old), caller)
    }

    /// Has those outside decide about the deletion of an object: what they make of it is dropped.
    pub(in super::super) async fn decide_deletion(
        &self,
        target: Target<'_>,
        current: &Arc<Object>,
        options: &DeleteOptions,
        caller: &mut Caller,
    ) -> ApiResult<()> {
        self.convert_to_show(target.served, std::slice::from_ref(current)).await?;
        let old = convert::current(target.served, stored_tree(current)?)?;
        let asked = Asked {
            target: deleted(target, options),
            operation: Operation::Delete,
            object: None,
            old: Some(&old),
            options: Some(options.to_value()),
            dry_run: options.dry_run,
        };
        self.decide(asked, caller, |_| ()).await.map(drop)
    }

    /// Has those outside decide about a document to act on, or the options of a connection, which they may change.
    ///
    /// # Errors
    /// Their refusal.
    pub async fn decide_action(
        &self,
        target: Target<'_>,
        document: &mut Value,
        options: &WriteOptions,
        caller: &mut Caller,
    ) -> ApiResult<()> {
        let what = (target, Operation::Create);
        if self.is_changed_outside(what, Some(document), None, caller)
            || self.is_refused_outside(what, Some(document), None, caller)
        {
            let asked = Asked::create(target, document, options);
            *document = self.decide(asked, caller, |document| subresources::complete(self, target, document)).await?;
        }
        Ok(())
    }

    /// As [`Registry::decide_action`], for the way to something else.
    ///
    /// # Errors
    /// Their refusal.
    pub async fn decide_connection(&self, target: Target<'_>, options: &Value, caller: &mut Caller) -> ApiResult<()> {
        let object = Some(options);
        let asked = Asked { target, operation: Operation::Connect, object, old: None, options: None, dry_run: false };
        self.decide(asked, caller, |_| ()).await.map(drop)
    }

    /// Has those outside change what a write is about, finishes that, and has them look at it.
    async fn decide(&self, asked: Asked<'_>, caller: &mut Caller, finish: impl FnOnce(&mut Value)) -> ApiResult<Value> {
        let finished = Asked { options: asked.options.clone(), ..asked };
        let mut object = self.mutate_outside(asked, caller, async |_, _| Ok(())).await?;
        finish(&mut object);
        let object_seen = finished.object.map(|_| &object);
        self.validate_outside(Asked { object: object_seen, ..finished }, caller).await?;
        Ok(object)
    }
}

/// What is deleted, as those outside are told: of a collection no object has a name.
fn deleted<'a>(target: Target<'a>, options: &DeleteOptions) -> Target<'a> {
    Target { name: if options.is_of_collection { "" } else { target.name }, ..target }
}

/// Puts the owners of fields back where what those outside made of them cannot be read.
fn keep_owners(object: &mut Value, before: &Value, caller: &mut Caller) {
    let path = ["metadata", "managedFields"];
    if object.at(&path) == before.at(&path) {
        return;
    }
    if let Err(why) = fieldmanager::validate(object.at(&path)) {
        match before.at(&path) {
            Value::Null => drop(object.remove_at(&path)),
            owners => object.set_at(&path, owners.clone()),
        }
        caller.warnings.push(format!(
            ".metadata.managedFields was in an invalid state after admission; this could be caused by an outdated \
             mutating admission controller; please fix your requests: {why}"
        ));
    }
}
