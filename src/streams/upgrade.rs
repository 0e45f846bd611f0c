//! Going on with another protocol: bytes are passed on in both directions and not looked at.

use actix_web::HttpResponse;
use actix_web::body::BodyStream;
use actix_web::http::StatusCode;
use http::header::HeaderMap;
use http::response::Parts;
use http::{Method, Request, Response};
use http_body_util::BodyDataStream;
use tokio::time::Instant;

use super::duplex::Duplex;
use super::{Destination, Passing, forwarded, switched};
use crate::limits;
use crate::outbound::{self, Alone, Answer, Body, Error, LongTarget, Switched};
use crate::status::{ApiError, ApiResult};

/// Bytes of a path with its query that stand in a URI, which also names the host.
const LONG_BYTES: usize = 60_000;

/// Passes on a request for another protocol.
///
/// # Errors
/// When the other server cannot be reached, or answers with neither that nor an error.
pub async fn answer(passing: &Passing<'_>, to: &Destination) -> ApiResult<HttpResponse> {
    let method = Method::from_bytes(passing.request.method().as_str().as_bytes()).map_err(ApiError::internal)?;
    match ask(passing, to, method, forwarded::of_upgrade(passing)?).await? {
        Alone::Switched(head, peer) => switch(passing, &head, peer),
        Alone::Answered(answer) => refused(passing, answer),
    }
}

/// Goes on as the other server does.
///
/// # Errors
/// When the connection of the client cannot.
pub fn switch(passing: &Passing<'_>, head: &Parts, peer: Switched) -> ApiResult<HttpResponse> {
    let client = passing.client_bytes()?;
    let protocol = head.headers.get("upgrade").and_then(|value| value.to_str().ok()).unwrap_or("");
    let mut begun = HttpResponse::build(StatusCode::SWITCHING_PROTOCOLS);
    begun.upgrade(protocol);
    let mut response = switched(begun, passing.lasting(Duplex::new(client, peer)));
    forwarded::copy(&head.headers, response.headers_mut());
    Ok(response)
}

/// Asks the other server for another protocol.
///
/// # Errors
/// When it cannot be reached.
pub async fn ask(passing: &Passing<'_>, to: &Destination, method: Method, headers: HeaderMap) -> ApiResult<Alone> {
    let request = request(to, &to.path, method, headers, outbound::empty())?;
    let deadline = Instant::now() + limits::STREAM_BEGIN_TIMEOUT;
    let asked = passing.meanwhile(passing.outbound.send_alone(&to.peer, request, deadline)).await?;
    asked.map_err(|error| match error {
        Error::Forbidden => ApiError::bad_request(error.to_string()),
        error if error.is_before_request() => ApiError::unknown(format!("error dialing backend: {error}")),
        error => ApiError::unknown(error.to_string()),
    })
}

/// A request of another server, for this path and query.
///
/// # Errors
/// When there can be none like that.
pub fn request(
    to: &Destination,
    path: &str,
    method: Method,
    headers: HeaderMap,
    body: Body,
) -> ApiResult<Request<Body>> {
    let scheme = if to.peer.secure.is_some() { "https" } else { "http" };
    let path = if path.is_empty() { "/" } else { path };
    let (path, long) = if path.len() > LONG_BYTES { ("/", Some(LongTarget(path.to_owned()))) } else { (path, None) };
    let uri = format!("{scheme}://{}{path}", to.peer.address());
    let mut request = Request::builder().method(method).uri(uri).body(body).map_err(ApiError::internal)?;
    *request.headers_mut() = headers;
    if let Some(long) = long {
        request.extensions_mut().insert(long);
    }
    Ok(request)
}

/// What a client is told whose request for another protocol was answered with something else. Both connections end:
/// that of the client with every answer to such a request but 101, that of the other server since it is nobody else's.
///
/// # Errors
/// When the answer is none.
pub fn refused(passing: &Passing<'_>, answer: Response<Answer>) -> ApiResult<HttpResponse> {
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
