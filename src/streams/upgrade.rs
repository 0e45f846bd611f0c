//! Going on with another protocol: bytes are passed on in both directions and not looked at.

use actix_web::body::BodyStream;
use actix_web::http::StatusCode;
use actix_web::{HttpResponse, web};
use http::header::HeaderMap;
use http::response::Parts;
use http::{Method, Request, Response};
use http_body_util::BodyDataStream;
use tokio::time::Instant;

use super::duplex::Duplex;
use super::{Destination, Passing, forwarded};
use crate::limits;
use crate::outbound::{self, Alone, Answer, Body, Error, Switched};
use crate::status::{ApiError, ApiResult};

/// Passes on a request for another protocol.
///
/// # Errors
/// When the other server cannot be reached, or answers with neither that nor an error.
pub async fn answer(passing: &Passing<'_>, to: &Destination, payload: web::Payload) -> ApiResult<HttpResponse> {
    let method = Method::from_bytes(passing.request.method().as_str().as_bytes()).map_err(ApiError::internal)?;
    match ask(passing, to, method, forwarded::of_request(passing.request)).await? {
        Alone::Switched(head, peer) => switch(passing, &head, peer, payload),
        Alone::Answered(answer) => refused(passing, answer),
    }
}

/// Goes on as the other server does.
///
/// # Errors
/// When the connection of the client cannot.
pub fn switch(passing: &Passing<'_>, head: &Parts, peer: Switched, payload: web::Payload) -> ApiResult<HttpResponse> {
    let client = passing.client_bytes(payload)?;
    let protocol = head.headers.get("upgrade").and_then(|value| value.to_str().ok()).unwrap_or("");
    let mut response = HttpResponse::build(StatusCode::SWITCHING_PROTOCOLS);
    // What follows is no body of HTTP, of however many bytes: no sizes of parts may stand in it.
    response.upgrade(protocol).no_chunking(0);
    let mut response = response.body(BodyStream::new(passing.lasting(Duplex::new(client, peer))));
    response.head_mut().no_chunking(true);
    forwarded::copy(&head.headers, response.headers_mut());
    Ok(response)
}

/// Asks the other server for another protocol.
///
/// # Errors
/// When it cannot be reached.
pub async fn ask(passing: &Passing<'_>, to: &Destination, method: Method, headers: HeaderMap) -> ApiResult<Alone> {
    let request = request(to, method, headers)?;
    let deadline = Instant::now() + limits::STREAM_BEGIN_TIMEOUT;
    let asked = passing.meanwhile(passing.outbound.send_alone(&to.peer, request, deadline)).await?;
    asked.map_err(|error| match error {
        Error::Forbidden => ApiError::bad_request(error.to_string()),
        error if error.is_before_request() => ApiError::unknown(format!("error dialing backend: {error}")),
        error => ApiError::unknown(error.to_string()),
    })
}

/// The request for another protocol.
///
/// # Errors
/// When there can be none like that.
pub fn request(to: &Destination, method: Method, headers: HeaderMap) -> ApiResult<Request<Body>> {
    let scheme = if to.peer.secure.is_some() { "https" } else { "http" };
    let uri = format!("{scheme}://{}{}", to.peer.address(), to.path);
    let request = Request::builder().method(method).uri(uri).body(outbound::empty());
    let mut request = request.map_err(ApiError::internal)?;
    *request.headers_mut() = headers;
    Ok(request)
}

/// What a client is told whose request for another protocol was answered with something else. Both connections end:
/// nobody may go on to use them for something else.
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
    response.force_close();
    let mut response = response.body(BodyStream::new(passing.lasting(BodyDataStream::new(body))));
    head.headers.remove("content-length");
    forwarded::copy(&head.headers, response.headers_mut());
    Ok(response)
}
