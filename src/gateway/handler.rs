//! The entry of every request, and the one exit of every answer.

use std::future::poll_fn;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;

use actix::Addr;
use actix_web::http::Version;
use actix_web::http::header::HeaderValue;
use actix_web::{HttpMessage as _, HttpRequest, HttpResponse, web};
use futures_util::FutureExt;

use super::actor::GatewayActor;
use super::exchange::Exchange;
use super::head::Head;
use super::{Gateway, audit, flows, recorded, stages};
use crate::answer;
use crate::request::path;
use crate::status::ApiError;
use crate::transport::{Outlet, RawTarget};
use crate::watchdog::{Stage, Work, during};

/// Answers a request. A panic below becomes an answer 500 and ends nothing else.
pub(super) async fn handle(
    request: HttpRequest,
    payload: web::Payload,
    gateway: web::Data<Gateway>,
    router: web::Data<Addr<GatewayActor>>,
) -> HttpResponse {
    let target = request.extensions().get::<Arc<RawTarget>>().cloned();
    let path = target.as_ref().map_or(request.path(), |target| &target.path);
    if !path::is_escaped_well(path) {
        // This is not a URL: kube-apiserver's HTTP library refuses it too, before its handlers see a request.
        return HttpResponse::BadRequest().content_type("text/plain; charset=utf-8").body("400 Bad Request");
    }
    let id = audit::id(request.headers());
    let head = Head::of(&request, target.as_ref());
    if let Some(response) = gateway.browsers.as_ref().and_then(|browsers| browsers.preflight(&request)) {
        return finish(Exchange::begin(gateway), &request, response, (&head, id));
    }
    let mut exchange = Exchange::begin(gateway);
    let answered = {
        let mut work = Work::new(Stage::Arriving, head.method, None);
        let passing = stages::pass(&request, (&head, &id), payload, &router, &mut exchange);
        let mut passing = pin!(AssertUnwindSafe(passing).catch_unwind());
        poll_fn(|cx| during(&mut work, || passing.as_mut().poll(cx))).await
    };
    let response = answered.unwrap_or_else(|_| {
        recorded::broke(&mut exchange.progress);
        tracing::error!(method = %request.method(), path = head.path, "a request failed unexpectedly");
        let error = ApiError::internal("the server failed to answer; the failure has been logged");
        answer::respond_error(&error, head.for_errors(), &[])
    });
    let response = recorded::answers(&mut exchange.progress, response);
    if recorded::is_awaited(&exchange.progress) {
        Box::pin(recorded::precedes(&mut exchange, &response)).await;
    }
    finish(exchange, &request, response, (&head, id))
}

/// Completes an answer with the headers that every answer has.
fn finish(
    exchange: Exchange,
    request: &HttpRequest,
    mut response: HttpResponse,
    (head, id): (&Head<'_>, HeaderValue),
) -> HttpResponse {
    response.headers_mut().insert(audit::AUDIT_ID, id);
    flows::show(exchange.progress.flow.as_ref(), response.headers_mut());
    if let Some(browsers) = &exchange.gateway.browsers {
        browsers.show(request, response.headers_mut());
    }
    let outlet = request.conn_data::<Outlet>().cloned().unwrap_or_default();
    if is_sent_away(&exchange.gateway, request) {
        outlet.leave();
    }
    exchange.answer(response, outlet, head)
}

/// Returns whether the client of a request is asked to reconnect, so that its next connection may reach another member.
fn is_sent_away(gateway: &Gateway, request: &HttpRequest) -> bool {
    let chance = gateway.goaway_chance;
    chance > 0.0 && request.version() == Version::HTTP_2 && rand::random::<f64>() < chance
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the size of the future that answers a request, in bytes. Every task holds one.
    fn bytes<A, B, C, D, F: Future>(_: impl Fn(A, B, C, D) -> F) -> usize {
        size_of::<F>()
    }

    #[test]
    fn the_future_of_a_request_stays_small() {
        let bytes = bytes(handle);
        assert!(bytes <= 3_744, "{bytes} bytes");
    }
}
