//! Identifies the user of a request: by a trusted proxy, a link to the console, a certificate or a token.

use std::sync::Arc;

use actix_web::HttpRequest;
use actix_web::http::header::{AUTHORIZATION, USER_AGENT};
use flotilla_cluster::Standing;

use super::exchange::Progress;
use super::head::Head;
use super::seats::Lane;
use super::{Gateway, console};
use crate::access::{Authenticated, ConnectionIdentity, Refused, Retry, TrustedProxy};
use crate::limits;
use crate::request::Caller;
use crate::status::{ApiError, ApiResult};
use crate::streams::websocket;
use crate::wall_clock;

/// Identifies the user: the one that a trusted proxy names, else the one whose credentials the request has.
pub(super) async fn identify(
    gateway: &Gateway,
    request: &HttpRequest,
    head: &Head<'_>,
    progress: &mut Progress,
) -> ApiResult<Caller> {
    let found = match proxied(gateway, request).or_else(|| visiting(gateway, request, head, progress)) {
        Some(found) => found,
        None => authenticate(gateway, request, head.path, progress).await?,
    };
    let agent = request.headers().get(USER_AGENT).map(|value| String::from_utf8_lossy(value.as_bytes()));
    let mut caller = Caller::new(found.user, agent.as_deref().unwrap_or(""));
    caller.notices.warnings.extend(found.warning.map(str::to_owned));
    Ok(caller)
}

/// Returns the user whom a trusted proxy names.
fn proxied(gateway: &Gateway, request: &HttpRequest) -> Option<Authenticated> {
    let proxy = gateway.authenticator.proxy()?;
    request.conn_data::<TrustedProxy>().filter(|trusted| trusted.is_valid(wall_clock::now()))?;
    proxy.user(request.headers()).map(|user| Authenticated { user: Arc::new(user), warning: None })
}

/// Returns the user of a browser with a link to the console, or with the session that a link began. Links and sessions
/// are valid for the console alone, and a token in the header takes precedence.
fn visiting(
    gateway: &Gateway,
    request: &HttpRequest,
    head: &Head<'_>,
    progress: &mut Progress,
) -> Option<Authenticated> {
    let user = console::visitor(gateway, head).filter(|_| !request.headers().contains_key(AUTHORIZATION))?;
    progress.identified(gateway, Some(&user.name));
    Some(Authenticated { user, warning: None })
}

/// Identifies the user by certificate or token. If a token is bound to an object that this replica does not know, the
/// replica first catches up: another one may have issued the token a moment ago.
async fn authenticate(
    gateway: &Gateway,
    request: &HttpRequest,
    path: &str,
    progress: &mut Progress,
) -> ApiResult<Authenticated> {
    let identity = request.conn_data::<ConnectionIdentity>().cloned().unwrap_or_default();
    let header = request.headers().get(AUTHORIZATION).map(|value| value.as_bytes());
    let subprotocol = if header.is_none() { websocket::token(request) } else { None };
    let credentials = header.or(subprotocol.as_deref());
    let authenticate = || gateway.authenticator.authenticate(&identity, credentials, path);
    let found = match authenticate() {
        Err(_) if *gateway.registry.tables.store.standing().borrow() != Standing::Member && credentials.is_some() => {
            // This replica may not have the token's account yet.
            return Err(ApiError::unavailable("this server cannot authenticate yet", 1));
        }
        Err(Refused { retry: Some(retry), .. }) => {
            if !progress.take_seat(gateway, Lane::ReadOnly) {
                return Err(ApiError::unavailable("too many requests wait to be authenticated", 1));
            }
            let prepared = Box::pin(tokio::time::timeout(limits::REVISION_WAIT, prepare(gateway, retry))).await;
            progress.leave_seat(gateway);
            prepared.map_err(|_| ApiError::unavailable("this server cannot authenticate now", 1))??;
            authenticate()
        }
        found => found,
    };
    let found = match (found, credentials) {
        // The request takes no seat here: strangers could take all seats while the webhook is slow. Another limit
        // bounds the questions to the webhook.
        (Err(refused), Some(credentials)) if refused.is_unasked => {
            Box::pin(gateway.authenticator.ask(credentials, refused)).await
        }
        (found, _) => found,
    };
    progress.identified(gateway, found.as_ref().ok().map(|found| &*found.user.name));
    Ok(found?)
}

/// Prepares another attempt at an authentication: fetches the keys of the issuer, or lets this replica catch up.
async fn prepare(gateway: &Gateway, retry: Retry) -> ApiResult<()> {
    match retry {
        Retry::WithNewKeys(issuer) => issuer.fetch_keys().await,
        Retry::AfterCatchingUp => gateway.registry.tables.catch_up().await?,
    }
    Ok(())
}
