//! Answers that are not about objects: discovery, health, documents, metrics, and the paths that Kubernetes does not
//! have.

use actix_web::http::StatusCode;
use actix_web::http::header::{CONTENT_TYPE, IF_NONE_MATCH};
use actix_web::{HttpResponse, web};

use super::Gateway;
use super::exchange::Progress;
use super::head::Head;
use crate::access::tokens;
use crate::answer;
use crate::discovery;
use crate::fairness::Dump;
use crate::metrics::route::Route;
use crate::prometheus;
use crate::request::{Caller, Media, path};
use crate::status::{ApiError, ApiResult};

/// Answers with metrics. Another thread writes them, since they grow with the number of resources.
pub(super) async fn measured(
    gateway: &web::Data<Gateway>,
    head: &Head<'_>,
    health: bool,
    caller: &Caller,
) -> ApiResult<HttpResponse> {
    if head.method == "DELETE" {
        let message = "the server does not allow this method on the requested resource";
        return Err(ApiError::new(405, "MethodNotAllowed", message));
    }
    let written = if health {
        gateway.health_metrics()
    } else {
        let asked = gateway.clone();
        web::block(move || asked.metrics()).await.map_err(ApiError::internal)?
    };
    let body = discovery::Body::Encoded(written.into());
    let found =
        discovery::Answer { status: 200, content_type: prometheus::CONTENT_TYPE.into(), headers: Vec::new(), body };
    Ok(respond_document(if head.gzip { packed(found, "Accept-Encoding") } else { found }, &caller.notices.warnings))
}

/// Returns the route under which requests for a document are counted. `None` for most documents, which are not counted.
fn counted(path: &str) -> Option<Route> {
    let name = match path {
        "/api" | "/api/" => "api",
        "/apis" | "/apis/" => "apis",
        "/healthz" => "/healthz",
        "/livez" => "/livez",
        "/readyz" => "/readyz",
        "/openapi/v3" => "openapi/v3",
        below if below.starts_with("/openapi/v3/") => "openapi/v3/",
        _ => return None,
    };
    Some(Route::Document(name))
}

/// Answers requests for discovery, health and documents. 404 for all other paths.
pub(super) fn document(
    gateway: &Gateway,
    head: &Head<'_>,
    caller: &Caller,
    progress: &mut Progress,
) -> ApiResult<HttpResponse> {
    let path = path::decode(head.path);
    if let Some(route) = counted(&path).filter(|_| head.method == "GET") {
        progress.counts_as(gateway, route);
    }
    let if_none_match = head.request()?.headers().get(IF_NONE_MATCH).and_then(|value| value.to_str().ok());
    let asked = discovery::Request {
        method: head.method,
        path: &path,
        query: head.query_text,
        accept: head.accept,
        if_none_match,
        pretty: head.pretty,
    };
    if let Some(found) = gateway.health.answer(&asked) {
        return Ok(respond_document(found, &caller.notices.warnings));
    }
    if let Some((fairness, what)) = gateway.fairness.as_ref().zip(Dump::of(&path)) {
        let (body, content_type) = (discovery::Body::Encoded(fairness.dump(what).into()), "text/plain; charset=utf-8");
        let found = discovery::Answer { status: 200, content_type: content_type.into(), headers: Vec::new(), body };
        return Ok(respond_document(found, &caller.notices.warnings));
    }
    if let Some(found) = issuer_document(gateway, &asked) {
        return found.map(|found| respond_document(found, &caller.notices.warnings));
    }
    let stated = discovery::version::answer(&asked, &gateway.git_version);
    if let Some(found) = stated.or_else(|| gateway.published.documents().answer(&asked)) {
        return found.map(|found| respond_document(found, &caller.notices.warnings));
    }
    let found = gateway.published.openapi().answer(&asked);
    let found = found.or_else(|| discovery::root::answer(&asked, &gateway.published.documents()));
    let found = found.unwrap_or_else(discovery::Answer::not_found);
    let packs = path == OPENAPI_V2 && head.gzip;
    Ok(respond_document(if packs { packed(found, "Accept-Encoding, Accept") } else { found }, &caller.notices.warnings))
}

/// The one document that is compressed for clients that accept this, since it has megabytes.
const OPENAPI_V2: &str = "/openapi/v2";

fn packed(mut found: discovery::Answer, vary: &'static str) -> discovery::Answer {
    if let discovery::Body::Encoded(bytes) = &found.body
        && let Some(small) = answer::compress(bytes)
    {
        found.body = discovery::Body::Encoded(small);
        found.headers.retain(|(name, _)| *name != "vary");
        found.headers.extend([("content-encoding", "gzip".into()), ("vary", vary.into())]);
    }
    found
}

/// Answers requests for the documents that verifiers of service account tokens read (OpenID Connect Discovery 1.0).
/// Returns `None` for other paths.
fn issuer_document(gateway: &Gateway, asked: &discovery::Request<'_>) -> Option<ApiResult<discovery::Answer>> {
    let keys = gateway.authenticator.keys();
    let (media, body) = match asked.path {
        tokens::CONFIGURATION_PATH => {
            (Media::Json.name(), tokens::configuration(gateway.issuer.name(), &gateway.jwks_uri, keys))
        }
        tokens::JWKS_PATH => (tokens::JWKS_MEDIA_TYPE, keys.jwks()),
        _ => return None,
    };
    let mut clauses = asked.accept.split(',').map(|clause| clause.split(';').next().unwrap_or("").trim());
    if !clauses.any(|clause| matches!(clause, "" | "*/*" | "application/*") || clause == media) {
        let message = format!("406: Not Acceptable\n\nAvailable representations: {media}");
        return Some(Err(ApiError { details: Some(Box::default()), ..ApiError::new(406, "NotAcceptable", message) }));
    }
    let headers = vec![("cache-control", tokens::CACHE_CONTROL.into())];
    let body = discovery::Body::Encoded(body.into());
    Some(Ok(discovery::Answer { status: 200, content_type: media.into(), headers, body }))
}

pub(super) fn respond_document(found: discovery::Answer, warnings: &[String]) -> HttpResponse {
    let (bytes, content_type) = match found.body {
        discovery::Body::Encoded(bytes) => (bytes, found.content_type),
        discovery::Body::Object { value, kind, representation } => {
            let encoded = answer::encode_kind(&value, kind, representation);
            (encoded.bytes, found.content_type)
        }
    };
    let mut response = HttpResponse::build(StatusCode::from_u16(found.status).unwrap_or(StatusCode::OK));
    response.insert_header(("cache-control", "no-cache, private"));
    if !content_type.is_empty() {
        response.insert_header((CONTENT_TYPE, content_type.as_ref()));
    }
    for (name, value) in &found.headers {
        response.insert_header((*name, value.as_ref()));
    }
    answer::append_warnings(&mut response, warnings);
    response.body(bytes)
}
