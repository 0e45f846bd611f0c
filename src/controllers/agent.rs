//! The access of controllers to objects: they read and write by the rules that hold for clients, as the user of a
//! kube-controller-manager or as the server itself.

use std::sync::Arc;

use flotilla_proto::json::Part;
use flotilla_proto::value::Value;

use super::Settings;
use crate::access::User;
use crate::registry::{Change, Incoming, Registry};
use crate::request::{Caller, DeleteOptions, Identity, WriteOptions};
use crate::served::Served;
use crate::status::{ApiError, ApiResult};
use crate::tables::{Target, stored_part};

/// The user of controllers, and their user agent and field manager.
const CONTROLLER_MANAGER: (&str, &str) = ("system:kube-controller-manager", "kube-controller-manager");
/// The same for the server itself.
const SERVER: (&str, &str) = ("system:apiserver", "kube-apiserver");

/// Reads and writes objects as one user.
pub struct Agent {
    /// Objects.
    pub registry: Arc<Registry>,
    /// The settings of controllers.
    pub settings: Settings,
    user: Arc<User>,
    manager: &'static str,
    is_server: bool,
}

/// A change of an object of a resource.
struct Edit<'a, F> {
    served: &'a Served,
    /// Changes a copy of the present object.
    edit: F,
}

impl<F: FnMut(&mut Value) -> ApiResult<()> + Send> Change for Edit<'_, F> {
    fn apply(&mut self, current: &Value, _caller: &mut Caller) -> ApiResult<Value> {
        let mut changed = current.clone();
        (self.edit)(&mut changed)?;
        self.served.conform(&mut changed, current).map_err(ApiError::internal)?;
        Ok(changed)
    }
}

impl Agent {
    /// Returns an agent that acts as the user of a kube-controller-manager.
    pub fn new(registry: Arc<Registry>, settings: Settings) -> Self {
        Self::acting_as(CONTROLLER_MANAGER, registry, settings)
    }

    /// Returns an agent that acts as the server itself.
    pub fn of_server(registry: Arc<Registry>, settings: Settings) -> Self {
        Self::acting_as(SERVER, registry, settings)
    }

    fn acting_as((name, manager): (&str, &'static str), registry: Arc<Registry>, settings: Settings) -> Self {
        // Controllers are members of `system:masters`, so that checks of permissions do not restrict them.
        let groups = vec!["system:masters".into(), "system:authenticated".into()];
        let user = Arc::new(User { name: name.into(), groups, ..User::default() });
        Self { registry, settings, user, manager, is_server: name == SERVER.0 }
    }

    /// Counts a request by its outcome. Returns the outcome.
    fn counted<T>(&self, method: &'static str, answered: ApiResult<T>) -> ApiResult<T> {
        let code = match (&answered, method) {
            (Ok(_), "POST") => 201,
            (Ok(_), _) => 200,
            (Err(error), _) => error.code,
        };
        self.registry.tables.metrics.asked_by_controller(&self.settings.host, method, code);
        answered
    }

    fn caller(&self) -> Caller {
        let identity = Identity::new(Arc::clone(&self.user), self.manager);
        Caller::of(if self.is_server { identity.into_server() } else { identity })
    }

    /// Returns a built-in resource.
    pub fn resource(&self, group: &str, name: &str) -> ApiResult<Arc<Served>> {
        let found = self.registry.tables.resources.of_resource(group, name);
        found.ok_or_else(|| ApiError::internal(format_args!("no resource {name} in group {group:?}")))
    }

    /// Returns the present state of an object. `None` if the object does not exist.
    pub fn get(&self, target: Target<'_>) -> ApiResult<Option<Value>> {
        let current = self.registry.tables.current(target.served, target.namespace, target.name);
        let found = current.ok_or_else(|| target.served.not_found(target.name));
        match self.counted("GET", found) {
            Ok(object) => self.registry.tables.shown(target.served, &object).map(Some),
            Err(_) => Ok(None),
        }
    }

    /// Returns a part of the present state of an object, in its stored version. `None` if the object does not exist.
    pub fn get_part(&self, target: Target<'_>, part: Part) -> ApiResult<Option<Value>> {
        let current = self.registry.tables.current(target.served, target.namespace, target.name);
        let found = current.ok_or_else(|| target.served.not_found(target.name));
        match self.counted("GET", found) {
            Ok(object) => stored_part(&object, part).map(Some),
            Err(_) => Ok(None),
        }
    }

    /// Creates an object. Returns false if the object existed already.
    pub async fn create(&self, target: Target<'_>, mut object: Value) -> ApiResult<bool> {
        let served = target.served;
        object.set_at(&["kind"], &*served.kind().name);
        object.set_at(&["apiVersion"], served.api_version());
        served.conform(&mut object, &Value::Null).map_err(ApiError::internal)?;
        let incoming = Incoming { value: object, ..Incoming::default() };
        let created = self.registry.create(target, incoming, &options(self.manager), &mut self.caller()).await;
        match self.counted("POST", created) {
            Ok(_) => Ok(true),
            Err(error) if error.reason == "AlreadyExists" => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Changes an object. It must have the UID `uid` unless that is empty.
    pub async fn edit(&self, target: Target<'_>, uid: &str, mut edit: impl FnMut(&mut Value) + Send) -> ApiResult<()> {
        let change = |object: &mut Value| {
            if !uid.is_empty() && object.str_at(&["metadata", "uid"]) != uid {
                return Err(target.served.not_found(target.name));
            }
            edit(object);
            Ok(())
        };
        self.edit_if(target, change).await
    }

    /// Changes an object, unless `edit` returns an error, which this function then returns.
    pub async fn edit_if(
        &self,
        target: Target<'_>,
        edit: impl FnMut(&mut Value) -> ApiResult<()> + Send,
    ) -> ApiResult<()> {
        let mut change = Edit { served: target.served, edit };
        let updated = self.registry.update(target, &mut change, &options(self.manager), &mut self.caller()).await;
        self.counted("PUT", updated).map(drop)
    }

    /// Applies fields (server-side apply) to an object that exists, and takes over fields that other managers own.
    pub async fn apply(&self, target: Target<'_>, mut configuration: Value, manager: &str) -> ApiResult<()> {
        if self.registry.tables.current(target.served, target.namespace, target.name).is_none() {
            return Err(target.served.not_found(target.name));
        }
        configuration.set_at(&["kind"], &*target.served.kind().name);
        configuration.set_at(&["apiVersion"], target.served.api_version());
        configuration.set_at(&["metadata", "name"], target.name);
        let options = WriteOptions { force: true, ..options(manager) };
        let applied = self.registry.apply_value(target, configuration, &options, &mut self.caller()).await;
        self.counted("PATCH", applied).map(drop)
    }

    /// Deletes an object. It is no error if the object is gone, even if another object with another UID has its name
    /// now. The error is 409 if the object has another revision than the options state.
    pub async fn delete(&self, target: Target<'_>, options: &DeleteOptions) -> ApiResult<()> {
        let deleted = self.registry.delete(target, options, &mut self.caller()).await;
        match self.counted("DELETE", deleted) {
            Err(error) if error.code == 404 => Ok(()),
            Err(error) if error.code == 409 && self.is_gone(target, options)? => Ok(()),
            deleted => deleted.map(drop),
        }
    }

    /// Returns whether no object has the name and the UID any more.
    fn is_gone(&self, target: Target<'_>, options: &DeleteOptions) -> ApiResult<bool> {
        let Some(uid) = &options.uid else { return Ok(false) };
        Ok(self.get(target)?.is_none_or(|object| object.str_at(&["metadata", "uid"]) != uid))
    }
}

fn options(manager: &str) -> WriteOptions {
    WriteOptions { manager: manager.to_owned(), ..WriteOptions::default() }
}
