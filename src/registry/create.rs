//! Creates objects.

use std::sync::Arc;

use flotilla_cluster::{Expectation, Mutation, Object, Outcome, Tenure, Write};
use flotilla_proto::conform;
use flotilla_proto::schema::{Presence, Shape, Type};
use flotilla_proto::value::Value;

use super::allocation::Allocation;
use super::ownership::Recorded;
use super::{
    Entity, Incoming, Registry, Target, WriteOptions, Written, convert, encode, generate, now, owners, place,
    stored_tree, stored_value, wipe,
};
use crate::access::{Attributes, Inquiry, ResourceAttributes};
use crate::admission::Operation;
use crate::custom;
use crate::field::Errors;
use crate::limits;
use crate::request::{Basis, Caller};
use crate::rules::{Generation, NameRule, Strategy, metadata};
use crate::status::{ApiError, ApiResult};

impl Registry {
    /// Returns the tenure in which this leader may create an object without catching up first: see
    /// [`Registry::create_in_tenure`]. Returns `None` if this replica does not lead, or if the create depends on more
    /// than the write itself proves.
    pub fn tenure(&self, target: Target<'_>) -> Option<Tenure> {
        // Addresses and ports are written without a tenure, and policies and webhooks must not be asked twice.
        let asks = || {
            self.admission.is_decided_outside(target, Operation::Create)
                || self.admission.plugins_ask_outside(target, Operation::Create)
        };
        let proves = || !target.served.strategy.allocates && !asks();
        self.tables.store.tenure(&self.tables.table(target.served)).filter(|_| proves())
    }

    /// Creates an object on the leader, and does not first confirm that the data of the decision are current. A write
    /// in the same term proves that. Returns any other outcome only once a quorum has confirmed the leader. Returns
    /// `None` if this replica no longer leads: the caller must create the object again.
    pub async fn create_in_tenure(
        &self,
        target: Target<'_>,
        incoming: Incoming,
        options: &WriteOptions,
        caller: &mut Caller,
        tenure: Tenure,
    ) -> ApiResult<Option<Written>> {
        let warned = caller.notices.warnings.len();
        caller.basis = Basis::in_tenure(tenure);
        let created = self.create(target, incoming, options, caller).await;
        caller.basis.end_tenure();
        let is_final = match &created {
            Ok(written) => written.stored,
            Err(error) => error.is_timeout(), // the write may have been made, so no second attempt
        };
        if !is_final {
            self.tables.catch_up_with(target.served, target.namespace, target.name).await?;
            if !self.tables.store.holds(tenure) {
                caller.notices.warnings.truncate(warned);
                return Ok(None);
            }
        }
        created.map(Some)
    }

    /// Creates an object that was decoded from a body, in the version of the request.
    pub async fn create(
        &self,
        target: Target<'_>,
        incoming: Incoming,
        options: &WriteOptions,
        caller: &mut Caller,
    ) -> ApiResult<Written> {
        let served = target.served;
        let mut object = incoming.value;
        self.refuse_undefined(target, &object)?;
        wipe(&mut object);
        place(target, &mut object)?;
        owners::dedup(&mut object, &mut caller.notices.warnings);
        if !incoming.owned {
            convert::default(served, &mut object)?;
            let untracked = incoming.untracked;
            Recorded { served, subresource: "", options, live: None, untracked }.record(&mut object);
        }
        let mut object = convert::to_stored(served, object);
        if self.admission.is_prepared(target, Operation::Create) {
            Box::pin(self.prepare(target, &object, options, caller)).await?;
        }
        self.admission.mutate_new(target, &mut object, options, caller).await?;
        self.check_grants(target, &object, None, caller).await?;
        self.store_new(target, object, options, caller).await
    }

    /// Creates an object after defaulting and mutating admission. It is in its stored version.
    pub(super) async fn store_new(
        &self,
        target: Target<'_>,
        object: Value,
        options: &WriteOptions,
        caller: &mut Caller,
    ) -> ApiResult<Written> {
        let generated = object.str_at(&["metadata", "name"]).is_empty();
        let prefix = object.str_at(&["metadata", "generateName"]).to_owned();
        if prefix.is_empty() {
            return self.store_named(target, object, options, caller).await;
        }
        let warned = caller.notices.warnings.len();
        for attempt in 1.. {
            let mut named = object.clone();
            if generated {
                // A name with a form of its own gets no suffix, which would not fit.
                let own = target.served.strategy.name == NameRule::Own;
                named.set_at(&["metadata", "name"], if own { prefix.clone() } else { generate(&prefix) });
            }
            match self.store_named(target, named, options, caller).await {
                Err(error) if error.reason != "AlreadyExists" => return Err(error),
                Err(error) if !generated || attempt == limits::GENERATED_NAMES => return Err(cannot_generate(error)),
                Err(_) => caller.notices.warnings.truncate(warned),
                written => return written,
            }
        }
        Err(ApiError::internal("no name could be generated"))
    }

    /// Creates an object under the name that it already has.
    async fn store_named(
        &self,
        target: Target<'_>,
        mut object: Value,
        options: &WriteOptions,
        caller: &mut Caller,
    ) -> ApiResult<Written> {
        let allocation = self.allocate_create(target, &mut object, options).await?;
        match self.store_prepared(target, &mut object, &allocation, options, caller).await {
            Ok(entity) => {
                self.finish_allocation(target, allocation).await;
                Ok(Written { entity, created: true, stored: !options.dry_run })
            }
            Err(error) => {
                self.release(target, object.str_at(&["metadata", "name"]), allocation, Some(&error)).await;
                Err(error)
            }
        }
    }

    async fn store_prepared(
        &self,
        target: Target<'_>,
        object: &mut Value,
        allocation: &Allocation,
        options: &WriteOptions,
        caller: &mut Caller,
    ) -> ApiResult<Entity> {
        let served = target.served;
        let stated = object.remove_at(&["metadata", "resourceVersion"]);
        prepare(served.strategy, &served.stored.of, object);
        if let Some(set_requester) = served.strategy.set_requester {
            set_requester(object, &requester(caller));
        }
        encode::order_changed(object, &served.stored.of, &Value::Null);
        self.validate_create(target, object, caller)?;
        convert::default_valid(served, object);
        self.authorize_create(target, caller).await?;
        self.admission.validate_new(target, object, options, caller).await?;
        convert::forget_empty(served, object, &Value::Null);
        allocation.begin_writing()?;
        check_unrevised(object, stated, options)?;
        self.insert(target, object, options, caller.basis.tenure()).await
    }

    /// Returns 403 when an update or patch would create the object and the user may not create it.
    async fn authorize_create(&self, target: Target<'_>, caller: &Caller) -> ApiResult<()> {
        if !matches!(caller.verb, "update" | "patch") {
            return Ok(());
        }
        let Target { served, namespace, name, subresource } = target;
        let (verb, group, resource, version) =
            ("create", served.group(), &*served.resource.name, &*served.kind().version);
        let of =
            ResourceAttributes { verb, group, version, resource, subresource, namespace, name, ..Default::default() };
        let attributes = Attributes::Resource(of);
        if self.tables.authorizer.allows_at_once(caller.identity.user(), &attributes) {
            return Ok(());
        }
        let authorize =
            |inquiry: &Inquiry| self.tables.authorizer.authorize(caller.identity.user(), &attributes, inquiry);
        Box::pin(caller.inquiry.settled(caller.ends, authorize)).await
    }

    fn validate_create(&self, target: Target<'_>, object: &Value, caller: &mut Caller) -> ApiResult<()> {
        let served = target.served;
        let mut errors = Errors::default();
        let (strategy, namespaced) = (served.strategy, served.resource.namespaced);
        self.check_admin_access(target, object, None, &mut errors)?;
        if !strategy.metadata_last {
            metadata::validate_create(strategy.name, namespaced, object, &mut errors);
            if strategy.known_finalizers {
                metadata::validate_finalizer_names(object, &mut errors);
            }
        }
        (strategy.validate)(object, &mut errors);
        served.custom.iter().for_each(|custom| custom.validate(object, &mut errors, &mut caller.notices.warnings));
        if strategy.metadata_last && errors.is_empty() {
            metadata::validate_create(NameRule::PathSegment, namespaced, object, &mut errors);
        }
        if errors.is_empty() {
            (served.strategy.warnings)(object, None, &mut caller.notices.warnings);
            return Ok(());
        }
        let name = object.str_at(&["metadata", "name"]);
        Err(ApiError::invalid(&served.stored.group, &served.kind().name, name, &errors.0))
    }

    /// Writes a finished object under a name that must be free.
    async fn insert(
        &self,
        target: Target<'_>,
        object: &Value,
        options: &WriteOptions,
        tenure: Option<Tenure>,
    ) -> ApiResult<Entity> {
        let served = target.served;
        let name = object.str_at(&["metadata", "name"]);
        let key = served.key(target.namespace, name);
        self.tables.convert_to_store(served, object, options.dry_run).await?;
        let taken = |current: Option<Arc<Object>>| self.taken(target, name, current.as_deref());
        if options.dry_run {
            return match self.tables.table(served).get(key.as_str()) {
                Some(current) => Err(taken(Some(current))),
                None => {
                    let mut shown = convert::as_if_stored(served, object.clone())?;
                    encode::order_metadata(&mut shown, served.of());
                    Ok(Entity::Built(shown))
                }
            };
        }
        let mutation = Mutation::Put(encode::draft(served, object)?);
        let write = Write { table: served.table.clone(), key, expectation: Expectation::Absent, mutation };
        match self.tables.write_from(write, tenure).await? {
            Outcome::Committed { object, .. } => Ok(Entity::Stored(object)),
            Outcome::Conflict { current } => Err(taken(current)),
        }
    }

    fn taken(&self, target: Target<'_>, name: &str, current: Option<&Object>) -> ApiError {
        let served = target.served;
        let mut error = ApiError::already_exists(served.group(), &served.resource.name, name);
        let deleting = current
            .and_then(|current| stored_value(current).ok())
            .is_some_and(|current| !current.at(&["metadata", "deletionTimestamp"]).is_null());
        if deleting {
            error.message = format!("object is being deleted: {}", error.message);
        }
        error
    }

    /// Returns 403 while the definition of a custom resource is being deleted, and 404 once it is gone. Reads the
    /// stored definition, because the list of served resources may lag behind the tables of this replica.
    fn refuse_undefined(&self, Target { served, .. }: Target<'_>, object: &Value) -> ApiResult<()> {
        if served.custom.is_none() {
            return Ok(());
        }
        let definitions = self.tables.resources.of_resource(custom::GROUP, custom::RESOURCE);
        let definitions = definitions.ok_or_else(|| ApiError::internal("no definitions"))?;
        let (group, resource, name) = (served.group(), &*served.resource.name, object.str_at(&["metadata", "name"]));
        let Some(definition) = self.tables.current(&definitions, "", &format!("{resource}.{group}")) else {
            return Err(served.not_found(name));
        };
        if !encode::mentions(&definition, "\"deletionTimestamp\":")
            || stored_tree(&definition)?.at(&["metadata", "deletionTimestamp"]).is_null()
        {
            return Ok(());
        }
        let why = "create not allowed while custom resource definition is terminating";
        Err(ApiError::forbidden(group, resource, name, why))
    }
}

/// Refuses a new object that states a revision. A dry run stops before that check, and returns the stated revision.
fn check_unrevised(object: &mut Value, stated: Option<Value>, options: &WriteOptions) -> ApiResult<()> {
    let Some(stated) = stated.filter(|stated| stated.as_str().is_some_and(|text| !text.is_empty())) else {
        return Ok(());
    };
    if options.dry_run {
        object.set_at(&["metadata", "resourceVersion"], stated);
        return Ok(());
    }
    let text = stated.as_str().unwrap_or("");
    if text != "0" && text.parse::<u64>().is_ok() {
        return Err(ApiError::unknown("resourceVersion should not be set on objects to be created"));
    }
    Ok(())
}

fn cannot_generate(mut error: ApiError) -> ApiError {
    error.message.push_str(", the server was not able to generate a unique name for the object");
    if let Some(details) = &mut error.details {
        details.retry_after_seconds = 1;
    }
    error
}

/// Sets the fields that the server decides for a new object, and clears those that a client may not set.
fn prepare(strategy: &Strategy, of: &Type, object: &mut Value) {
    wipe(object);
    if strategy.status {
        reset_status(of, object);
    }
    match strategy.generation {
        Generation::ClientOwned => {}
        Generation::None => {
            object.remove_at(&["metadata", "generation"]);
        }
        Generation::Spec | Generation::Own => object.set_at(&["metadata", "generation"], 1),
    }
    let now = now();
    object.set_at(&["metadata", "creationTimestamp"], now.to_string());
    object.set_at(&["metadata", "uid"], uuid::Uuid::new_v4().to_string());
    if strategy.random_name && object.str_at(&["metadata", "name"]).is_empty() {
        object.set_at(&["metadata", "name"], uuid::Uuid::new_v4().to_string());
    }
    (strategy.prepare_create)(object, now);
}

/// Returns the user who makes a request as an object: see [`Strategy::set_requester`].
fn requester(caller: &Caller) -> Value {
    let user = caller.identity.user();
    let groups: Vec<Value> = user.groups.iter().map(|group| group.to_string().into()).collect();
    let extra = user.extra.iter().map(|(key, values)| {
        let values: Vec<Value> = values.iter().map(|value| value.as_str().into()).collect();
        (key.as_str(), Value::from(values))
    });
    let mut requester = Value::object();
    requester.set_at(&["username"], user.name.as_str());
    requester.set_at(&["uid"], user.uid.as_str());
    requester.set_at(&["groups"], groups);
    requester.set_at(&["extra"], Value::Object(extra.collect()));
    requester
}

/// Resets `status` to that of an object about which nothing is known.
pub(super) fn reset_status(of: &Type, object: &mut Value) {
    match of.field("status") {
        Some((_, field)) if field.presence == Presence::Always => {
            if let Shape::Struct(status) = &field.shape {
                object.set_at(&["status"], conform::zero(status));
            }
        }
        _ => {
            object.remove_at(&["status"]);
        }
    }
}
