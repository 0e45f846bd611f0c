//! Requests about objects: from a path and method to an operation of the registry.

use std::future::ready;
use std::sync::Arc;

use actix::Addr;
use actix_web::{HttpResponse, web};
use compact_str::CompactString;
use flotilla_cluster::Object;
use flotilla_proto::value;
use flotilla_proto::value::Value;
use futures_util::FutureExt as _;

use super::actor::{Collect, GatewayActor, unrouted};
use super::exchange::Progress;
use super::head::Head;
use super::routing::{RequestInfo, allows, method_not_allowed, subresource};
use super::uploads::{Body, arrive};
use super::{Gateway, body, counted, deprecation, lists, watches};
use crate::access::{Attributes, ResourceAttributes};
use crate::answer::{self, respond};
use crate::limits;
use crate::patch::Format;
use crate::registry::subresources::{self, Handler};
use crate::registry::{DeleteOptions, Entity, Incoming, Listing, PatchBody, Target, WriteOptions, Written};
use crate::representation;
use crate::representation::Show;
use crate::request::path::ResourcePath;
use crate::request::query::Query;
use crate::request::verb::Verb;
use crate::request::{Basis, Caller, Form, Media, Offer, Representation};
use crate::rules::names;
use crate::selector::{FieldOperator, FieldRequirement, FieldSelector};
use crate::served::Served;
use crate::status::{ApiError, ApiResult};
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
    let served = served?;
    let routed = verb.is_some_and(|verb| verb == Verb::Watch || allows(&served, &of, verb));
    caller.warnings.extend(routed.then(|| deprecation::warning(&served)).flatten().map(str::to_owned));
    let verb = verb.filter(|verb| allows(&served, &of, *verb)).or_else(|| is_passed_on(&of, head).then_some(Verb::Get));
    let verb = verb.ok_or_else(|| method_not_allowed(&served, &of, head))?;
    caller.verb = verb.name();
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
    match arrive(gateway, &request.caller.user.name, payload, progress).await {
        Some(body) if request.is_large(verb, &body) => Box::pin(request.answer_aside(verb, of.clone(), body)).await,
        Some(body) => Box::pin(request.answer(verb, &of, body)).await,
        None => Ok(answer::too_many_requests()),
    }
}

/// Returns an error unless the user may make a request about objects.
pub(super) fn authorize(
    gateway: &Gateway,
    head: &Head<'_>,
    of: &ResourcePath,
    verb: Option<Verb>,
    caller: &mut Caller,
) -> ApiResult<()> {
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
    let fields = match verb {
        "list" | "watch" | "deletecollection" if !of.watch => head.query.text("fieldSelector"),
        _ => "",
    };
    let reads = verb != "deletecollection" && of.name.is_none();
    let only = if reads { only_name(fields, &head.query) } else { None };
    let attributes = Attributes::Resource(ResourceAttributes {
        verb,
        group: &of.group,
        resource: &of.resource,
        subresource: of.subresource.as_deref().unwrap_or(""),
        namespace: namespace.unwrap_or(""),
        name: only.as_deref().or(of.name.as_deref()).unwrap_or(""),
        fields,
    });
    caller.authorize(&gateway.registry.authorizer, &attributes)
}

/// Returns the one name that a field selector chooses: reading that object takes only the permission for it. `None` if
/// the options cannot be parsed.
fn only_name(fields: &str, query: &Query<'_>) -> Option<CompactString> {
    if !fields.contains("metadata.name") || ["limit", "timeoutSeconds"].iter().any(|name| query.int(name).is_err()) {
        return None;
    }
    let is_name = |one: &FieldRequirement| one.field == "metadata.name" && one.operator == FieldOperator::Equals;
    let selector = FieldSelector::parse(fields).ok()?;
    let name = selector.0.into_iter().find(is_name)?.value;
    names::path_segment(&name).is_empty().then_some(name)
}

/// Returns whether a proxy passes on a method that is no verb.
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

    /// Prepares a write. This replica's objects decide defaults, admission and refusals. They must not be older than
    /// those that another replica has shown the client, unless the store proves at the write that they were not.
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
            true => registry.catch_up_with(&self.served, self.namespace, self.name).await,
            false => registry.catch_up().await,
        }
    }

    pub(super) fn target(&self) -> Target<'_> {
        Target { served: &self.served, namespace: self.namespace, name: self.name, subresource: self.subresource }
    }

    /// Returns the forms in which this path shows the object.
    pub(super) fn offer(&self) -> Offer {
        let tables = subresource(&self.served, self.subresource).is_none_or(|known| known.tables);
        if tables { Offer::Objects } else { Offer::Untabled }
    }

    pub(super) fn include(&self) -> Option<&'r str> {
        self.head.query.get("includeObject")
    }

    pub(super) async fn respond_entity(
        &self,
        code: u16,
        entity: &Entity,
        representation: Representation,
    ) -> ApiResult<HttpResponse> {
        let registry = &self.gateway.registry;
        if let Entity::Stored(object) = entity {
            registry.convert_to_show(&self.served, std::slice::from_ref(object)).await?;
        }
        let gzip = self.head.gzip;
        let packed = match entity {
            Entity::Stored(object) if self.takes_long_to_show(object, representation) => {
                let (registry, served) = (Arc::clone(registry), Arc::clone(&self.served));
                let (entity, include) = (Entity::Stored(Arc::clone(object)), self.include().map(str::to_owned));
                let make = move || {
                    let include = include.as_deref();
                    let encoded = representation::encode_entity(&registry, &served, &entity, representation, include)?;
                    Ok::<_, ApiError>(answer::pack(encoded, gzip))
                };
                self.gateway.aside.run(move || ready(make()).boxed_local()).await??
            }
            _ => {
                let include = self.include();
                let encoded = representation::encode_entity(registry, &self.served, entity, representation, include)?;
                answer::pack(encoded, gzip)
            }
        };
        Ok(answer::respond_packed(code, packed, &self.caller.warnings))
    }

    /// Returns whether an object is large and must be encoded anew or compressed, which keeps a worker for long.
    fn takes_long_to_show(&self, object: &Object, representation: Representation) -> bool {
        let is_plain = representation.media == Media::Json && !representation.pretty && !self.head.gzip;
        let is_as_stored = is_plain && representation.form == Form::Object && self.served.shows_as_stored(object);
        object.bytes().len() >= limits::LARGE_REQUEST_BYTES && !is_as_stored
    }

    async fn respond_written(&self, written: &Written, representation: Representation) -> ApiResult<HttpResponse> {
        self.respond_entity(if written.created { 201 } else { 200 }, &written.entity, representation).await
    }

    async fn get(self) -> ApiResult<HttpResponse> {
        let representation = self.head.representation_of(&self.served, self.offer())?;
        if self.head.query.flag("export").unwrap_or(false) {
            let message = "the export parameter, deprecated since v1.14, is no longer supported";
            return Err(ApiError::bad_request(message));
        }
        let revision = self.head.query.get("resourceVersion");
        let object = self.gateway.registry.get(&self.served, self.namespace, self.name, revision).await?;
        self.respond_entity(200, &Entity::Stored(object), representation).await
    }

    async fn list(self) -> ApiResult<HttpResponse> {
        let representation = self.head.representation_of(&self.served, Offer::Collection)?;
        let listing = Listing::read(&self.head.query, &self.served, false)?;
        self.gateway.registry.reach_for_list(&self.served, &listing).await?;
        let (served, is_recent) = (Arc::clone(&self.served), listing.is_recent());
        let page = self.router.send(Collect { served, namespace: self.namespace.into(), listing }).await;
        let page = page.map_err(unrouted)??.read().await?;
        let page = self.gateway.registry.convert_page(&self.served, page).await?;
        if is_recent {
            self.gateway.registry.wait_promised(page.revision).await?;
        }
        let show = Show { representation, include: self.include(), gzip: self.head.gzip };
        lists::respond(self.gateway, &self.served, page, show, &self.caller.warnings).await
    }

    async fn watch(self, by_path: bool) -> ApiResult<HttpResponse> {
        let representation = self.head.representation_of(&self.served, Offer::Collection)?;
        let mut listing = Listing::read(&self.head.query, &self.served, by_path)?;
        if !self.name.is_empty() {
            listing.select_name(self.name)?;
        }
        let show = Show { representation, include: self.include(), gzip: false };
        let (request, connection) = (self.head.request()?, self.head.connection);
        let asked = watches::WatchRequest { namespace: self.namespace, listing, connection, request };
        watches::respond(self.gateway, &self.served, asked, show, &self.caller.warnings).await
    }

    /// Reads a create or replacement: the representation of the answer, the options of the given kind, and a function
    /// that returns the decoded object.
    async fn object(
        &self,
        body: Body,
        options: &str,
    ) -> ApiResult<(Representation, WriteOptions, impl Fn() -> ApiResult<Incoming> + use<'r>)> {
        let representation = self.head.representation_of(&self.served, self.offer())?;
        let read_options = || WriteOptions::read(&self.head.query, options, &self.caller.user_agent, false);
        // A create refuses the media type first, an update the options.
        if options == "UpdateOptions" {
            read_options()?;
        }
        let media = body::media(self.head.content_type)?;
        let bytes = body.read()?;
        let options = read_options()?;
        let (served, validation) = (Arc::clone(&self.served), options.validation);
        Ok((representation, options, move || body::decode(&bytes, media, &served, validation)))
    }

    async fn create(self, body: Body) -> ApiResult<HttpResponse> {
        let (representation, options, object) = self.object(body, "CreateOptions").await?;
        let warnings_before = self.caller.warnings.len();
        let decode = |caller: &mut Caller| {
            let decoded = object()?;
            caller.warnings.truncate(warnings_before);
            caller.warnings.extend(decoded.warnings.iter().cloned());
            body::check_stated(&self.served, &decoded.value)?;
            Ok::<_, ApiError>(decoded)
        };
        let target =
            Target { served: &self.served, namespace: self.namespace, name: self.name, subresource: self.subresource };
        let registry = &self.gateway.registry;
        if let Some(tenure) = self.caller.basis.tenure() {
            let decoded = decode(self.caller)?;
            let created = registry.create_in_tenure(target, decoded, &options, self.caller, tenure).await?;
            if let Some(written) = created {
                return self.respond_written(&written, representation).await;
            }
        }
        let decoded = decode(self.caller)?;
        let written = registry.create(target, decoded, &options, self.caller).await?;
        self.respond_written(&written, representation).await
    }

    async fn update(self, body: Body) -> ApiResult<HttpResponse> {
        let (representation, options, object) = self.object(body, "UpdateOptions").await?;
        let decoded = object()?;
        // Also a refusal, as of an object that does not exist, comes with what the decoder found.
        self.caller.warnings.extend(decoded.warnings.iter().cloned());
        body::check_stated(&self.served, &decoded.value)?;
        let registry = &self.gateway.registry;
        let written = registry.replace(
            Target { served: &self.served, namespace: self.namespace, name: self.name, subresource: self.subresource },
            decoded,
            &options,
            self.caller,
        );
        let written = written.await?;
        self.respond_written(&written, representation).await
    }

    async fn patch(self, body: Body) -> ApiResult<HttpResponse> {
        let format = patch_format(self.head, &self.served)?;
        let representation = self.head.representation_of(&self.served, self.offer())?;
        let bytes = body.read()?;
        let apply = format.is_none();
        let options = WriteOptions::read(&self.head.query, "PatchOptions", &self.caller.user_agent, apply)?;
        let registry = &self.gateway.registry;
        let target =
            Target { served: &self.served, namespace: self.namespace, name: self.name, subresource: self.subresource };
        let written = match format {
            Some(format) => registry.patch(target, PatchBody { format, bytes: &bytes }, &options, self.caller).await?,
            None => registry.apply(target, &bytes, &options, self.caller).await?,
        };
        self.respond_written(&written, representation).await
    }

    async fn delete(self, body: Body) -> ApiResult<HttpResponse> {
        let representation = self.head.representation_of(&self.served, self.offer())?;
        let bytes = body.read()?;
        let options = body::decode_delete_options(&bytes, self.head.content_type)?;
        let options = DeleteOptions::read(&self.head.query, options.as_ref())?;
        let target =
            Target { served: &self.served, namespace: self.namespace, name: self.name, subresource: self.subresource };
        let deleted = self.gateway.registry.delete(target, &options, self.caller).await?;
        if !deleted.is_unreadable && (!deleted.gone || self.served.strategy.returns_deleted) {
            return self.respond_entity(200, &deleted.entity, representation).await;
        }
        let status = match deleted.is_unreadable {
            true => success_unseen(&self.served, self.name),
            false => success(&self.served, self.name, &deleted.uid),
        };
        let representation = Representation { form: Form::Object, ..representation };
        Ok(respond(200, answer::encode_status(&status, representation), &self.caller.warnings))
    }

    async fn delete_collection(self, body: Body) -> ApiResult<HttpResponse> {
        let representation = self.head.representation_of(&self.served, Offer::Objects)?;
        let bytes = body.read()?;
        let listing = Listing::read(&self.head.query, &self.served, false)?;
        let options = body::decode_delete_options(&bytes, self.head.content_type)?;
        let options = DeleteOptions::read(&self.head.query, options.as_ref())?;
        let registry = &self.gateway.registry;
        let page = registry.delete_collection(&self.served, self.namespace, &listing, &options, self.caller).await?;
        let show = Show { representation, include: self.include(), gzip: self.head.gzip };
        lists::respond(self.gateway, &self.served, page, show, &self.caller.warnings).await
    }
}

/// Returns the format of a PATCH body. `None` for apply. Custom resources have no strategic merge patch, since their
/// types do not say how lists merge.
pub(super) fn patch_format(head: &Head<'_>, served: &Served) -> ApiResult<Option<Format>> {
    let is_custom = served.custom.is_some();
    Ok(match head.content_type.split(';').next().unwrap_or("").trim() {
        "application/json-patch+json" => Some(Format::Json),
        "application/merge-patch+json" => Some(Format::Merge),
        "application/strategic-merge-patch+json" if !is_custom => Some(Format::Strategic),
        "application/apply-patch+yaml" => None,
        _ if is_custom => return Err(body::unsupported_custom_patch()),
        _ => return Err(body::unsupported_patch()),
    })
}

/// Returns the `Status` of the deletion of an object that could not be decoded.
fn success_unseen(served: &Served, name: &str) -> Value {
    let details = value!({"name": name, "kind": (&*served.kind().name)});
    let metadata = Value::object();
    value!({
        "kind": "Status", "apiVersion": "v1", "metadata": metadata, "status": "Success", "details": details, "code": 200
    })
}

/// Returns the `Status` of a deletion that is done.
fn success(served: &Served, name: &str, uid: &str) -> Value {
    let mut details = value!({"name": name});
    if !served.group().is_empty() {
        details.set_at(&["group"], served.group());
    }
    details.set_at(&["kind"], &*served.resource.name);
    details.set_at(&["uid"], uid);
    value!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
}
