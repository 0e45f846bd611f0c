//! Requests to subresources and to other paths without a stored object.

use actix_web::HttpResponse;
use flotilla_cluster::Terms;
use flotilla_proto::value;
use flotilla_proto::value::Value;

use super::lists;
use super::resources::Request;
use super::uploads::Body;
use super::writes::{IncomingPatch, note};
use crate::access::{Attributes, Inquiry, ResourceAttributes};
use crate::admission::Operation;
use crate::answer::{self, respond};
use crate::printing;
use crate::registry::ownership::Recorded;
use crate::registry::subresources::scale::{Paths, ScaleOf};
use crate::registry::subresources::{
    self, Acted, Action, Call, Connect, Connected, Connection, Handler, Shown, Tokens,
};
use crate::registry::{Entity, Listing, PatchBody, now};
use crate::representation;
use crate::request::path::ResourcePath;
use crate::request::verb::Verb;
use crate::request::{Form, Offer, Representation};
use crate::status::{ApiError, ApiResult};
use crate::streams;
use crate::tables::{Target, place, wipe};

impl Request<'_> {
    /// Answers through a handler other than that of objects.
    pub(super) async fn through(
        self,
        handler: Handler,
        verb: Verb,
        of: &ResourcePath,
        body: Body,
    ) -> ApiResult<HttpResponse> {
        match handler {
            Handler::Act(action) => self.act(action, body).await,
            Handler::Connect(connection) => self.connect(connection, of, body).await,
            Handler::Stream(connection) => {
                self.may_create().await?;
                self.connect(connection, of, body).await
            }
            Handler::Scale => self.scale(verb, body).await,
            Handler::Shown(shown) if verb == Verb::List => self.shown_list(shown).await,
            Handler::Shown(shown) => self.shown_one(shown).await,
            Handler::Object => Err(ApiError::no_such_path()),
        }
    }

    async fn act(self, action: Action, body: Body) -> ApiResult<HttpResponse> {
        let part = self.served.part(self.subresource).unwrap_or(&self.served);
        let (representation, options, object) = self.object((part, Offer::Untabled), body, "CreateOptions")?;
        let decoded = object()?;
        note(self.caller, part, &decoded);
        let target = Target::object(&self.served, self.namespace, self.name).with_subresource(self.subresource);
        let mut document = decoded.value;
        // In the document of a subresource, the metadata states which object is meant.
        if self.subresource.is_empty() {
            wipe(&mut document);
        }
        place(target, &mut document)?;
        crate::tables::order_members(&mut document, part.of());
        let registry = &self.gateway.registry;
        registry.prepare(target, &document, &options, self.caller).await?;
        registry.admission.admit_action(target, &mut document, self.caller).await?;
        part.strategy.set_defaults(&mut document, now());
        let (subresource, untracked) = (self.subresource, decoded.untracked);
        Recorded { served: part, subresource, options: &options, live: None, untracked }.record(&mut document);
        let complete = |document: &mut Value| subresources::complete(registry, target, document);
        registry.admission.decide_action(target, &mut document, &options, self.caller, complete).await?;
        registry.admission.validate_action(target, &document, self.caller).await?;
        let gateway = self.gateway;
        let tokens = Tokens { authenticator: &gateway.authenticator, issuer: &gateway.issuer };
        let acted =
            action(Call { registry, tokens, target, body: document, options: &options, caller: &mut *self.caller })
                .await?;
        let encoded = match acted {
            Acted::Done => answer::encode_status(&subresources::done(), representation),
            Acted::Document(mut document) => {
                crate::tables::order_members(&mut document, part.of());
                representation::encode_entity(registry, part, &Entity::Built(document), representation, self.include())?
            }
        };
        Ok(respond(201, encoded, &self.caller.notices.warnings))
    }

    /// Refuses a user who may read the subresource but not create it.
    async fn may_create(&self) -> ApiResult<()> {
        let (group, resource) = (self.served.group(), &*self.served.resource.name);
        let (namespace, name, subresource) = (self.namespace, self.name, self.subresource);
        let (verb, version) = ("create", &*self.served.kind().version);
        let of =
            ResourceAttributes { verb, group, version, resource, subresource, namespace, name, ..Default::default() };
        let decide = |inquiry: &Inquiry| {
            self.gateway.registry.tables.authorizer.decide(
                self.caller.identity.user(),
                &Attributes::Resource(of),
                inquiry,
            )
        };
        let decision = self.caller.inquiry.settled(self.caller.ends, decide).await;
        match decision.is_allowed() {
            true => Ok(()),
            false => Err(ApiError::forbidden(group, resource, name, &decision.reason)),
        }
    }

    async fn connect(self, connection: Connection, of: &ResourcePath, body: Body) -> ApiResult<HttpResponse> {
        let (gateway, slash) = (self.gateway, self.head.path.ends_with('/').then_some(""));
        let (registry, rest) = (&gateway.registry, of.rest.as_deref().or(slash));
        let target = Target::object(&self.served, self.namespace, self.name).with_subresource(self.subresource);
        let (within, outside) = (
            registry.admission.is_decided_within(target, Operation::Connect),
            registry.admission.is_decided_outside(target, Operation::Connect),
        );
        // Paths that are only read, such as logs, have no options.
        if (within || outside)
            && let Some(options) = subresources::connection_options(target, &self.head.query, rest)
        {
            registry.admission.admit_connection(target, self.caller)?;
            if outside {
                registry.admission.decide_connection(target, &options, self.caller).await?;
            }
        }
        match connection(Connect { registry, target, query: &self.head.query, rest }).await? {
            Connected::Nothing => Ok(HttpResponse::NoContent().insert_header(answer::CACHING).finish()),
            Connected::To(destination) => {
                streams::pass(gateway.passing(self.head)?, &destination, body.coming()?).await
            }
        }
    }

    async fn scale(self, verb: Verb, body: Body) -> ApiResult<HttpResponse> {
        let (head, registry) = (self.head, &self.gateway.registry);
        let part = self.served.part(self.subresource).ok_or_else(ApiError::no_such_path)?;
        let parent = Target::object(&self.served, self.namespace, self.name).with_subresource(self.subresource);
        let paths = Paths::of(&self.served);
        let of = ScaleOf { parent, part, paths: &paths };
        let (representation, entity) = match verb {
            Verb::Update => {
                let (representation, options, object) = self.object((part, Offer::Objects), body, "UpdateOptions")?;
                let decoded = object()?;
                note(self.caller, part, &decoded);
                (representation, registry.replace_scale(of, decoded, &options, self.caller).await?)
            }
            Verb::Patch => {
                let patch = IncomingPatch::read((head, self.caller), (&self.served, Offer::Objects), body)?;
                let IncomingPatch { representation, format, bytes, options } = patch;
                let entity = match format {
                    Some(format) => {
                        registry.patch_scale(of, PatchBody { format, bytes: &bytes }, &options, self.caller).await?
                    }
                    None => registry.apply_scale(of, &bytes, &options, self.caller).await?,
                };
                (representation, entity)
            }
            _ => {
                let representation = head.representation_of(&self.served, Offer::Objects)?;
                (representation, registry.scale(of, head.query.get("resourceVersion")).await?)
            }
        };
        let encoded = representation::encode_entity(registry, part, &entity, representation, self.include())?;
        Ok(respond(200, encoded, &self.caller.notices.warnings))
    }

    async fn shown_one(self, shown: Shown) -> ApiResult<HttpResponse> {
        let representation = self.head.representation(Offer::Objects)?;
        let mut all = shown(&self.gateway.registry).await.into_iter();
        let found = all.find(|object| object.str_at(&["metadata", "name"]) == self.name);
        // For objects that are not stored, errors have the singular name of the resource.
        let missing = || ApiError::not_found(self.served.group(), &self.served.resource.singular, self.name);
        self.respond_entity(200, &Entity::Built(found.ok_or_else(missing)?), representation).await
    }

    async fn shown_list(self, shown: Shown) -> ApiResult<HttpResponse> {
        let representation = self.head.representation(Offer::Collection)?;
        let listing = Listing::read(&self.head.query, &self.served, false)?;
        lists::refuse_single(&self.served, representation)?;
        let terms = Terms::new(Vec::new(), Vec::new());
        let mut items = shown(&self.gateway.registry).await;
        items.retain(|object| listing.selection.matches("", object.str_at(&["metadata", "name"]), &terms));
        let encoded = match representation.form {
            Form::Table { version } => {
                let mut table =
                    representation::table(&self.served, version, printing::Includer::from_query(self.include())?);
                let mut out = Vec::new();
                table.begin(&printing::ListMeta::default(), &mut out);
                for item in &items {
                    table.row(item, printing::Encoded::default(), &mut out);
                }
                table.end(&mut out);
                representation::finish_table(out, representation)?
            }
            Form::Metadata { version, .. } => {
                let items: Vec<Value> = items.iter().map(|item| representation::partial(item, version)).collect();
                let api_version = format!("meta.k8s.io/{version}");
                let list = value!({
                    "kind": "PartialObjectMetadataList", "apiVersion": api_version, "metadata": {}, "items": items
                });
                answer::encode_value(&list, representation)
            }
            Form::Object => self.plain_list(items, representation),
        };
        Ok(respond(200, encoded, &self.caller.notices.warnings))
    }

    fn plain_list(&self, mut items: Vec<Value>, representation: Representation) -> answer::Encoded {
        for item in &mut items {
            item.remove_at(&["kind"]);
            item.remove_at(&["apiVersion"]);
        }
        let list = value!({
            "kind": (&*self.served.resource.list_kind), "apiVersion": (self.served.api_version()), "metadata": {}, "items": items
        });
        answer::encode_value(&list, representation)
    }
}
