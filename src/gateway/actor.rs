//! The gateway of a worker: routes requests, and gathers the pages of lists over all shards of a resource.
//!
//! The actor answers each message at once, on the worker's own thread: a message costs a fraction of a microsecond and
//! no lock. The task of the request does everything that waits for a quorum, a body or a client.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use actix::{Actor, Context, Handler, MailboxError, Message, MessageResult};
use actix_web::http::{Method, Uri};
use actix_web::web;
use compact_str::CompactString;

use super::Gateway;
use super::routing::{self, Routed};
use crate::limits;
use crate::registry::{Listing, UnreadPage};
use crate::served::Served;
use crate::status::{ApiError, ApiResult};
use crate::transport::RawTarget;

/// Routes the requests of one worker and gathers its lists.
pub(super) struct GatewayActor {
    gateway: web::Data<Gateway>,
}

impl GatewayActor {
    pub(super) fn new(gateway: web::Data<Gateway>) -> Self {
        Self { gateway }
    }
}

impl Actor for GatewayActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        ctx.set_mailbox_capacity(limits::GATEWAY_MESSAGES);
    }
}

/// Asks for the route of a request.
pub(super) struct Route {
    /// Its method.
    pub(super) method: Method,
    /// Its URI.
    pub(super) uri: Uri,
    /// Its path and query, if the URI does not state them.
    pub(super) target: Option<Arc<RawTarget>>,
    /// Whether its query asks for a watch.
    pub(super) watch: bool,
}

impl Message for Route {
    type Result = ApiResult<Routed>;
}

impl Handler<Route> for GatewayActor {
    type Result = MessageResult<Route>;

    fn handle(&mut self, Route { method, uri, target, watch }: Route, _: &mut Context<Self>) -> MessageResult<Route> {
        let Gateway { aggregation, registry, .. } = &**self.gateway;
        let (method, path) = (method.as_str(), target.as_ref().map_or(uri.path(), |target| &target.path));
        let route = || {
            Ok(match aggregation.of_path(path) {
                Some(remote) => routing::elsewhere(remote, method, path, watch),
                None => routing::route(&registry.tables.resources, method, path, watch),
            })
        };
        MessageResult(unless_it_panics(route))
    }
}

/// Asks for a page of a list. The caller has waited for the revision of the list, and reads the objects of the page
/// itself.
pub(super) struct Collect {
    /// The resource.
    pub(super) served: Arc<Served>,
    /// The namespace; empty for all namespaces.
    pub(super) namespace: CompactString,
    /// The selection, the revision and the limit of the list.
    pub(super) listing: Listing,
}

impl Message for Collect {
    type Result = ApiResult<UnreadPage>;
}

impl Handler<Collect> for GatewayActor {
    type Result = MessageResult<Collect>;

    fn handle(&mut self, of: Collect, _: &mut Context<Self>) -> MessageResult<Collect> {
        MessageResult(unless_it_panics(|| self.gateway.registry.page(&of.served, &of.namespace, &of.listing)))
    }
}

/// Answers a message. A panic becomes the error 500: it must not end the actor, which answers all other requests.
fn unless_it_panics<T>(answer: impl FnOnce() -> ApiResult<T>) -> ApiResult<T> {
    catch_unwind(AssertUnwindSafe(answer)).unwrap_or_else(|_| {
        tracing::error!("the gateway failed unexpectedly");
        Err(ApiError::internal("the server failed to answer; the failure has been logged"))
    })
}

/// Returns the error of a request whose worker is about to end.
pub(super) fn unrouted(_: MailboxError) -> ApiError {
    ApiError::unavailable("this server is stopping".to_owned(), 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_answer() {
        let answered: ApiResult<()> = unless_it_panics(|| panic!("not thought of"));
        assert_eq!(answered.unwrap_err().code, 500);
        assert_eq!(unless_it_panics(|| Ok(1)).unwrap(), 1);
    }
}
