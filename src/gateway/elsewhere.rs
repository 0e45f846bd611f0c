//! Requests that another API server answers.

use actix_web::{HttpResponse, web};

use super::admittance::{asked_timeout, connects, enter};
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
    let watch = head.query.flag("watch").unwrap_or(false);
    let decoded = path::decode(head.path);
    let lasts = match path::parse(&decoded) {
        Target::Resource(of) => {
            let verb = Verb::of(head.method, watch, &of);
            let lasts = verb == Some(Verb::Watch) || connects(&of);
            let info = RequestInfo { verb, served: Err(ApiError::no_such_path()), of };
            let entered = match lasts {
                true => course.enter(gateway, Lane::Watch),
                false => enter(gateway, &info, caller, course),
            };
            if !entered {
                return Ok(answer::too_many_requests());
            }
            let allowed = resources::authorize(gateway, head, &info.of, verb, caller);
            gateway.registry.metrics.access.decided(allowed.is_ok(), course.authenticated.elapsed());
            allowed?;
            lasts
        }
        _ => {
            if !course.enter(gateway, Lane::ReadOnly) {
                return Ok(answer::too_many_requests());
            }
            handler::authorize(gateway, head, caller, course)?;
            false
        }
    };
    let registry = &gateway.registry;
    let passing = Passing { outbound: &registry.outbound, request: head.request, drain: None };
    let lasts = lasts || passing.is_upgrade();
    let passing = Passing { drain: lasts.then_some(&gateway.streams), ..passing };
    let answering = pass::answer(registry, remote, &passing, &caller.user, lasts, payload);
    if lasts {
        return answering.await;
    }
    let ends = course.began + longest;
    course.ends = Some(ends);
    tokio::time::timeout_at(ends.into(), answering)
        .await
        .unwrap_or_else(|_| Ok(answer::timed_out(registry.store.may_have_others())))
}
