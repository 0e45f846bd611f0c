//! Upgrades connections to another protocol, and forwards bytes in both directions without interpreting them.

use actix_web::HttpResponse;
use actix_web::body::BodyStream;
use actix_web::http::StatusCode;
use http::header::{HOST, HeaderMap};
use http::response::Parts;
use http::uri::Authority;
use http::{Method, Request, Response};
use http_body_util::BodyDataStream;
use tokio::time::Instant;

use super::duplex::Duplex;
use super::{Destination, ForwardedRequest, forwarded, switched};
use crate::limits;
use crate::outbound::{self, Answer, Body, Error, LongTarget, Switched, Unpooled};
use crate::status::{ApiError, ApiResult};

/// Forwards a request to upgrade the connection.
///
/// # Errors
/// The other server cannot be reached, or its answer is neither an upgrade nor an error.
pub async fn answer(passing: &ForwardedRequest<'_>, to: &Destination) -> ApiResult<HttpResponse> {
    let method = Method::from_bytes(passing.request.method().as_str().as_bytes()).map_err(ApiError::internal)?;
    let mut headers = forwarded::of_upgrade(passing)?;
    forwarded::name_host(&mut headers, passing.request);
    match ask(passing, to, method, headers).await? {
        Unpooled::Switched(head, peer) => switch(passing, &head, peer),
        Unpooled::Answered(answer) => refused(passing, answer),
    }
}

/// Upgrades the client's connection as the other server did.
///
/// # Errors
/// The client's connection cannot be upgraded.
pub fn switch(passing: &ForwardedRequest<'_>, head: &Parts, peer: Switched) -> ApiResult<HttpResponse> {
    let client = passing.client_bytes()?;
    let protocol = head.headers.get("upgrade").and_then(|value| value.to_str().ok()).unwrap_or("");
    let mut begun = HttpResponse::build(StatusCode::SWITCHING_PROTOCOLS);
    begun.upgrade(protocol);
    let mut response = switched(begun, passing.lasting(Duplex::new(client, peer)));
    forwarded::copy(&head.headers, response.headers_mut());
    Ok(response)
}

/// Requests the upgrade from the other server.
///
/// # Errors
/// The server cannot be reached.
pub async fn ask(
    passing: &ForwardedRequest<'_>,
    to: &Destination,
    method: Method,
    headers: HeaderMap,
) -> ApiResult<Unpooled> {
    let request = request(to, &to.path, method, headers, outbound::empty())?;
    let deadline = Instant::now() + limits::STREAM_BEGIN_TIMEOUT;
    let asked = passing.meanwhile(passing.outbound.send_unpooled(&to.peer, request, deadline)).await?;
    asked.map_err(|error| match error {
        Error::Forbidden => ApiError::bad_request(error.to_string()),
        error if error.is_before_request() => ApiError::unknown(format!("error dialing backend: {error}")),
        error => ApiError::unknown(error.to_string()),
    })
}

/// Returns a request to another server, for this path and query. The host is that of the headers, else the address of
/// the server.
///
/// # Errors
/// The request cannot be represented.
pub fn request(
    to: &Destination,
    path: &str,
    method: Method,
    headers: HeaderMap,
    body: Body,
) -> ApiResult<Request<Body>> {
    let scheme = if to.peer.secure.is_some() { "https" } else { "http" };
    let path = if path.is_empty() { "/" } else { path };
    let (path, long) =
        if path.len() > limits::STREAM_URI_BYTES { ("/", Some(LongTarget(path.to_owned()))) } else { (path, None) };
    let stated = headers.get(HOST).and_then(|host| host.to_str().ok()?.parse::<Authority>().ok());
    let host = stated.map_or_else(|| to.peer.address(), |host| host.to_string());
    let uri = format!("{scheme}://{host}{path}");
    let mut request = Request::builder().method(method).uri(uri).body(body).map_err(ApiError::internal)?;
    *request.headers_mut() = headers;
    if let Some(long) = long {
        request.extensions_mut().insert(long);
    }
    Ok(request)
}

/// Answers a client whose upgrade was refused. Both connections end: the client's because only 101 keeps it open, the
/// other server's because no other request uses it.
///
/// # Errors
/// The answer is not an error, or its status code is invalid.
pub fn refused(passing: &ForwardedRequest<'_>, answer: Response<Answer>) -> ApiResult<HttpResponse> {
    let code = answer.status().as_u16();
    if code < 400 {
        return Err(ApiError::unknown(format!("invalid upgrade response: status code {code}")));
    }
    let (mut head, body) = answer.into_parts();
    forwarded::drop_of_connection(&mut head.headers);
    let mut response = HttpResponse::build(StatusCode::from_u16(code).map_err(ApiError::internal)?);
    let mut response = response.body(BodyStream::new(passing.lasting(BodyDataStream::new(body))));
    head.headers.remove("content-length");
    forwarded::copy(&head.headers, response.headers_mut());
    Ok(response)
}
