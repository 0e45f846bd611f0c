//! A backup of everything that is stored, made while it is sent. Kubernetes has no such path; only members of
//! `system:masters` may get it.

use std::sync::Arc;

use actix_web::HttpResponse;
use actix_web::body::BodyStream;
use futures_util::stream;

use super::Gateway;
use super::head::Head;
use crate::status::{ApiError, ApiResult};

/// Answers a request whose user is authorized. The backup ends when the client goes away. If the client is so slow that
/// the server can no longer hold the state, the server breaks the answer off. The client notices, since only a complete
/// backup has an end mark.
pub(super) async fn respond(gateway: &Gateway, head: &Head<'_>) -> ApiResult<HttpResponse> {
    if head.method != "GET" {
        let message = "the server does not allow this method on the requested resource";
        return Err(ApiError::new(405, "MethodNotAllowed", message));
    }
    gateway.beginning.check(&gateway.registry, false)?;
    // Each backup keeps its snapshot's history in memory until it ends.
    let turn = Arc::clone(&gateway.backups).try_acquire_owned().map_err(|_| {
        let message = "other backups are being taken; try again when they are complete";
        ApiError::new(429, "TooManyRequests", message)
    })?;
    let backup = gateway.registry.tables.store.backup().await;
    let backup = backup.map_err(|error| ApiError::unavailable(error.to_string(), 1))?;
    let chunks = backup.inspect(move |chunk| {
        let _ = &turn; // until the client has taken the last chunk, or is gone
        if let Err(error) = chunk {
            tracing::warn!(%error, "a client takes a backup too slowly: the backup is broken off");
        }
    });
    let mut response = HttpResponse::Ok();
    response.insert_header(("content-type", "application/octet-stream"));
    response.insert_header(("cache-control", "no-store"));
    Ok(response.body(BodyStream::new(stream::iter(chunks))))
}
