//! Asks admission policies and webhooks about writes, at the points where the reference asks them.
//!
//! A write that no policy and no webhook matches costs only the calls of [`Admission::is_changed_outside`] and
//! [`Admission::is_refused_outside`].

use std::sync::Arc;

use flotilla_cluster::Object;
use flotilla_proto::value::Value;

use super::{Admission, DynamicAttributes, MatchAttributes, Operation};
use crate::fieldmanager;
use crate::request::{Caller, DeleteOptions, WriteOptions};
use crate::status::ApiResult;
use crate::tables::{GroupVersionKind, GroupVersionResource, Target, convert, owners, place, stored_tree, wipe};

/// A write about which policies and webhooks are asked.
#[derive(Debug)]
pub struct Question<'a> {
    target: Target<'a>,
    operation: Operation,
    object: Option<&'a Value>,
    old: Option<&'a Value>,
    /// Options of the request, in the form of their API type.
    options: Option<Value>,
    dry_run: bool,
}

impl<'a> Question<'a> {
    /// Returns the question about a new object, or about the document of an action.
    pub fn create(target: Target<'a>, object: &'a Value, options: &WriteOptions) -> Self {
        let dry_run = options.dry_run;
        let options = Some(options.to_value("CreateOptions"));
        Self { target, operation: Operation::Create, object: Some(object), old: None, options, dry_run }
    }

    /// Returns the question about an updated object.
    pub fn update(target: Target<'a>, object: &'a Value, old: &'a Value, options: &WriteOptions) -> Self {
        let dry_run = options.dry_run;
        let options = Some(options.to_value("UpdateOptions"));
        Self { target, operation: Operation::Update, object: Some(object), old: Some(old), options, dry_run }
    }

    fn for_matching(&self, admission: &'a Admission) -> MatchAttributes<'a> {
        MatchAttributes::of(&admission.tables, self.target, self.operation, self.object, self.old)
    }

    fn attributes(self, admission: &'a Admission, caller: &Caller) -> DynamicAttributes<'a> {
        let MatchAttributes { served, subresource, namespace, name, .. } = self.for_matching(admission);
        DynamicAttributes {
            admission,
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
            user: Arc::clone(caller.identity.user()),
            ends: caller.ends,
            records_objects: caller.record.as_ref().is_some_and(|record| record.wants_object),
            reinvocation: Default::default(),
            notices: Default::default(),
            variables: Default::default(),
        }
    }
}

/// Copies warnings and audit annotations of policies and webhooks to the caller's response.
fn add_notices(attributes: &mut DynamicAttributes<'_>, caller: &mut Caller) {
    let notices = std::mem::take(attributes.notices.get_mut());
    caller.notices.warnings.extend(notices.warnings);
    caller.notices.annotations.extend(notices.annotations);
}

impl Admission {
    /// Returns whether a policy or webhook may decide about an operation on a resource.
    pub fn is_decided_outside(&self, target: Target<'_>, operation: Operation) -> bool {
        self.concerns(&target.served.resource.name, operation)
    }

    /// Returns whether a policy or webhook may change an object; `old` is the stored object. Compares the write with
    /// their criteria, without an allocation.
    pub fn is_changed_outside(
        &self,
        what: (Target<'_>, Operation),
        object: Option<&Value>,
        old: Option<&Value>,
        caller: &Caller,
    ) -> bool {
        self.seen_outside(what, object, old, caller).is_some_and(|write| self.may_change(&write))
    }

    /// Returns whether a policy or webhook may refuse an object, as for [`Admission::is_changed_outside`].
    pub fn is_refused_outside(
        &self,
        what: (Target<'_>, Operation),
        object: Option<&Value>,
        old: Option<&Value>,
        caller: &Caller,
    ) -> bool {
        self.seen_outside(what, object, old, caller).is_some_and(|write| self.may_refuse(&write))
    }

    /// Returns whether a policy or webhook may change or refuse an object, as for [`Admission::is_changed_outside`].
    fn is_asked_outside(
        &self,
        what: (Target<'_>, Operation),
        object: Option<&Value>,
        old: Option<&Value>,
        caller: &Caller,
    ) -> bool {
        self.seen_outside(what, object, old, caller)
            .is_some_and(|write| self.may_change(&write) || self.may_refuse(&write))
    }

    /// Returns the attributes of a write, for comparison with the criteria of policies and webhooks. Returns `None` for
    /// a write of the server itself, and for a write that concerns none of them.
    fn seen_outside<'a>(
        &'a self,
        (target, operation): (Target<'a>, Operation),
        object: Option<&'a Value>,
        old: Option<&'a Value>,
        caller: &Caller,
    ) -> Option<MatchAttributes<'a>> {
        (!caller.identity.is_server() && self.is_decided_outside(target, operation))
            .then(|| MatchAttributes::of(&self.tables, target, operation, object, old))
    }

    /// Lets policies and webhooks change an object. Runs the server's own plugins (`again`) once more if they changed
    /// it.
    ///
    /// # Errors
    /// Their refusal.
    pub async fn mutate_outside(
        &self,
        question: Question<'_>,
        caller: &mut Caller,
        mut again: impl AsyncFnMut(&mut Value, &mut Caller) -> ApiResult<()>,
    ) -> ApiResult<Value> {
        let mut attributes = question.attributes(self, caller);
        let before = attributes.object.clone().unwrap_or_default();
        let mutated = loop {
            match Admission::mutate(&mut attributes).await {
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
        add_notices(&mut attributes, caller);
        mutated?;
        let mut object = attributes.object.take().unwrap_or_default();
        if !object.is_same(&before) && object != before {
            keep_owners(&mut object, &before, caller);
            owners::dedup_mutated(&mut object, &mut caller.notices.warnings);
        }
        Ok(object)
    }

    /// Lets policies and webhooks validate a finished object.
    ///
    /// # Errors
    /// Their refusal.
    pub async fn validate_outside(&self, question: Question<'_>, caller: &mut Caller) -> ApiResult<()> {
        let mut attributes = question.attributes(self, caller);
        let validated = Admission::validate(&attributes).await;
        add_notices(&mut attributes, caller);
        validated
    }

    /// Lets policies and webhooks change or refuse a new object that is not finished.
    pub(super) async fn mutate_created(
        &self,
        target: Target<'_>,
        object: &mut Value,
        options: &WriteOptions,
        caller: &mut Caller,
    ) -> ApiResult<()> {
        wipe(object);
        let again = async |object: &mut Value, caller: &mut Caller| self.mutate_new_within(target, object, caller);
        *object = self.mutate_outside(Question::create(target, object, options), caller, again).await?;
        place(target, object)
    }

    /// Returns whether a policy or webhook may decide about the deletion of an object.
    pub fn is_deletion_decided_outside(
        &self,
        target: Target<'_>,
        old: &Value,
        options: &DeleteOptions,
        caller: &Caller,
    ) -> bool {
        let what = (deleted(target, options), Operation::Delete);
        self.is_asked_outside(what, None, Some(old), caller)
    }

    /// Lets policies and webhooks decide about the deletion of an object. Changes that they make to the object are
    /// dropped.
    ///
    /// # Errors
    /// Their refusal.
    pub async fn decide_deletion(
        &self,
        target: Target<'_>,
        current: &Arc<Object>,
        options: &DeleteOptions,
        caller: &mut Caller,
    ) -> ApiResult<()> {
        self.tables.convert_to_show(target.served, std::slice::from_ref(current)).await?;
        let old = convert::current(target.served, stored_tree(current)?)?;
        let question = Question {
            target: deleted(target, options),
            operation: Operation::Delete,
            object: None,
            old: Some(&old),
            options: Some(options.to_value()),
            dry_run: options.dry_run,
        };
        self.decide(question, caller, |_| ()).await.map(drop)
    }

    /// Lets policies and webhooks decide about the document of an action. They may change the document, which
    /// `finish` then completes.
    ///
    /// # Errors
    /// Their refusal.
    pub async fn decide_action(
        &self,
        target: Target<'_>,
        document: &mut Value,
        options: &WriteOptions,
        caller: &mut Caller,
        finish: impl FnOnce(&mut Value),
    ) -> ApiResult<()> {
        let what = (target, Operation::Create);
        if self.is_asked_outside(what, Some(document), None, caller) {
            let question = Question::create(target, document, options);
            *document = self.decide(question, caller, finish).await?;
        }
        Ok(())
    }

    /// Lets policies and webhooks decide about a connection. Changes that they make to its options are dropped.
    ///
    /// # Errors
    /// Their refusal.
    pub async fn decide_connection(&self, target: Target<'_>, options: &Value, caller: &mut Caller) -> ApiResult<()> {
        let object = Some(options);
        let question =
            Question { target, operation: Operation::Connect, object, old: None, options: None, dry_run: false };
        self.decide(question, caller, |_| ()).await.map(drop)
    }

    /// Lets policies and webhooks change an object, finishes it, and lets them validate the result.
    async fn decide(
        &self,
        question: Question<'_>,
        caller: &mut Caller,
        finish: impl FnOnce(&mut Value),
    ) -> ApiResult<Value> {
        let finished = Question { options: question.options.clone(), ..question };
        let mut object = self.mutate_outside(question, caller, async |_, _| Ok(())).await?;
        finish(&mut object);
        let object_seen = finished.object.map(|_| &object);
        self.validate_outside(Question { object: object_seen, ..finished }, caller).await?;
        Ok(object)
    }
}

/// Returns the target of a deletion as admission sees it: without a name when a collection is deleted.
pub(super) fn deleted<'a>(target: Target<'a>, options: &DeleteOptions) -> Target<'a> {
    Target { name: if options.is_of_collection { "" } else { target.name }, ..target }
}

/// Restores `managedFields` if policies or webhooks made them unreadable.
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
        caller.notices.warnings.push(format!(
            ".metadata.managedFields was in an invalid state after admission; this could be caused by an outdated \
             mutating admission controller; please fix your requests: {why}"
        ));
    }
}
