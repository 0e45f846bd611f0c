//! Encodes events in the representation of a watch. An event that several watches share is encoded once.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use flotilla_cluster::{Change, Object, Revision};
use flotilla_objects::api_version;
use flotilla_proto::value::Value;
use flotilla_proto::{catalogue, conform, json, protobuf};
use futures_util::future::LocalBoxFuture;

use super::event::{EventType, Shown};
use crate::limits;
use crate::metrics::watches::WatchEvents;
use crate::printing;
use crate::registry::{Registry, now};
use crate::representation;
use crate::representation::Show;
use crate::request::{Form, Media, Representation};
use crate::selector::Selection;
use crate::served::Served;
use crate::status::{ApiError, ApiResult};
use crate::tables;
use crate::unsent::Pieces;

/// The annotation of the bookmark that ends the initial events (KEP-3157).
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// The encoded events of a change, by event type. Watches share them.
#[derive(Debug, Default)]
struct Encodings {
    json: [OnceLock<Bytes>; 3],
    protobuf: [OnceLock<Bytes>; 3],
}

/// Encodes the events of one watch.
pub struct Encoder {
    registry: Arc<Registry>,
    served: Arc<Served>,
    representation: Representation,
    include: printing::Includer,
    measured: WatchEvents,
    /// Whether the columns of a Table were sent.
    has_columns: bool,
}

impl Encoder {
    /// Creates an encoder for a watch of a resource.
    pub fn new(registry: Arc<Registry>, served: Arc<Served>, show: Show<'_>) -> ApiResult<Self> {
        // `includeObject` is checked for Tables only.
        let asked = show.include.filter(|_| matches!(show.representation.form, Form::Table { .. }));
        let include = printing::Includer::from_query(asked)?;
        let measured = WatchEvents::of(&registry.tables.metrics, &served);
        Ok(Self { registry, served, representation: show.representation, include, measured, has_columns: false })
    }

    /// Returns whether the client asked for a list form, which no event can have.
    pub fn asks_for_lists(&self) -> bool {
        matches!(self.representation.form, Form::Metadata { list: true, .. })
    }

    /// Returns whether a webhook converts the objects.
    pub fn is_converted(&self) -> bool {
        self.served.custom.as_ref().is_some_and(|custom| custom.converted_by_webhook().is_some())
    }

    /// Returns whether the selection matches the object as the webhook converted it. Returns true also for an object
    /// that cannot be shown, because its event reports why.
    pub fn selects_converted(&self, selection: &Selection, object: &Object) -> bool {
        self.registry.tables.selects_converted(&self.served, &selection.converted, object).unwrap_or(true)
    }

    /// Converts these objects by the webhook. Returns `None` if no webhook converts the resource.
    pub fn convert_ahead(&self, objects: Vec<Arc<Object>>) -> Option<LocalBoxFuture<'static, ApiResult<()>>> {
        self.served.custom.as_ref()?.converted_by_webhook()?;
        let (registry, served) = (Arc::clone(&self.registry), Arc::clone(&self.served));
        Some(Box::pin(async move { registry.tables.convert_to_show(&served, &objects).await }))
    }

    /// Appends the event of a change.
    pub fn change(&mut self, change: &Change, kind: EventType, shown: &Shown, out: &mut Pieces) -> ApiResult<()> {
        let before = out.len();
        self.shared_or_own(change, kind, shown, out).map_err(|error| match kind {
            EventType::Deleted if crate::unreadable::is_told_by(&error) => {
                crate::unreadable::deleted(shown.object(), error)
            }
            _ => error,
        })?;
        self.measured.sent(out.len() - before);
        Ok(())
    }

    fn shared_or_own(&mut self, change: &Change, kind: EventType, shown: &Shown, out: &mut Pieces) -> ApiResult<()> {
        let own = matches!(shown, Shown::Object(object) if self.served.shows_as_stored(object));
        if !own || self.representation.form != Form::Object {
            return self.event(kind, shown, out.text());
        }
        if self.representation.media == Media::Json
            && let Shown::Object(object) = shown
            && object.bytes().len() >= limits::SHARED_BYTES_MIN
        {
            // Stored bytes are shared already.
            return plain(kind, object, out);
        }
        let encodings = change.shared(Encodings::default);
        let slot = match kind {
            EventType::Added => 0,
            EventType::Modified => 1,
            _ => 2,
        };
        let slots = if self.representation.media == Media::Json { &encodings.json } else { &encodings.protobuf };
        if let Some(bytes) = slots[slot].get() {
            out.share(bytes);
            return Ok(());
        }
        let mut bytes = Vec::with_capacity(change.object().bytes().len() + 64);
        self.event(kind, shown, &mut bytes)?;
        out.share(slots[slot].get_or_init(|| bytes.into()));
        Ok(())
    }

    /// Appends an event about an object.
    fn event(&mut self, kind: EventType, shown: &Shown, out: &mut Vec<u8>) -> ApiResult<()> {
        if self.is_plain(shown.object()) {
            let text = match shown {
                Shown::Object(object) => tables::stored_text(object)?,
                Shown::Left(object, bytes) => {
                    crate::unreadable::prove(object)?;
                    bytes.strip_suffix(b"\n").unwrap_or(bytes)
                }
            };
            self.frame_json(kind, |out| out.extend_from_slice(text), out);
            return Ok(());
        }
        let value = match (self.tree(shown), self.representation.form) {
            // Metadata can be shown even if the rest of the object cannot be decoded.
            (Err(error), Form::Metadata { .. }) => tables::metadata_alone(shown.object()).ok_or(error)?,
            (shown, _) => shown?,
        };
        self.value(kind, &value, out)
    }

    fn tree(&self, shown: &Shown) -> ApiResult<Value> {
        match shown {
            Shown::Object(object) => self.registry.tables.shown(&self.served, object),
            Shown::Left(object, _) => {
                let mut value = self.registry.tables.shown(&self.served, object)?;
                if let Shown::Left(_, bytes) = shown {
                    let stated = json::parse(bytes).map_err(ApiError::internal)?;
                    value.set_at(&["metadata", "resourceVersion"], stated.at(&["metadata", "resourceVersion"]).clone());
                }
                Ok(value)
            }
        }
    }

    /// Appends an event about an object in the version of the request.
    fn value(&mut self, kind: EventType, value: &Value, out: &mut Vec<u8>) -> ApiResult<()> {
        match self.representation.form {
            Form::Object => self.frame(kind, value, out),
            Form::Metadata { version, .. } => self.frame(kind, &representation::partial(value, version), out),
            Form::Table { version } => {
                let columns = &self.served.resource.columns;
                let version = representation::table_version(version);
                let rows = representation::rows(&self.served);
                let mut table = printing::Table::new(rows, columns, version, self.include, now());
                table.set_columns_sent(self.has_columns);
                self.has_columns = true;
                let mut text = Vec::new();
                table.single(value, printing::Encoded::default(), &mut text);
                self.frame_json(kind, |out| out.extend_from_slice(&text), out);
                Ok(())
            }
        }
    }

    fn frame(&self, kind: EventType, value: &Value, out: &mut Vec<u8>) -> ApiResult<()> {
        if self.representation.media == Media::Json {
            self.frame_json(kind, |out| json::write(value, out), out);
            return Ok(());
        }
        let stated = value.str_at(&["apiVersion"]);
        let (group, version) = api_version::split(stated);
        let known = catalogue::kind(group, version, value.str_at(&["kind"]));
        let known = known.ok_or_else(|| ApiError::internal("the kind has no protobuf form"))?;
        let mut object = Vec::new();
        protobuf::encode_object(&known.of, stated, &known.name, value, &mut object).map_err(ApiError::internal)?;
        protobuf::write_event(kind.name(), &object, out);
        Ok(())
    }

    fn frame_json(&self, kind: EventType, object: impl FnOnce(&mut Vec<u8>), out: &mut Vec<u8>) {
        begin_json(kind, out);
        object(out);
        out.extend_from_slice(JSON_END);
    }

    /// Appends a bookmark: an object of the kind with nothing but a revision.
    pub fn bookmark(&mut self, revision: Revision, initial_end: bool, out: &mut Pieces) -> ApiResult<()> {
        let mut value = match self.served.custom {
            Some(_) => Value::object(),
            None => conform::zero(self.served.of()),
        };
        value.set_at(&["kind"], &*self.served.kind().name);
        value.set_at(&["apiVersion"], self.served.api_version());
        value.set_at(&["metadata", "resourceVersion"], revision.to_string());
        if initial_end {
            value.set_at(&["metadata", "annotations", INITIAL_EVENTS_END], "true");
        }
        crate::tables::order_members(&mut value, self.served.of());
        let before = out.len();
        self.value(EventType::Bookmark, &value, out.text())?;
        self.measured.sent(out.len() - before);
        Ok(())
    }

    /// Appends an error event, which ends the stream.
    pub fn error(&mut self, error: &ApiError, out: &mut Pieces) {
        let status = error.to_value();
        if self.frame(EventType::Error, &status, out.text()).is_err() {
            tracing::error!(%error, "cannot encode an error of a watch");
        }
    }

    /// Appends the initial event about an existing object.
    pub fn present(&mut self, object: &Arc<Object>, out: &mut Pieces) -> ApiResult<()> {
        let before = out.len();
        if self.is_plain(object) {
            plain(EventType::Added, object, out)?;
        } else {
            self.event(EventType::Added, &Shown::Object(Arc::clone(object)), out.text())?;
        }
        self.measured.sent(out.len() - before);
        Ok(())
    }

    /// Returns whether an object is sent as its stored bytes.
    fn is_plain(&self, object: &Object) -> bool {
        let plain = self.representation.media == Media::Json && self.representation.form == Form::Object;
        plain && self.served.shows_as_stored(object)
    }
}

/// The text after the object of an event in JSON.
const JSON_END: &[u8] = b"}\n";

/// Appends the text before the object of an event in JSON.
fn begin_json(kind: EventType, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"type\":\"");
    out.extend_from_slice(kind.name().as_bytes());
    out.extend_from_slice(b"\",\"object\":");
}

/// Appends the event about an object that is sent as its stored bytes.
fn plain(kind: EventType, object: &Object, out: &mut Pieces) -> ApiResult<()> {
    let text = tables::stored_text(object)?;
    begin_json(kind, out.text());
    out.share_part(object.bytes(), text);
    out.text().extend_from_slice(JSON_END);
    Ok(())
}
