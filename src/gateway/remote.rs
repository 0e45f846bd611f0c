//! Requests that another API server answers.

use actix_web::http::StatusCode;
use actix_web::{HttpResponse, web};

use super::Gateway;
use super::exchange::Progress;
use super::head::Head;
use crate::aggregation::{Remote, pass};
use crate::answer;
use crate::request::Caller;
use crate::status::ApiResult;
use crate::streams::ForwardedRequest;

/// Forwards a request, whose user is authorized, to another server and returns its answer.
pub(super) async fn answer(
    gateway: &Gateway,
    head: &Head<'_>,
    remote: &Remote,
    payload: web::Payload,
    caller: &Caller,
    progress: &mut Progress,
) -> ApiResult<HttpResponse> {
    let lasts = progress.ends.is_none();
    let passing = gateway.passing(head)?;
    let passing = ForwardedRequest { drain: passing.drain.filter(|_| lasts || passing.is_upgrade()), ..passing };
    let answered = pass::answer(&gateway.aggregation, remote, &passing, caller.identity.user(), lasts, payload).await?;
    // Until here the request had the seat of a bounded request.
    if !lasts && answered.status() == StatusCode::SWITCHING_PROTOCOLS && !progress.last(gateway) {
        return Ok(answer::too_many_requests(1));
    }
    Ok(answered)
}
