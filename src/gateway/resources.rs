//! Requests about objects: finds the verb, and calls its function in [`super::reads`] or [`super::writes`].

use std::borrow::Cow;
use std::sync::Arc;

use actix::Addr;
use actix_web::{HttpResponse, web};
use compact_str::CompactString;

use super::actor::GatewayActor;
use super::exchange::Progress;
use super::head::Head;
use super::routing::{RequestInfo, allows, method_not_allowed, subresource};
use super::uploads::{Body, arrive};
use super::{Gateway, counted, deprecation};
use crate::access::ResourceAttributes;
use crate::answer;
use crate::registry::subresources::{self, Handler};
use crate::request::path::ResourcePath;
use crate::request::query::Query;
use crate::request::verb::Verb;
use crate::request::{Basis, Caller, Offer};
use crate::rules::names;
use crate::selector::{FieldOperator, FieldRequirement, FieldSelector};
use crate::served::Served;
use crate::status::ApiResult;
use crate::tables::Target;
use crate::watchdog::{self, Stage, Work};

/// A request about objects whose path and method fit a resource.
pub(super) struct Request<'r> {
    pub(super) gateway: &'r web::Data<Gateway>,
    pub(super) router: &'r Addr<GatewayActor>,
    pub(super) head: &'r Head<'r>,
    pub(super) served: Arc<Served>,
    pub(super) namespace: &'r str,
    pub(super) name: &'r str,
    pub(super) subresource: &'r str,
    pub(super) caller: &'r mut Caller,
}

fn warn_of_deprecation(served: Option<&Served>, caller: &mut Caller) {
    caller.notices.warnings.extend(served.and_then(deprecation::warning).map(Cow::into_owned));
}

/// Answers a request about objects whose user is authorized.
pub(super) async fn answer(
    gateway: &web::Data<Gateway>,
    router: &Addr<GatewayActor>,
    head: &Head<'_>,
    info: RequestInfo,
    payload: web::Payload,
    caller: &mut Caller,
    progress: &mut Progress,
) -> ApiResult<HttpResponse> {
    let RequestInfo { of, verb, served } = info;
    gateway.beginning.check(&gateway.registry, verb.is_none_or(Verb::writes))?;
    let served = match served {
        Ok(served) => served,
        Err(error) => {
            let known = gateway.registry.tables.resources.find(&of.group, &of.version, &of.resource);
            warn_of_deprecation(known.filter(|known| known.custom.is_some()).as_deref(), caller);
            return Err(error);
        }
    };
    // Requests for a deprecated version of custom resources get a warning even if the verb does not exist.
    let warns = served.custom.is_some() || verb.is_some_and(|verb| verb == Verb::Watch || allows(&served, &of, verb));
    warn_of_deprecation(Some(&*served).filter(|_| warns), caller);
    let verb = verb.filter(|verb| allows(&served, &of, *verb)).or_else(|| is_passed_on(&of, head).then_some(Verb::Get));
    let verb = verb.ok_or_else(|| method_not_allowed(&served, &of, head))?;
    caller.verb = verb.name();
    if let Some(record) = &mut caller.record {
        record.is_deprecated = deprecation::warning(&served).is_some();
        record.removed_release = deprecation::removal(&served);
    }
    progress.counts_as(gateway, counted::route(&served, head, &of, verb));
    watchdog::note(Work::new(Stage::Answering, head.method, Some(&served)));
    let request = Request {
        gateway,
        router,
        head,
        served,
        namespace: of.namespace.as_deref().unwrap_or(""),
        name: of.name.as_deref().unwrap_or(""),
        subresource: of.subresource.as_deref().unwrap_or(""),
        caller,
    };
    if verb == Verb::Watch && matches!(subresources::handler(&request.served, request.subresource), Handler::Object) {
        return Box::pin(request.watch(of.watch)).await;
    }
    if progress.ends.is_none() {
        return Box::pin(request.answer(verb, &of, Body::Coming(payload))).await;
    }
    if !verb.writes() {
        return request.read(verb, &of).await;
    }
    match arrive(gateway, (request.caller.identity.user().name.as_str(), request.namespace), payload, progress).await {
        Some(body) if request.is_large(verb, &body) => Box::pin(request.answer_aside(verb, of.clone(), body)).await,
        Some(body) => Box::pin(request.answer(verb, &of, body)).await,
        None => Ok(answer::too_many_requests(progress.retry_after(gateway))),
    }
}

/// Calls `then` with the attributes of a request about objects. They decide its authorization and its flow.
pub(super) fn with_attributes<T>(
    head: &Head<'_>,
    of: &ResourcePath,
    verb: Option<Verb>,
    then: impl FnOnce(ResourceAttributes<'_>) -> T,
) -> T {
    // Requests for a namespace are authorized in that namespace.
    let own = of.resource == "namespaces" && of.group.is_empty();
    let namespace = if own { of.name.as_deref() } else { of.namespace.as_deref() };
    let verb = match (verb, head.method) {
        _ if of.watch => "watch",
        (Some(verb), _) => verb.name(),
        (None, "HEAD") if of.name.is_some() => "get",
        (None, "HEAD") => "list",
        (None, _) => "",
    };
    let (fields, labels) = match verb {
        "list" | "watch" | "deletecollection" if !of.watch => {
            (head.query.text("fieldSelector"), head.query.text("labelSelector"))
        }
        _ => ("", ""),
    };
    let reads = verb != "deletecollection" && of.name.is_none();
    let only = if reads { only_name(fields, &head.query) } else { None };
    then(ResourceAttributes {
        verb,
        group: &of.group,
        version: &of.version,
        resource: &of.resource,
        subresource: of.subresource.as_deref().unwrap_or(""),
        namespace: namespace.unwrap_or(""),
        name: only.as_deref().or(of.name.as_deref()).unwrap_or(""),
        fields,
        labels,
    })
}

/// Returns the one name that a field selector chooses: reading that object takes only the permission for it. `None` if
/// it chooses no single name, or if the options cannot be parsed.
fn only_name(fields: &str, query: &Query<'_>) -> Option<CompactString> {
    if !fields.contains("metadata.name") || ["limit", "timeoutSeconds"].iter().any(|name| query.int(name).is_err()) {
        return None;
    }
    let is_name = |one: &FieldRequirement| one.field == "metadata.name" && one.operator == FieldOperator::Equals;
    let selector = FieldSelector::parse(fields).ok()?;
    let name = selector.0.into_iter().find(is_name)?.value;
    names::path_segment(&name).is_empty().then_some(name)
}

/// Returns whether the request is for a proxy and has a method without a verb, which the proxy passes on.
fn is_passed_on(of: &ResourcePath, head: &Head<'_>) -> bool {
    of.subresource.as_deref() == Some("proxy") && matches!(head.method, "HEAD" | "OPTIONS")
}

impl<'r> Request<'r> {
    /// Answers a request that only reads and is not a watch.
    async fn read(self, verb: Verb, of: &ResourcePath) -> ApiResult<HttpResponse> {
        match (subresources::handler(&self.served, self.subresource), verb) {
            (Handler::Object, Verb::Get) => self.get().await,
            _ => Box::pin(self.answer(verb, of, Body::none())).await,
        }
    }

    /// Answers a request that is not a watch.
    pub(super) async fn answer(mut self, verb: Verb, of: &ResourcePath, body: Body) -> ApiResult<HttpResponse> {
        let handler = subresources::handler(&self.served, self.subresource);
        if verb.writes() {
            self.prepare_to_decide(verb, handler).await?;
        }
        match handler {
            Handler::Object => {}
            handler => return self.through(handler, verb, of, body).await,
        }
        match verb {
            Verb::Get => self.get().await,
            Verb::List => self.list().await,
            Verb::Watch => self.watch(of.watch).await,
            Verb::Create => self.create(body).await,
            Verb::Update => self.update(body).await,
            Verb::Patch => self.patch(body).await,
            Verb::Delete => self.delete(body).await,
            Verb::DeleteCollection => self.delete_collection(body).await,
        }
    }

    /// Prepares a write. This replica's objects decide defaults, admission and refusals. They must be as recent as
    /// those that another replica has shown the client. No wait is needed if the store proves this when it writes.
    async fn prepare_to_decide(&mut self, verb: Verb, handler: Handler) -> ApiResult<()> {
        let registry = &self.gateway.registry;
        let changes_one =
            matches!(verb, Verb::Update | Verb::Patch | Verb::Delete) && matches!(handler, Handler::Object);
        if changes_one && registry.is_proved_by_writing(self.target()) {
            self.caller.basis = Basis::Unconfirmed;
            return Ok(());
        }
        if verb == Verb::Create
            && matches!(handler, Handler::Object)
            && let Some(tenure) = registry.tenure(self.target())
        {
            self.caller.basis = Basis::in_tenure(tenure);
            return Ok(());
        }
        match self.subresource.is_empty() && verb != Verb::DeleteCollection {
            true => registry.tables.catch_up_with(&self.served, self.namespace, self.name).await,
            false => registry.tables.catch_up().await,
        }
    }

    pub(super) fn target(&self) -> Target<'_> {
        Target::object(&self.served, self.namespace, self.name).with_subresource(self.subresource)
    }

    /// Returns the forms in which this path shows the object.
    pub(super) fn offer(&self) -> Offer {
        let tables = subresource(&self.served, self.subresource).is_none_or(|known| known.tables);
        if tables { Offer::Objects } else { Offer::Untabled }
    }

    pub(super) fn include(&self) -> Option<&'r str> {
        self.head.query.get("includeObject")
    }
}
