//! The way of every request: who asks, for what, may they, and then to those who know.

use std::panic::AssertUnwindSafe;
use std::time::Instant;

use actix_web::http::StatusCode;
use actix_web::http::header::{ACCEPT, AUTHORIZATION, CONNECTION, CONTENT_TYPE, HeaderName, IF_NONE_MATCH, USER_AGENT};
use actix_web::{HttpRequest, HttpResponse, web};
use flotilla_cluster::Standing;
use futures_util::FutureExt;

use super::attempt::{Attempt, Course};
use super::caller::Caller;
use super::negotiate::{Form, Media, Offer, Representation, negotiate, wants_pretty};
use super::path::{self, ResourcePath, Target};
use super::query::Query;
use super::verb::Verb;
use super::{Gateway, resources};
use super::{answer, backup, lists, members};
use crate::access::tokens;
use crate::access::{Attributes, ConnectionIdentity, Impersonation};
use crate::backup::BACKUP_PATH;
use crate::discovery;
use crate::metrics;
use crate::metrics::requests::Route;
use crate::status::{ApiError, ApiResult};

/// What of a request's head the server looks at.
pub struct Head<'r> {
    /// Method, as it was sent.
    pub method: &'r str,
    /// Path with its leading slash, not decoded.
    pub path: &'r str,
    /// Query without the question mark.
    pub query_text: &'r str,
    /// Query.
    pub query: Query<'r>,
    /// Header `Accept`.
    pub accept: &'r str,
    /// Header `Content-Type`.
    pub content_type: &'r str,
    /// Whether JSON is indented.
    pub pretty: bool,
    /// Whether the client takes gzip.
    pub gzip: bool,
    /// Whether the client wants to switch to another protocol.
    pub upgrade: bool,
}

impl<'r> Head<'r> {
    fn of(request: &'r HttpRequest) -> Self {
        let query = Query::parse(request.query_string());
        Self {
            method: request.method().as_str(),
            path: request.path(),
            query_text: request.query_string(),
            accept: header(request, &ACCEPT),
            content_type: header(request, &CONTENT_TYPE),
            pretty: wants_pretty(query.get("pretty"), header(request, &USER_AGENT)),
            gzip: takes_gzip(header(request, &actix_web::http::header::ACCEPT_ENCODING)),
            upgrade: header(request, &CONNECTION).to_ascii_lowercase().contains("upgrade"),
            query,
        }
    }

    /// The representation that the client wants of what a route offers.
    pub fn representation(&self, offer: Offer) -> ApiResult<Representation> {
        negotiate(self.accept, offer, self.pretty)
    }

    /// How errors are shown: as the client wants what has one form only, or as JSON where that cannot be had.
    pub fn for_errors(&self) -> Representation {
        let fallback = Representation { media: Media::Json, form: Form::Object, pretty: self.pretty };
        self.representation(Offer::Plain).unwrap_or(fallback)
    }
}

fn header<'r>(request: &'r HttpRequest, name: &HeaderName) -> &'r str {
    request.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or("")
}

fn takes_gzip(accept_encoding: &str) -> bool {
    accept_encoding.split(',').any(|coding| coding.split(';').next().unwrap_or("").trim() == "gzip")
}

/// Answers a request. A panic behind it becomes 500 and ends nothing else.
pub async fn handle(request: HttpRequest, payload: web::Payload, gateway: web::Data<Gateway>) -> HttpResponse {
    let mut attempt = Attempt::begin(gateway);
    let answered = AssertUnwindSafe(route(&request, payload, &mut attempt)).catch_unwind().await;
    let response = answered.unwrap_or_else(|_| {
        tracing::error!(method = %request.method(), path = request.path(), "a request failed unexpectedly");
        let error = ApiError::internal("the server failed to answer; the failure has been logged");
        answer::respond_error(&error, Head::of(&request).for_errors(), &[])
    });
    attempt.answer(response)
}

async fn route(request: &HttpRequest, payload: web::Payload, attempt: &mut Attempt) -> HttpResponse {
    let Attempt { gateway, course } = attempt;
    let head = Head::of(request);
    let identity = request.conn_data::<ConnectionIdentity>().cloned().unwrap_or_default();
    let authorization = request.headers().get(AUTHORIZATION).map(|value| value.as_bytes());
    let found = gateway.authenticator.authenticate(&identity, authorization);
    course.authenticated = Instant::now();
    let (access, took) = (&gateway.registry.metrics.access, course.authenticated - course.began);
    let who = match found {
        Ok(who) => who,
        Err(_) if *gateway.registry.store.standing().borrow() != Standing::Member && authorization.is_some() => {
            // Its account may be among what is not here yet.
            let error = ApiError::unavailable("this server cannot tell yet who asks".to_owned(), 1);
            return answer::respond_error(&error, head.for_errors(), &[]);
        }
        Err(error) => {
            access.unknown(took);
            return answer::respond_error(&error, head.for_errors(), &[]);
        }
    };
    access.authenticated(&who.user.name, took);
    let mut caller = Caller::new(who.user, header(request, &USER_AGENT));
    caller.warnings.extend(who.warning.map(str::to_owned));
    let headers = request.headers().iter();
    match Impersonation::parse(headers.map(|(name, value)| (name.as_str(), value.to_str().unwrap_or("")))) {
        Ok(impersonation) => caller.impersonation = impersonation,
        Err(error) => return answer::respond_error(&error, head.for_errors(), &caller.warnings),
    }
    let decoded = path::decode(head.path);
    let answered = match path::parse(&decoded) {
        Target::Resource(of) if gateway.documents.has_group(&of.group) => {
            resources::answer(gateway, &head, &of, payload, &mut caller, course).await
        }
        Target::Resource(of) => unserved(gateway, &head, &of, &mut caller, course),
        Target::WatchOfNothing => {
            let path = crate::field::quote(head.path);
            let why =
                format!("failed to create RequestInfo: unable to determine kind and namespace from url, {}", head.path);
            return answer::respond_text(500, &format!("Internal Server Error: {path}: {why}\n"));
        }
        Target::Other if decoded == METRICS || decoded == HEALTH_METRICS => {
            measured(gateway, &head, &decoded, &mut caller, course).await
        }
        Target::Other if let Some(asked) = members::asked(&decoded) => {
            match authorize(gateway, &head, &decoded, &mut caller, course) {
                Ok(()) => members::respond(gateway, &head, asked, payload, course).await,
                Err(refused) => Err(refused),
            }
        }
        Target::Other if decoded == BACKUP_PATH => match authorize(gateway, &head, &decoded, &mut caller, course) {
            Ok(()) => backup::respond(gateway, &head, course).await,
            Err(refused) => Err(refused),
        },
        _ => document(gateway, &head, request, &mut caller, course),
    };
    answered.unwrap_or_else(|error| answer::respond_error(&error, head.for_errors(), &caller.warnings))
}

/// Answers a request for objects of a group that nobody has; whether they may be asked for comes first.
fn unserved(
    gateway: &Gateway,
    head: &Head<'_>,
    of: &ResourcePath<'_>,
    caller: &mut Caller,
    course: &Course,
) -> ApiResult<HttpResponse> {
    let allowed = resources::authorize(gateway, head, of, Verb::of(head, of), caller);
    gateway.registry.metrics.access.decided(allowed.is_ok(), course.authenticated.elapsed());
    allowed?;
    Ok(respond_document(discovery::Answer::not_found(), &caller.warnings))
}

/// Lets a request for a path that is no object pass or not.
fn authorize(gateway: &Gateway, head: &Head<'_>, path: &str, caller: &mut Caller, course: &Course) -> ApiResult<()> {
    let verb = head.method.to_lowercase();
    let allowed = caller.authorize(&gateway.registry.authorizer, &Attributes::Path { verb: &verb, path });
    gateway.registry.metrics.access.decided(allowed.is_ok(), course.authenticated.elapsed());
    allowed
}

/// Where the server tells what it measured.
const METRICS: &str = "/metrics";
/// Where it tells what the checks of health say, in the same form.
const HEALTH_METRICS: &str = "/metrics/slis";

/// Answers with what was measured. It is written elsewhere, since it grows with what is served.
async fn measured(
    gateway: &web::Data<Gateway>,
    head: &Head<'_>,
    path: &str,
    caller: &mut Caller,
    course: &Course,
) -> ApiResult<HttpResponse> {
    authorize(gateway, head, path, caller, course)?;
    if head.method == "DELETE" {
        let message = "the server does not allow this method on the requested resource";
        return Err(ApiError::new(405, "MethodNotAllowed", message));
    }
    let written = if path == HEALTH_METRICS {
        gateway.health_metrics()
    } else {
        let asked = gateway.clone();
        web::block(move || asked.metrics()).await.map_err(ApiError::internal)?
    };
    let body = discovery::Body::Encoded(written.into());
    let found =
        discovery::Answer { status: 200, content_type: metrics::CONTENT_TYPE.into(), headers: Vec::new(), body };
    Ok(respond_document(if head.gzip { packed(found, "Accept-Encoding") } else { found }, &caller.warnings))
}

/// The name by which requests for a document are counted; most are not.
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

/// Answers what is not about objects: discovery, health, documents; 404 for the rest.
fn document(
    gateway: &Gateway,
    head: &Head<'_>,
    request: &HttpRequest,
    caller: &mut Caller,
    course: &mut Course,
) -> ApiResult<HttpResponse> {
    let path = path::decode(head.path);
    authorize(gateway, head, &path, caller, course)?;
    course.route = counted(&path).filter(|_| head.method == "GET");
    let if_none_match = request.headers().get(IF_NONE_MATCH).and_then(|value| value.to_str().ok());
    let asked = discovery::Request {
        method: head.method,
        path: &path,
        query: head.query_text,
        accept: head.accept,
        if_none_match,
        pretty: head.pretty,
    };
    if let Some(found) = gateway.health.answer(&asked) {
        return Ok(respond_document(found, &caller.warnings));
    }
    if let Some(found) = issuer_document(gateway, &asked) {
        return found.map(|found| respond_document(found, &caller.warnings));
    }
    if let Some(found) = discovery::version::answer(&asked).or_else(|| gateway.documents.answer(&asked)) {
        return found.map(|found| respond_document(found, &caller.warnings));
    }
    let found = gateway.openapi.answer(&asked).or_else(|| discovery::root::answer(&asked, &gateway.documents));
    let found = found.unwrap_or_else(discovery::Answer::not_found);
    let packs = path == OPENAPI_V2 && head.gzip;
    Ok(respond_document(if packs { packed(found, "Accept-Encoding, Accept") } else { found }, &caller.warnings))
}

/// The one document that is compressed for those who take it: it has megabytes.
const OPENAPI_V2: &str = "/openapi/v2";

fn packed(mut found: discovery::Answer, vary: &'static str) -> discovery::Answer {
    if let discovery::Body::Encoded(bytes) = &found.body
        && let Some(small) = lists::gzip(bytes)
    {
        found.body = discovery::Body::Encoded(small);
        found.headers.retain(|(name, _)| *name != "vary");
        found.headers.extend([("content-encoding", "gzip".into()), ("vary", vary.into())]);
    }
    found
}

/// What verifiers of service account tokens ask for (OpenID Connect Discovery 1.0).
fn issuer_document(gateway: &Gateway, asked: &discovery::Request<'_>) -> Option<ApiResult<discovery::Answer>> {
    let keys = gateway.authenticator.keys();
    let (media, body) = match asked.path {
        tokens::CONFIGURATION_PATH => {
            (Media::Json.name(), tokens::configuration(gateway.issuer.name(), gateway.address, keys))
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

fn respond_document(found: discovery::Answer, warnings: &[String]) -> HttpResponse {
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
