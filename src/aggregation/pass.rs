//! Forwards requests to aggregated servers.

use actix_web::{HttpResponse, web};
use http::header::{HOST, HeaderMap, HeaderName, HeaderValue, LOCATION};
use http::{Method, Request};
use tokio::time::Instant;

use super::{Aggregation, Remote, identity};
use crate::access::User;
use crate::answer::{self, CACHING};
use crate::limits;
use crate::outbound::{self, Answer, Error, Peer, Unpooled};
use crate::status::ApiResult;
use crate::streams::{Destination, ForwardMode, ForwardedRequest, forwarded, proxy, upgrade};

/// Forwards a request that is authorized. `lasts` says that the answer does not end by itself, as that of a watch.
///
/// # Errors
/// The request cannot be forwarded, or the client has disconnected. Failures of the other server are answers.
pub async fn answer(
    aggregation: &Aggregation,
    remote: &Remote,
    passing: &ForwardedRequest<'_>,
    user: &User,
    lasts: bool,
    payload: web::Payload,
) -> ApiResult<HttpResponse> {
    if !remote.is_available {
        return Ok(refusal(503, "service unavailable"));
    }
    let Ok(peer) = remote.peer(&aggregation.registry, aggregation.identity()) else {
        return Ok(refusal(503, "service unavailable"));
    };
    let ForwardedRequest { request, path, query, .. } = *passing;
    let path = if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") };
    let to = Destination { peer, path, manner: ForwardMode::Proxy };
    let is_upgrade = passing.is_upgrade();
    let mut headers = if is_upgrade { forwarded::of_upgrade(passing)? } else { forwarded::of_request(passing)? };
    // The user's headers come last: from here on, `Connection` headers of the client cannot remove them.
    identity::set(&mut headers, user)?;
    if let Ok(host) = HeaderValue::from_str(&to.peer.address()) {
        headers.insert(HOST, host);
    }
    if is_upgrade {
        return match upgrade::ask(passing, &to, method(passing), headers).await {
            Ok(Unpooled::Switched(head, peer)) => upgrade::switch(passing, &head, peer),
            Ok(Unpooled::Answered(answer)) => {
                upgrade::refused(passing, answer).or_else(|error| Ok(refusal(503, &error.message)))
            }
            Err(error) => Ok(refusal(503, &error.message)),
        };
    }
    tell_where(&mut headers, passing.path, &to.peer);
    let asked = match lasts && request.method() == "GET" {
        true => alone(passing, &to, headers).await?,
        false => proxy::ask(passing, &to, &to.path, headers, payload).await?,
    };
    match asked {
        Err(error) => Ok(refusal(503, &format!("error trying to reach service: {error}"))),
        Ok(answer) if answer.status().is_redirection() && answer.headers().contains_key(LOCATION) => {
            Ok(refusal(502, "the backend attempted to redirect this request, which is not permitted"))
        }
        Ok(answer) => {
            let (head, body) = answer.into_parts();
            proxy::respond(passing, head, body)
        }
    }
}

fn method(passing: &ForwardedRequest<'_>) -> Method {
    Method::from_bytes(passing.request.method().as_str().as_bytes()).unwrap_or_default()
}

/// Forwards a long-running request over a connection of its own, so that it delays no others.
async fn alone(
    passing: &ForwardedRequest<'_>,
    to: &Destination,
    headers: HeaderMap,
) -> ApiResult<Result<http::Response<Answer>, Error>> {
    let request: Request<outbound::Body> = upgrade::request(to, &to.path, method(passing), headers, outbound::empty())?;
    let deadline = Instant::now() + limits::STREAM_BEGIN_TIMEOUT;
    let asked = passing.meanwhile(passing.outbound.send_unpooled(&to.peer, request, deadline)).await?;
    Ok(asked.and_then(|answered| match answered {
        Unpooled::Answered(answer) => Ok(answer),
        Unpooled::Switched(head, _) => Err(Error::switched(&head.headers)),
    }))
}

/// Adds the headers that state the original destination of the request.
fn tell_where(headers: &mut HeaderMap, path: &str, peer: &Peer) {
    let forwarded = [("x-forwarded-uri", path), ("x-forwarded-host", &*peer.address()), ("x-forwarded-proto", "https")];
    for (name, value) in forwarded {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(HeaderName::from_static(name), value);
        }
    }
}

/// Returns an answer in place of the other server's: plain text, as in the reference.
fn refusal(code: u16, why: &str) -> HttpResponse {
    let mut response = answer::respond_text(code, &format!("{why}\n"));
    response.headers_mut().insert(CACHING.0, CACHING.1);
    response
}
