//! Requests that another API server answers.

use actix_web::http::StatusCode;
use actix_web::{HttpResponse, web};

use super::admittance::{asked_timeout, connects, enter, lane};
use super::attempt::{self, Course};
use super::flow::Lane;
use super::handler::{self, Head};
use super::routing::RequestInfo;
use super::{Gateway, resources};
use crate::aggregation::{Remote, pass};
use crate::answer;
use crate::request::Caller;
use crate::request::path::{self, Target};
use crate::request::verb::Verb;
use crate::status::{ApiError, ApiResult};
use crate::streams::Passing;

/// Lets a request pass or not, and then has the other server answer it.
pub(super) async fn answer(
    gateway: &web::Data<Gateway>,
    head: &Head<'_>,
    remote: &Remote,
    payload: web::Payload,
    caller: &mut Caller,
    course: &mut Course,
) -> ApiResult<HttpResponse> {
    let longest = attempt::longest(asked_timeout(head)?);
    let Some(lasts) = admit(gateway, head, caller, course)? else { return Ok(answer::too_many_requests()) };
    let registry = &gateway.registry;
    let passing = gateway.passing(head);
    let passing = Passing { drain: passing.drain.filter(|_| lasts || passing.is_upgrade()), ..passing };
    let answering = pass::answer(&gateway.aggregation, remote, &passing, &caller.user, lasts, payload);
    if lasts {
        return answering.await;
    }
    let ends = course.began + longest;
    course.ends = Some(ends);
    let answered = tokio::time::timeout_at(ends.into(), answering).await;
    match answered.unwrap_or_else(|_| Ok(answer::timed_out(registry.store.may_have_others()))) {
        // Until here it had a place as everybody has who waits for an answer.
        Ok(begun) if begun.status() == StatusCode::SWITCHING_PROTOCOLS && !course.lasts(gateway) => {
            Ok(answer::too_many_requests())
        }
        answered => answered,
    }
}

/// Lets a request pass or not; whether it lasts, or `None` where there is no place for it.
fn admit(gateway: &Gateway, head: &Head<'_>, caller: &mut Caller, course: &mut Course) -> ApiResult<Option<bool>> {
    let watch = head.query.flag("watch").unwrap_or(false);
    let Target::Resource(of) = path::parse(&path::decode(head.path)) else {
        if !course.enter(gateway, lane(!matches!(head.method, "GET" | "HEAD"), caller)) {
            return Ok(None);
        }
        return handler::authorize(gateway, head, caller, course).map(|()| Some(false));
    };
    let verb = Verb::of(head.method, watch, &of);
    let lasts = verb == Some(Verb::Watch) || connects(&of);
    let info = RequestInfo { verb, served: Err(ApiError::no_such_path()), of };
    let entered = match lasts {
        true => course.enter(gateway, Lane::Watch),
        false => enter(gateway, &info, caller, course),
    };
    if !entered {
        return Ok(None);
    }
    let allowed = resources::authorize(gateway, head, &info.of, verb, caller);
    gateway.registry.metrics.access.decided(allowed.is_ok(), course.authenticated.elapsed());
    allowed.map(|()| Some(lasts))
}
