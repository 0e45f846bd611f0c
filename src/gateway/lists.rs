//! Bodies of lists, made while they are sent.

use std::io::Write as _;
use std::sync::Arc;

use actix_web::HttpResponse;
use actix_web::body::BodyStream;
use actix_web::http::header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, HeaderValue, VARY};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use flotilla_cluster::Object;
use flotilla_proto::schema::{Column, Ref};
use flotilla_proto::value::Value;
use flotilla_proto::{json, value};
use futures_util::{Stream, StreamExt, stream};

use super::messages::Messages;
use crate::ahead::{self, Ahead, Pieces};
use crate::answer::{self, Encoded};
use crate::limits;
use crate::printing;
use crate::registry::{self, OneByOne, Page, Registry};
use crate::representation::{self, Show};
use crate::request::{Form, Media};
use crate::served::Served;
use crate::status::{ApiError, ApiResult};

/// Answers with a page of a list.
pub fn respond(
    registry: &Arc<Registry>,
    served: &Arc<Served>,
    mut page: Page,
    show: Show<'_>,
    warnings: &[String],
) -> ApiResult<HttpResponse> {
    let representation = show.representation;
    if let Form::Metadata { list: false, .. } = representation.form {
        let kind = format!("{}List", representation::internal_name(served));
        let message = format!("you requested PartialObjectMetadata, but the requested object is a list (*{kind})");
        return Err(ApiError::new(406, "NotAcceptable", message));
    }
    if !matches!(representation.form, Form::Metadata { .. }) {
        registry.refuse_unreadable(served, |object| page.may_have(object))?;
    }
    if let Form::Table { version } = representation.form
        && (static_columns(served).is_none() || representation::rows(served).order().is_some())
    {
        let include = printing::Includer::from_query(show.include)?;
        check_room_for_whole()?;
        let text = whole_table(registry, served, &mut page, version, include)?;
        return Ok(answer::respond_compressed(
            200,
            representation::finish_table(text, representation)?,
            show.gzip,
            warnings,
        ));
    }
    if representation.media == Media::Protobuf && representation.form == Form::Object {
        let metadata = list_metadata(&page);
        if let Some(messages) = Messages::of(registry, served, &mut page, &metadata)? {
            return respond_messages(messages, show, warnings);
        }
    }
    if representation.media != Media::Json || representation.pretty {
        check_room_for_whole()?;
        let whole = whole(registry, served, page, show)?;
        return Ok(answer::respond_compressed(200, whole, show.gzip, warnings));
    }
    let mut chunks = Chunks::of(writer(registry, served, show)?, page, 8 << 10);
    chunks.fill()?;
    if chunks.done && chunks.ready.is_one() {
        let encoded = Encoded { bytes: chunks.ready.whole(), content_type: Media::Json.name() };
        return Ok(answer::respond_compressed(200, encoded, show.gzip, warnings));
    }
    let gzip = show.gzip && !(chunks.done && chunks.ready.len() <= limits::GZIP_BYTES_MIN);
    Ok(respond_stream(Media::Json, stream::iter(chunks), gzip, warnings))
}

/// Refuses to make a list as a whole where too much is not taken.
fn check_room_for_whole() -> ApiResult<()> {
    if ahead::held() >= limits::WHOLE_ANSWERS_BYTES {
        return Err(ApiError::unavailable("too many answers wait to be taken by their clients", 1));
    }
    Ok(())
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
    done: bool,
}

impl Chunks {
    /// Those of a page, with its head and room for so many bytes.
    fn of(mut writer: Box<dyn ItemWriter>, page: Page, room: usize) -> Self {
        let mut ready = Pieces::with_room(room);
        writer.begin(&page, ready.text());
        Self { writer, objects: OneByOne::of(page), ready, ahead: Ahead::default(), done: false }
    }

    /// Appends items until there is enough for a chunk, or the end.
    fn fill(&mut self) -> ApiResult<()> {
        let most = Ahead::portion(limits::LIST_CHUNK_BYTES);
        while self.ready.len() < most {
            let Some(object) = self.objects.next_object()? else {
                self.writer.end(self.ready.text());
                self.done = true;
                break;
            };
            if let Err(error) = self.writer.item(&object, &mut self.ready) {
                let Common { registry, served, .. } = self.writer.common();
                return Err(registry.list_failed(served, &object, error, |others| self.objects.read(others)));
            }
        }
        self.ahead.hold(self.ready.own());
        Ok(())
    }
}

impl Iterator for Chunks {
    type Item = ApiResult<Bytes>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ready.is_empty() && !self.done {
            self.ready = Pieces::with_room(Ahead::portion(limits::LIST_CHUNK_BYTES) + limits::SHARED_BYTES_MIN);
            if let Err(error) = self.fill() {
                // The answer has begun: breaking it off is all that can be said.
                self.done = true;
                return Some(Err(error));
            }
        }
        self.ready.take().map(Ok)
    }
}

/// Chunks, compressed one by one.
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

/// Writes a list's head, items and end as JSON.
trait ItemWriter {
    fn begin(&mut self, page: &Page, out: &mut Vec<u8>);
    fn item(&mut self, object: &Object, out: &mut Pieces) -> ApiResult<()>;
    fn end(&mut self, out: &mut Vec<u8>);
    fn common(&self) -> &Common;
}

fn writer(registry: &Arc<Registry>, served: &Arc<Served>, show: Show<'_>) -> ApiResult<Box<dyn ItemWriter>> {
    let common = Common { registry: Arc::clone(registry), served: Arc::clone(served), first: true };
    Ok(match show.representation.form {
        Form::Object => Box::new(Objects { common, end: b"]}\n".to_vec() }),
        Form::Metadata { version, .. } => Box::new(Partials { common, version }),
        Form::Table { version } => {
            let include = printing::Includer::from_query(show.include)?;
            let columns = static_columns(served).ok_or_else(|| ApiError::internal("the columns may change"))?;
            let version = representation::table_version(version);
            let rows =
                representation::builtin_rows(served).ok_or_else(|| ApiError::internal("the columns may change"))?;
            Box::new(Rows { common, table: printing::Table::new(rows, columns, version, include, registry::now()) })
        }
    })
}

/// The columns of a built-in resource.
fn static_columns(served: &Served) -> Option<&'static [Column]> {
    match &served.resource {
        Ref::Static(resource) => Some(&resource.columns),
        Ref::Shared(_) => None,
    }
}

struct Common {
    registry: Arc<Registry>,
    served: Arc<Served>,
    first: bool,
}

impl Common {
    fn comma(&mut self, out: &mut Vec<u8>) {
        if !std::mem::take(&mut self.first) {
            out.push(b',');
        }
    }
}

fn head(kind: &str, api_version: &str, metadata: &Value, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"kind\":");
    json::write_str(kind, out);
    out.extend_from_slice(b",\"apiVersion\":");
    json::write_str(api_version, out);
    out.extend_from_slice(b",\"metadata\":");
    json::write(metadata, out);
    out.extend_from_slice(b",\"items\":");
}

/// The metadata of a list.
fn list_metadata(page: &Page) -> Value {
    let mut metadata = value!({"resourceVersion": (page.revision.to_string())});
    if let Some(next) = &page.next {
        metadata.set_at(&["continue"], next.as_str());
    }
    if let Some(remaining) = page.remaining {
        metadata.set_at(&["remainingItemCount"], remaining as i64);
    }
    metadata
}

/// Objects of a resource; of custom ones the members of the list are sorted, as Go writes maps.
struct Objects {
    common: Common,
    /// What follows the items.
    end: Vec<u8>,
}

impl ItemWriter for Objects {
    fn begin(&mut self, page: &Page, out: &mut Vec<u8>) {
        let mut metadata = list_metadata(page);
        let served = &self.common.served;
        let (kind, api_version) = (&*served.resource.list_kind, served.api_version());
        if served.custom.is_none() {
            head(kind, &api_version, &metadata, out);
            out.push(b'[');
            return;
        }
        if page.next.is_none() {
            metadata.set_at(&["continue"], "");
        }
        metadata.sort_members();
        out.extend_from_slice(b"{\"apiVersion\":");
        json::write_str(&api_version, out);
        out.extend_from_slice(b",\"items\":[");
        self.end = b"],\"kind\":".to_vec();
        json::write_str(kind, &mut self.end);
        self.end.extend_from_slice(b",\"metadata\":");
        json::write(&metadata, &mut self.end);
        self.end.extend_from_slice(b"}\n");
    }

    fn item(&mut self, object: &Object, out: &mut Pieces) -> ApiResult<()> {
        self.common.comma(out.text());
        if self.common.served.shows_as_stored(object) {
            let text = registry::stored_text(object)?;
            if self.common.served.custom.is_some() {
                out.share_part(object.bytes(), text);
            } else {
                out.text().push(b'{');
                out.share_part(object.bytes(), representation::list_item(object, text));
            }
            return Ok(());
        }
        let mut shown = self.common.registry.shown(&self.common.served, object)?;
        if self.common.served.custom.is_none() {
            shown.remove_at(&["kind"]);
            shown.remove_at(&["apiVersion"]);
        }
        json::write(&shown, out.text());
        Ok(())
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.end);
    }

    fn common(&self) -> &Common {
        &self.common
    }
}

struct Partials {
    common: Common,
    version: &'static str,
}

impl ItemWriter for Partials {
    fn begin(&mut self, page: &Page, out: &mut Vec<u8>) {
        let metadata = list_metadata(page);
        head("PartialObjectMetadataList", &format!("meta.k8s.io/{}", self.version), &metadata, out);
    }

    fn item(&mut self, object: &Object, out: &mut Pieces) -> ApiResult<()> {
        let out = out.text();
        out.push(if std::mem::take(&mut self.common.first) { b'[' } else { b',' });
        out.extend_from_slice(b"{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/");
        out.extend_from_slice(self.version.as_bytes());
        out.extend_from_slice(b"\",\"metadata\":");
        registry::show_metadata(&self.common.served, object, out)?;
        out.push(b'}');
        Ok(())
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(if self.common.first { b"null}\n".as_slice() } else { b"]}\n" });
    }

    fn common(&self) -> &Common {
        &self.common
    }
}

/// Rows of a table. Tables of kinds that order their rows, or whose columns are not static, are made as a whole.
struct Rows {
    common: Common,
    table: printing::Table<'static>,
}

impl ItemWriter for Rows {
    fn begin(&mut self, page: &Page, out: &mut Vec<u8>) {
        let revision = page.revision.to_string();
        self.table.begin(&list_meta(page, &revision), out);
    }

    fn item(&mut self, object: &Object, out: &mut Pieces) -> ApiResult<()> {
        let (served, out) = (&self.common.served, out.text());
        if !served.is_stored_version() {
            let value = self.common.registry.shown(served, object)?;
            let stored = registry::stored_part(object, self.table.reads())?;
            self.table.row(&value, printing::Encoded { stored: Some(&stored), ..Default::default() }, out);
            return Ok(());
        }
        let value = registry::stored_part(object, self.table.reads())?;
        let (metadata, text) = (object.metadata(), registry::stored_text(object)?);
        let encoded = printing::Encoded { metadata: Some(metadata), object: Some(text), stored: None };
        self.table.row(&value, encoded, out);
        Ok(())
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        self.table.end(out);
        out.push(b'\n');
    }

    fn common(&self) -> &Common {
        &self.common
    }
}

fn list_meta<'a>(page: &'a Page, revision: &'a str) -> printing::ListMeta<'a> {
    printing::ListMeta {
        resource_version: revision,
        continue_token: page.next.as_deref().unwrap_or(""),
        remaining: page.remaining.map(|remaining| remaining as i64),
    }
}

/// The table of a whole page, rows in the order of their kind.
fn whole_table(
    registry: &Registry,
    served: &Served,
    page: &mut Page,
    version: &str,
    include: printing::Includer,
) -> ApiResult<Vec<u8>> {
    let mut objects = Vec::new();
    while page.read(&mut objects)? {}
    let mut items = Vec::with_capacity(objects.len());
    for (at, object) in objects.iter().enumerate() {
        // Custom resources are printed as they are shown: what is stored lacks defaults of what was added to it since.
        let stored = || served.custom.is_none().then(|| registry::stored_value(object)).transpose();
        match registry.shown(served, object).and_then(|shown| Ok((shown, stored()?))) {
            Ok(item) => items.push(item),
            Err(error) => {
                let mut rest = objects[at + 1..].to_vec();
                return Err(registry.list_failed(served, object, error, |others| {
                    others.append(&mut rest);
                    Ok(false)
                }));
            }
        }
    }
    let mut table = representation::table(served, version, include);
    table.sort(&mut items, |(shown, stored)| stored.as_ref().unwrap_or(shown));
    let mut out = Vec::new();
    let revision = page.revision.to_string();
    table.begin(&list_meta(page, &revision), &mut out);
    for (item, stored) in &items {
        table.row(item, printing::Encoded { stored: stored.as_ref(), ..printing::Encoded::default() }, &mut out);
    }
    table.end(&mut out);
    Ok(out)
}

/// A whole page in an encoding that cannot be streamed.
fn whole(registry: &Arc<Registry>, served: &Arc<Served>, page: Page, show: Show<'_>) -> ApiResult<Encoded> {
    let chunks = Chunks::of(writer(registry, served, show)?, page, 0);
    let text = chunks.collect::<ApiResult<Vec<Bytes>>>()?.concat();
    let tree = json::parse(&text).map_err(ApiError::internal)?;
    Ok(answer::encode_value(&tree, show.representation))
}
