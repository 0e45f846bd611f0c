//! Runs the admission plugins that are on by default (Kubernetes documentation, "Admission Control"): what the server
//! itself adds to a write or refuses, beyond the rules of its kind. Tables map each resource to its plugins.
//!
//! A write passes admission twice: [`Registry::admit_create`] and [`Registry::admit_update`] change it before the
//! kind's own preparation, [`Registry::check_create`] and [`Registry::check_update`] look at the validated object.

mod certificates;
mod claims;
mod classes;
mod grants;
pub(super) mod lookup;
mod namespaces;
mod nodes;
pub(super) mod outside;
pub mod plugins;
mod pod_security;
mod pods;
mod quotas;

use flotilla_cluster::Scope;
use flotilla_proto::value;
use flotilla_proto::value::Value;
use parking_lot::Mutex;

use super::{Registry, Target, WriteOptions, allocation};
use crate::access::{Attributes, ResourceAttributes, rbac};
use crate::field::Errors;
use crate::kinds::admission;
use crate::kinds::admission::pod_security::is_significant;
use crate::metrics::admission::{Operation, Phase};
use crate::request::Caller;
use crate::status::{ApiError, ApiResult};

/// A write in admission.
#[derive(Debug)]
struct Request<'a> {
    registry: &'a Registry,
    target: Target<'a>,
    caller: &'a Caller,
    operation: Operation,
    phase: Phase,
    /// Warnings for the client.
    warnings: Mutex<Vec<String>>,
}

/// Changes or refuses a new object.
type OnCreate = fn(&Request<'_>, &mut Value) -> ApiResult<()>;
/// Changes or refuses an object that is updated; the last argument is the stored object.
type OnUpdate = fn(&Request<'_>, &mut Value, &Value) -> ApiResult<()>;
/// Refuses an object that is about to be stored; the last argument is the stored object, `None` on a create.
type OnFinished = fn(&Request<'_>, &Value, Option<&Value>) -> ApiResult<()>;

/// Plugins of creates, by group and resource.
static CREATES: &[(&str, &str, OnCreate)] = &[
    ("", "nodes", |request, node| {
        request.by("TaintNodesByCondition", || {
            admission::taint_new_node(node);
            Ok(())
        })
    }),
    ("", "persistentvolumeclaims", classes::claim),
    ("", "persistentvolumes", classes::protect),
    ("", "pods", pods::create),
    ("certificates.k8s.io", "certificatesigningrequests", certificates::requester),
    ("networking.k8s.io", "ingresses", classes::ingress),
    ("storage.k8s.io", "volumeattributesclasses", classes::protect),
];

static UPDATES: &[(&str, &str, OnUpdate)] = &[("", "pods", pods::update)];

static FINISHED: &[(&str, &str, OnFinished)] = &[
    ("", "namespaces", pod_security::namespace),
    ("", "persistentvolumeclaims", classes::finished_claim),
    ("", "pods", pods::finished),
    ("certificates.k8s.io", "certificatesigningrequests", certificates::subject),
    ("scheduling.k8s.io", "priorityclasses", classes::priority),
];

/// Updates whose plugins look at nothing but the object itself, or at the authorizer's index, which every member
/// follows: group, resource, and the subresources for which that does not hold.
static INTROSPECTIVE: &[(&str, &str, &[&str])] =
    &[("", "namespaces", &[]), ("", "pods", &["resize"]), ("certificates.k8s.io", "certificatesigningrequests", &[])];

/// Refuses a write of a subresource; the last argument is the stored object.
type OnPart = fn(&Request<'_>, &Value, &Value) -> ApiResult<()>;

/// Plugins of subresources, by group, resource and subresource.
static PARTS: &[(&str, &str, &str, OnPart)] = &[
    ("", "pods", "ephemeralcontainers", |request, pod, old| pod_security::pod(request, pod, Some(old))),
    ("", "pods", "resize", pods::resized),
    ("certificates.k8s.io", "certificatesigningrequests", "approval", certificates::approval),
    ("certificates.k8s.io", "certificatesigningrequests", "status", certificates::signing),
];

fn is_pod(target: Target<'_>) -> bool {
    (target.served.group(), &*target.served.resource.name) == ("", "pods")
}

fn of<P: Copy>(plugins: &[(&str, &str, P)], target: Target<'_>) -> Option<P> {
    let (group, resource) = (target.served.stored.group.as_ref(), target.served.resource.name.as_ref());
    plugins.iter().find(|(g, r, _)| (*g, *r) == (group, resource)).map(|(_, _, plugin)| *plugin)
}

impl Registry {
    /// Returns whether an update or deletion is decided by the object alone. The store then proves the decision by
    /// making the write, since it does so only if the object is still the same. A resource with plugins counts as
    /// decided by more, unless `INTROSPECTIVE` names it.
    pub fn is_proved_by_writing(&self, target: Target<'_>) -> bool {
        let met = of(UPDATES, target).is_some() || of(FINISHED, target).is_some();
        let stated = of(INTROSPECTIVE, target).is_some_and(|but| !but.contains(&target.subresource));
        // All roles and bindings decide who may grant what. Deletions of them take the same path.
        let grants = target.served.group() == rbac::GROUP;
        (!met || stated) && !grants && !quotas::is_recharged(target) && !allocation::is_service(target)
    }

    /// Returns whether this one update is decided by more than the object, although most updates of its kind are not: a
    /// pod whose significant fields change must meet the pod security standard of its namespace, one that moves between
    /// quotas is charged, and a claim is granted access as an administrator only where its namespace allows that.
    pub(super) fn looks_further(&self, target: Target<'_>, object: &Value, old: &Value) -> bool {
        let place = (&*target.served.stored.group, &*target.served.resource.name, target.subresource);
        match place {
            ("", "pods", "" | "ephemeralcontainers") => {
                is_significant(object, old) || quotas::moves(target, object, old)
            }
            (_, "resourceclaims", "status") => claims::admin_access(target, object, Some(old)).is_some(),
            _ => false,
        }
    }

    /// Admits a create. The object is in its stored version.
    pub(super) async fn admit_create(
        &self,
        target: Target<'_>,
        object: &mut Value,
        options: &WriteOptions,
        caller: &mut Caller,
    ) -> ApiResult<()> {
        self.admit_create_within(target, object, caller).await?;
        if self.is_changed_outside((target, Operation::Create), Some(object), None, caller) {
            Box::pin(self.mutate_created(target, object, options, caller)).await?;
        }
        Ok(())
    }

    async fn admit_create_within(&self, target: Target<'_>, object: &mut Value, caller: &mut Caller) -> ApiResult<()> {
        let request = Request::new(self, target, caller, Operation::Create, Phase::Admit);
        self.metrics.by_step(request.operation, request.phase, || {
            request.by("NamespaceLifecycle", || self.check_namespace(target, object))?;
            if !is_pod(target) {
                nodes::restrict(&request, Some(object), None)?; // for pods, ServiceAccount comes first
            }
            of(CREATES, target).map_or(Ok(()), |plugin| plugin(&request, object))
        })?;
        self.check_grants(target, object, None, caller).await
    }

    /// Admits a document to act on.
    ///
    /// # Errors
    /// 404 or 403 where the namespace does not exist or is being deleted. Access reviews are answered for any
    /// namespace.
    pub fn admit_action(&self, target: Target<'_>, document: &Value, caller: &Caller) -> ApiResult<()> {
        if target.served.group() == "authorization.k8s.io" {
            return Ok(());
        }
        match target.name {
            "" => self.check_namespace(target, document),
            // The path names the object that is acted on, whatever name the document has.
            name => self.check_namespace(target, &value!({"metadata": {"name": name}})),
        }?;
        let request = Request::new(self, target, caller, Operation::Create, Phase::Admit);
        nodes::restrict(&request, Some(document), None)
    }

    /// Admits an update. Both objects are in their stored version.
    pub(super) async fn admit_update(
        &self,
        target: Target<'_>,
        object: &mut Value,
        old: &Value,
        caller: &mut Caller,
    ) -> ApiResult<()> {
        let request = Request::new(self, target, caller, Operation::Update, Phase::Admit);
        self.metrics.by_step(request.operation, request.phase, || {
            nodes::restrict(&request, Some(object), Some(old))?;
            of(UPDATES, target).map_or(Ok(()), |plugin| plugin(&request, object, old))
        })?;
        self.check_grants(target, object, Some(old), caller).await
    }

    /// Checks a finished object that is about to be created.
    ///
    /// # Errors
    /// 403 also when an update or patch would create the object and the user may not create it.
    pub(super) fn check_create(&self, target: Target<'_>, object: &Value, caller: &mut Caller) -> ApiResult<()> {
        if matches!(caller.verb, "update" | "patch") {
            let Target { served, namespace, name, subresource } = target;
            let (group, resource, fields) = (served.group(), &*served.resource.name, "");
            let of = ResourceAttributes { verb: "create", group, resource, subresource, namespace, name, fields };
            self.authorizer.authorize(&caller.user, &Attributes::Resource(of))?;
        }
        let request = Request::new(self, target, caller, Operation::Create, Phase::Validate);
        let checked = self.metrics.by_step(request.operation, request.phase, || {
            of(FINISHED, target).map_or(Ok(()), |plugin| plugin(&request, object, None))?;
            pod_security::template(&request, object)
        });
        let told = request.warnings.into_inner();
        caller.warnings.extend(told);
        checked
    }

    /// Checks a finished object that is about to replace another.
    pub(super) fn check_update(
        &self,
        target: Target<'_>,
        object: &Value,
        old: &Value,
        caller: &mut Caller,
    ) -> ApiResult<()> {
        let request = Request::new(self, target, caller, Operation::Update, Phase::Validate);
        let checked = self.metrics.by_step(request.operation, request.phase, || {
            if target.subresource.is_empty() {
                of(FINISHED, target).map_or(Ok(()), |plugin| plugin(&request, object, Some(old)))?;
                return pod_security::template(&request, object);
            }
            let place = (&*target.served.stored.group, &*target.served.resource.name, target.subresource);
            let plugin = PARTS.iter().find(|(group, resource, part, _)| (*group, *resource, *part) == place);
            plugin.map_or(Ok(()), |(_, _, _, plugin)| plugin(&request, object, old))
        });
        let told = request.warnings.into_inner();
        caller.warnings.extend(told);
        checked
    }
}

impl Registry {
    /// Adds an error for every part of a status that changes and that this user may not write.
    pub(super) fn check_status_writer(
        &self,
        target: Target<'_>,
        object: &Value,
        old: &Value,
        caller: &Caller,
        errors: &mut Errors,
    ) {
        if (&*target.served.stored.group, &*target.served.resource.name) == ("resource.k8s.io", "resourceclaims") {
            claims::check_status(&self.authorizer, target, object, old, caller, errors);
        }
    }
}

impl<'a> Request<'a> {
    fn new(registry: &'a Registry, target: Target<'a>, caller: &'a Caller, operation: Operation, phase: Phase) -> Self {
        Self { registry, target, caller, operation, phase, warnings: Mutex::default() }
    }

    /// Adds a warning for the client. It is sent unless the write is refused.
    fn warn(&self, text: String) {
        self.warnings.lock().push(text);
    }

    /// Runs a plugin's work and measures it under the plugin's name. Does nothing if the configuration disables the
    /// plugin.
    fn by(&self, plugin: &'static str, work: impl FnOnce() -> ApiResult<()>) -> ApiResult<()> {
        if self.registry.plugins.leaves_out(plugin) {
            return Ok(());
        }
        self.registry.metrics.by_plugin(plugin, self.operation, self.phase, work)
    }

    /// Returns the limit ranges of the namespace.
    fn limit_ranges(&self) -> ApiResult<Vec<Value>> {
        self.registry.look_up_all("", "limitranges", Scope::namespace(self.target.namespace))
    }

    /// Returns 403 in the wording of an admission plugin. An object whose name is not generated yet is called by its
    /// `generateName`.
    fn refuse(&self, object: &Value, why: &str) -> ApiError {
        let names =
            [self.target.name, object.str_at(&["metadata", "name"]), object.str_at(&["metadata", "generateName"])];
        let name = names.into_iter().find(|name| !name.is_empty()).unwrap_or("Unknown");
        ApiError::forbidden(self.target.served.group(), &self.target.served.resource.name, name, why)
    }
}
