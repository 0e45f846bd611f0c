//! Reads the log of a container, and follows it if requested.

use actix_web::HttpResponse;
use actix_web::body::BodyStream;
use futures_util::StreamExt as _;
use http::header::USER_AGENT;
use http::{Request, Response};
use http_body_util::BodyDataStream;
use tokio::time::Instant;

use super::{Destination, ForwardedRequest, one_way, refusal, websocket};
use crate::answer::CACHING;
use crate::limits;
use crate::outbound::{self, Answer, Error, Unpooled};
use crate::prometheus::families;
use crate::status::{ApiError, ApiResult};
use crate::version;

/// The resource name in errors.
const RESOURCE: &str = "pods/log";

/// Reads a log from a node.
///
/// # Errors
/// The node cannot be reached, its certificate is not trusted, or it answers with an error.
pub async fn answer(
    passing: ForwardedRequest<'_>,
    to: &Destination,
    pod: &str,
    follow: bool,
) -> ApiResult<HttpResponse> {
    let uri = format!("https://{}{}", to.peer.address(), to.path);
    let failed = |why: &dyn std::fmt::Display| ApiError::unknown(format!("Get \"{uri}\": {why}"));
    let request = Request::get(&uri).header(USER_AGENT, format!("kube-apiserver/{}", version::GIT_VERSION));
    let request = request.body(outbound::empty()).map_err(|error| failed(&error))?;
    let answer = passing.meanwhile(ask(&passing, to, request, follow)).await?.map_err(|error| {
        if error.is_of_certificate() {
            passing.meter.counter(families::LOGS_UNTRUSTED, &[]).increment(1);
        }
        failed(&error)
    })?;
    let code = answer.status().as_u16();
    if (300..400).contains(&code) && answer.headers().contains_key("location") {
        return Err(failed(&"redirects forbidden"));
    }
    if !(200..=206).contains(&code) {
        let reading = passing.meanwhile(outbound::read_beginning(answer.into_body(), limits::STREAM_ERROR_BYTES));
        let text = reading.await?.map_err(ApiError::internal)?;
        return Err(refusal::of_answer(code, RESOURCE, pod, &String::from_utf8_lossy(&text)));
    }
    let body = passing.lasting(BodyDataStream::new(answer.into_body()));
    if websocket::is_asked_for(passing.request) {
        let parts = body.filter_map(async |part| part.ok());
        return one_way::answer(&passing, parts.boxed_local());
    }
    let mut response = HttpResponse::Ok();
    response.insert_header(("content-type", "text/plain")).insert_header(CACHING);
    Ok(response.body(BodyStream::new(body)))
}

/// Sends the request. A log that is followed gets a connection of its own, so that it delays no others.
async fn ask(
    passing: &ForwardedRequest<'_>,
    to: &Destination,
    request: Request<outbound::Body>,
    follow: bool,
) -> Result<Response<Answer>, Error> {
    let deadline = Instant::now() + limits::STREAM_BEGIN_TIMEOUT;
    if !follow {
        return passing.outbound.send(&to.peer, request, deadline).await;
    }
    match passing.outbound.send_unpooled(&to.peer, request, deadline).await? {
        Unpooled::Answered(answer) => Ok(answer),
        Unpooled::Switched(head, _) => Err(Error::switched(&head.headers)),
    }
}
