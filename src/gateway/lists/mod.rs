//! Bodies of lists, made while they are sent.

mod items;
mod reformatted;
mod whole;

use std::future::poll_fn;
use std::io::Write as _;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use actix_web::HttpResponse;
use actix_web::body::BodyStream;
use actix_web::http::header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, HeaderValue, VARY};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::{Stream, StreamExt, stream};

use self::items::{Common, ItemWriter, list_metadata, static_columns};
use super::messages::Messages;
use super::server::Gateway;
use crate::ahead::{Ahead, Pieces};
use crate::answer::{self, Encoded};
use crate::limits;
use crate::registry::{OneByOne, Page};
use crate::representation::{self, Show};
use crate::request::{Form, Media};
use crate::served::Served;
use crate::status::{ApiError, ApiResult};
use crate::turn::Turn;

/// Room for the text of a short list, in bytes.
const FIRST_CHUNK_ROOM: usize = 8 << 10;

/// Answers with a page of a list.
pub(super) async fn respond(
    gateway: &Gateway,
    served: &Arc<Served>,
    mut page: Page,
    show: Show<'_>,
    warnings: &[String],
) -> ApiResult<HttpResponse> {
    let (registry, representation) = (&gateway.registry, show.representation);
    if let Form::Metadata { list: false, .. } = representation.form {
        let kind = format!("{}List", representation::internal_name(served));
        let message = format!("you requested PartialObjectMetadata, but the requested object is a list (*{kind})");
        return Err(ApiError::new(406, "NotAcceptable", message));
    }
    if !matches!(representation.form, Form::Metadata { .. }) {
        registry.refuse_unreadable(served, |object| page.may_have(object))?;
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
    let mut chunks = Chunks::of(items::writer(registry, served, show)?, page)?;
    poll_fn(|cx| chunks.poll_fill(cx)).await?;
    if chunks.done && chunks.ready.is_one() {
        let encoded = Encoded { bytes: chunks.ready.whole(), content_type: representation.media.name() };
        return Ok(answer::respond_compressed(200, encoded, show.gzip, warnings));
    }
    let gzip = show.gzip && !(chunks.done && chunks.ready.len() <= limits::GZIP_BYTES_MIN);
    Ok(respond_stream(representation.media, chunks, gzip, warnings))
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

/// The chunks of a list, each made when the connection takes it.
struct Chunks {
    writer: Box<dyn ItemWriter>,
    objects: OneByOne,
    ready: Pieces,
    ahead: Ahead,
    turn: Turn,
    /// Whether `ready` is not a whole chunk yet.
    is_filling: bool,
    done: bool,
}

impl Chunks {
    /// Returns the chunks of a page. The first one begins with the head of the list.
    fn of(mut writer: Box<dyn ItemWriter>, page: Page) -> ApiResult<Self> {
        let mut ready = Pieces::with_room(FIRST_CHUNK_ROOM);
        writer.begin(&page, ready.text())?;
        Ok(Self {
            writer,
            objects: OneByOne::of(page),
            ready,
            ahead: Ahead::default(),
            turn: Turn::begin(),
            is_filling: false,
            done: false,
        })
    }

    /// Appends items until a chunk is full or the list ends. Is pending if that takes more than a turn.
    fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<ApiResult<()>> {
        let most = Ahead::portion(limits::LIST_CHUNK_BYTES);
        while self.ready.len() < most {
            let Some(object) = ready!(self.objects.poll_next(cx, &mut self.turn))? else {
                self.writer.end(self.ready.text());
                self.done = true;
                break;
            };
            if let Err(error) = self.writer.item(&object, &mut self.ready) {
                let Common { registry, served, .. } = self.writer.common();
                let failed = registry.list_failed(served, &object, error, |others| self.objects.read(others));
                return Poll::Ready(Err(failed));
            }
        }
        self.ahead.hold(self.ready.own());
        Poll::Ready(Ok(()))
    }
}

impl Stream for Chunks {
    type Item = ApiResult<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        // An earlier turn may have begun this chunk.
        if !self.done && (self.ready.is_empty() || self.is_filling) {
            if !self.is_filling {
                self.ready = Pieces::with_room(Ahead::portion(limits::LIST_CHUNK_BYTES) + limits::SHARED_BYTES_MIN);
            }
            self.is_filling = true;
            let filled = ready!(self.poll_fill(cx));
            self.is_filling = false;
            if let Err(error) = filled {
                // The answer has begun: the server can report the error only by breaking the answer off.
                self.done = true;
                self.ready.clear();
                return Poll::Ready(Some(Err(error)));
            }
        }
        Poll::Ready(self.ready.take().map(Ok))
    }
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
