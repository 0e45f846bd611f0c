//! Bodies of lists, made while they are sent.

mod chunks;
mod items;
mod reformatted;
mod whole;

use std::io::Write as _;
use std::sync::Arc;

use actix_web::HttpResponse;
use actix_web::body::BodyStream;
use actix_web::http::header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, HeaderValue, VARY};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::{Stream, StreamExt, stream};

use self::chunks::Chunks;
use self::items::{list_metadata, static_columns};
use super::messages::Messages;
use super::server::Gateway;
use crate::answer::{self, Encoded};
use crate::limits;
use crate::registry::Page;
use crate::representation::{self, Show};
use crate::request::{Form, Media, Representation};
use crate::served::Served;
use crate::status::{ApiError, ApiResult};

/// Refuses to represent a list as the metadata of one object.
pub(super) fn refuse_single(served: &Served, representation: Representation) -> ApiResult<()> {
    let Form::Metadata { list: false, .. } = representation.form else { return Ok(()) };
    let kind = match served.custom {
        Some(_) => "unstructured.UnstructuredList".to_owned(),
        None => format!("{}List", representation::internal_name(served)),
    };
    let message = format!("you requested PartialObjectMetadata, but the requested object is a list (*{kind})");
    Err(ApiError::new(406, "NotAcceptable", message))
}

/// Answers with a page of a list.
pub(super) async fn respond(
    gateway: &Gateway,
    served: &Arc<Served>,
    mut page: Page,
    show: Show<'_>,
    warnings: &[String],
) -> ApiResult<HttpResponse> {
    let (registry, representation) = (&gateway.registry, show.representation);
    refuse_single(served, representation)?;
    if !matches!(representation.form, Form::Metadata { .. }) {
        registry.tables.refuse_unreadable(served, |object| page.may_have(object))?;
    }
    if let Form::Table { .. } = representation.form
        && (static_columns(served).is_none() || representation::rows(served).order().is_some())
    {
        return whole::respond(gateway, served, page, show, warnings).await;
    }
    if representation.media == Media::Protobuf {
        if representation.form == Form::Object {
            let metadata = list_metadata(&page);
            if let Some(messages) = Messages::of(registry, served, &mut page, &metadata).await? {
                return respond_messages(messages, show, warnings);
            }
        }
        return whole::respond(gateway, served, page, show, warnings).await;
    }
    let writer = items::writer(registry, served, show)?;
    let chunks = Chunks::of(writer, page, Arc::clone(&gateway.large_requests))?.fill().await?;
    if chunks.is_whole() {
        let encoded = Encoded { bytes: chunks.into_bytes(), content_type: representation.media.name() };
        return Ok(answer::respond_compressed(200, encoded, show.gzip, warnings));
    }
    let gzip = show.gzip && !(chunks.is_last() && chunks.len() <= limits::GZIP_BYTES_MIN);
    Ok(respond_stream(representation.media, chunks.stream(), gzip, warnings))
}

fn respond_messages(messages: Messages, show: Show<'_>, warnings: &[String]) -> ApiResult<HttpResponse> {
    if messages.is_short() {
        return Ok(answer::respond_compressed(200, messages.whole()?, show.gzip, warnings));
    }
    Ok(respond_stream(Media::Protobuf, messages.chunks(), show.gzip, warnings))
}

/// Answers with chunks that are made when the connection takes them.
fn respond_stream(
    media: Media,
    chunks: impl Stream<Item = ApiResult<Bytes>> + 'static,
    gzip: bool,
    warnings: &[String],
) -> HttpResponse {
    let mut response = HttpResponse::Ok();
    response.insert_header((CONTENT_TYPE, HeaderValue::from_static(media.name())));
    response.insert_header((CACHE_CONTROL, HeaderValue::from_static("no-cache, private")));
    answer::append_warnings(&mut response, warnings);
    if !gzip {
        return response.body(BodyStream::new(chunks));
    }
    response.insert_header((CONTENT_ENCODING, HeaderValue::from_static("gzip")));
    response.insert_header((VARY, HeaderValue::from_static("Accept-Encoding")));
    response.body(BodyStream::new(packed(chunks)))
}

/// Returns the chunks, compressed one by one.
fn packed(chunks: impl Stream<Item = ApiResult<Bytes>>) -> impl Stream<Item = ApiResult<Bytes>> {
    let encoder = GzEncoder::new(Vec::new(), Compression::fast());
    stream::try_unfold((Box::pin(chunks), Some(encoder)), |(mut chunks, encoder)| async move {
        let Some(mut encoder) = encoder else { return Ok(None) };
        while let Some(chunk) = chunks.next().await {
            encoder.write_all(&chunk?).map_err(ApiError::internal)?;
            let packed = std::mem::take(encoder.get_mut());
            if !packed.is_empty() {
                return Ok(Some((packed.into(), (chunks, Some(encoder)))));
            }
        }
        let last = encoder.finish().map_err(ApiError::internal)?;
        Ok(Some((last.into(), (chunks, None))))
    })
}
