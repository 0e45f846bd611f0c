//! Reads of objects: get, list, watch; objects in answers.

use std::future::ready;
use std::sync::Arc;

use actix_web::HttpResponse;
use flotilla_cluster::Object;
use futures_util::FutureExt as _;

use super::actor::{Collect, unrouted};
use super::resources::Request;
use super::{lists, watches};
use crate::answer;
use crate::limits;
use crate::registry::{Entity, Listing};
use crate::representation::{self, Show};
use crate::request::{Form, Media, Offer, Representation};
use crate::status::{ApiError, ApiResult};

impl Request<'_> {
    pub(super) async fn respond_entity(
        &self,
        code: u16,
        entity: &Entity,
        representation: Representation,
    ) -> ApiResult<HttpResponse> {
        let registry = &self.gateway.registry;
        if let Entity::Stored(object) = entity {
            registry.tables.convert_to_show(&self.served, std::slice::from_ref(object)).await?;
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
                self.gateway.large_requests.run(move || ready(make()).boxed_local()).await??
            }
            _ => {
                let include = self.include();
                let encoded = representation::encode_entity(registry, &self.served, entity, representation, include)?;
                answer::pack(encoded, gzip)
            }
        };
        Ok(answer::respond_packed(code, packed, &self.caller.notices.warnings))
    }

    /// Returns whether an object is large and must be encoded anew or compressed, which keeps a worker for long.
    fn takes_long_to_show(&self, object: &Object, representation: Representation) -> bool {
        let is_plain = representation.media == Media::Json && !representation.pretty && !self.head.gzip;
        let is_as_stored = is_plain && representation.form == Form::Object && self.served.shows_as_stored(object);
        object.bytes().len() >= limits::LARGE_REQUEST_BYTES && !is_as_stored
    }

    pub(super) async fn get(self) -> ApiResult<HttpResponse> {
        let representation = self.head.representation_of(&self.served, self.offer())?;
        if self.head.query.flag("export").unwrap_or(false) {
            let message = "the export parameter, deprecated since v1.14, is no longer supported";
            return Err(ApiError::bad_request(message));
        }
        let revision = self.head.query.get("resourceVersion");
        let object = self.gateway.registry.tables.get(&self.served, self.namespace, self.name, revision).await?;
        self.respond_entity(200, &Entity::Stored(object), representation).await
    }

    pub(super) async fn list(self) -> ApiResult<HttpResponse> {
        let representation = self.head.representation_of(&self.served, Offer::Collection)?;
        let listing = Listing::read(&self.head.query, &self.served, false)?;
        self.gateway.registry.reach_for_list(&self.served, &listing).await?;
        let (served, is_recent) = (Arc::clone(&self.served), listing.is_recent());
        let converted = listing.selection.converted.clone();
        let page = self.router.send(Collect { served, namespace: self.namespace.into(), listing }).await;
        let page = page.map_err(unrouted)??.read().await?;
        let page = self.gateway.registry.convert_page(&self.served, page, &converted).await?;
        if is_recent {
            self.gateway.registry.tables.wait_promised(page.revision).await?;
        }
        let show = Show { representation, include: self.include(), gzip: self.head.gzip };
        lists::respond(self.gateway, &self.served, page, show, &self.caller.notices.warnings).await
    }

    pub(super) async fn watch(self, by_path: bool) -> ApiResult<HttpResponse> {
        let representation = self.head.representation_of(&self.served, Offer::Collection)?;
        let mut listing = Listing::read(&self.head.query, &self.served, by_path)?;
        if !self.name.is_empty() {
            listing.select_name(self.name)?;
        }
        let show = Show { representation, include: self.include(), gzip: false };
        let (request, connection) = (self.head.request()?, self.head.connection);
        let asked = watches::WatchRequest { namespace: self.namespace, listing, connection, request };
        watches::respond(self.gateway, &self.served, asked, show, &self.caller.notices.warnings).await
    }
}
