//! Calls the module that answers a route.

use actix::Addr;
use actix_web::{HttpResponse, web};

use super::actor::GatewayActor;
use super::exchange::Progress;
use super::head::Head;
use super::internal_error::watch_of_nothing;
use super::routing::Routed;
use super::{Gateway, backup, console, definitions, documents, members, overview, remote, resources};
use crate::answer;
use crate::discovery;
use crate::request::Caller;
use crate::status::ApiResult;

/// Answers a request by its route.
pub(super) async fn answer(
    gateway: &web::Data<Gateway>,
    router: &Addr<GatewayActor>,
    head: &Head<'_>,
    routed: Box<Routed>,
    payload: web::Payload,
    caller: &mut Caller,
    progress: &mut Progress,
) -> ApiResult<HttpResponse> {
    let routed = match *routed {
        Routed::Unserved(info) if definitions::may_be_defined(&info) => {
            Box::pin(definitions::look_again(gateway, info, head)).await?
        }
        routed => routed,
    };
    match routed {
        Routed::Objects(info) => resources::answer(gateway, router, head, info, payload, caller, progress).await,
        Routed::Unserved(_) => {
            Ok(documents::respond_document(discovery::Answer::not_found(), &caller.notices.warnings))
        }
        Routed::Remote { remote, .. } => {
            progress.audited.iter_mut().for_each(|audited| audited.is_remote = true);
            Box::pin(remote::answer(gateway, head, &remote, payload, caller, progress)).await
        }
        Routed::WatchOfNothing => Ok(answer::respond_text(500, &watch_of_nothing(head))),
        Routed::Metrics => documents::measured(gateway, head, false, caller).await,
        Routed::HealthMetrics => documents::measured(gateway, head, true, caller).await,
        Routed::Cluster(asked) => Box::pin(members::respond(gateway, head, &asked, payload)).await,
        Routed::Overview => Box::pin(overview::respond(gateway, head)).await,
        Routed::Console(part) => Box::pin(console::respond(gateway, head, part, caller)).await,
        Routed::Backup => Box::pin(backup::respond(gateway, head)).await,
        Routed::Document => documents::document(gateway, head, caller, progress),
    }
}
