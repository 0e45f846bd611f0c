//! Lists in protobuf, made from stored JSON without building trees, while they are sent.
//!
//! The head of a list in protobuf states the length of the whole list. Measuring an object takes as long as encoding
//! it. The length is therefore noted on the object, and measured once.

use std::sync::Arc;

use bytes::Bytes;
use flotilla_cluster::Object;
use flotilla_proto::catalogue;
use flotilla_proto::protobuf::{self, Transcoder};
use flotilla_proto::schema::Shape;
use flotilla_proto::value::Value;
use futures_util::{Stream, stream};

use crate::answer::Encoded;
use crate::limits;
use crate::registry::{Page, Registry};
use crate::request::Media;
use crate::served::Served;
use crate::status::{ApiError, ApiResult};
use crate::tables::stored_text;
use crate::turn::Turn;
use crate::unsent::UnsentBytes;

/// A list whose items are encoded one after the other. Items of unknown length are encoded twice.
pub struct Messages {
    registry: Arc<Registry>,
    served: Arc<Served>,
    head: ListHead,
    objects: Vec<Arc<Object>>,
    /// Lengths in bytes of the items that were measured so far, which are the first ones.
    lengths: Vec<usize>,
    /// The number of items that were written.
    written: usize,
    begun: bool,
    ended: bool,
    transcoder: Transcoder,
    /// Room for items that are only measured.
    message: Vec<u8>,
    unsent: UnsentBytes,
    turn: Turn,
}

impl Messages {
    /// Returns the list of the objects of a page, with these metadata. `None` for kinds without a protobuf form.
    pub async fn of(
        registry: &Arc<Registry>,
        served: &Arc<Served>,
        page: &mut Page,
        metadata: &Value,
    ) -> ApiResult<Option<Self>> {
        let Some(head) = ListHead::of(served, metadata)? else { return Ok(None) };
        let objects = page.read_all().await?;
        Ok(Some(Self {
            registry: Arc::clone(registry),
            served: Arc::clone(served),
            head,
            lengths: Vec::with_capacity(objects.len()),
            objects,
            written: 0,
            begun: false,
            ended: false,
            transcoder: Transcoder::default(),
            message: Vec::new(),
            unsent: UnsentBytes::default(),
            turn: Turn::begin(),
        }))
    }

    /// Returns whether the list is short enough for an answer in one piece.
    pub fn is_short(&self) -> bool {
        self.objects.iter().map(|object| object.bytes().len()).sum::<usize>() <= limits::LIST_CHUNK_BYTES
    }

    /// Returns the whole list.
    pub fn whole(mut self) -> ApiResult<Encoded> {
        while !self.measure()? {}
        let mut out = Vec::with_capacity(self.lengths.iter().sum::<usize>() + 1024);
        while !self.ended {
            self.write(usize::MAX, &mut out)?;
        }
        Ok(Encoded { bytes: out.into(), content_type: Media::Protobuf.name() })
    }

    /// Returns the list in chunks, each made when it is polled. Other tasks run while items are measured.
    pub fn chunks(self) -> impl Stream<Item = ApiResult<Bytes>> {
        stream::try_unfold(self, |mut list| async move {
            while !list.measure()? {
                list.turn.pause().await;
            }
            if list.ended {
                return Ok(None);
            }
            list.turn.pause().await;
            list.unsent.hold(0);
            let most = UnsentBytes::portion(limits::LIST_CHUNK_BYTES);
            let mut chunk = Vec::with_capacity(most + limits::SHARED_BYTES_MIN);
            list.write(most, &mut chunk)?;
            list.unsent.hold(chunk.len());
            Ok(Some((Bytes::from(chunk), list)))
        })
    }

    /// Measures some more items. Returns whether all lengths are known.
    fn measure(&mut self) -> ApiResult<bool> {
        let mut encoded = 0;
        while let Some(object) = self.objects.get(self.lengths.len()).cloned() {
            // The noted length is that in the stored version.
            let note = if self.served.is_stored_version() { object.derived_number() } else { None };
            let length = match note {
                Some(length) => length.get() as usize,
                None => {
                    let mut message = std::mem::take(&mut self.message);
                    message.clear();
                    if let Err(error) = self.encode(&object, &mut message) {
                        let mut rest = self.objects[self.lengths.len() + 1..].to_vec();
                        return Err(self.registry.tables.list_failed(&self.served, &object, error, |others| {
                            others.append(&mut rest);
                            Ok(false)
                        }));
                    }
                    self.message = message;
                    encoded += object.bytes().len();
                    self.message.len()
                }
            };
            self.lengths.push(length);
            if encoded > limits::LIST_CHUNK_BYTES {
                break;
            }
        }
        Ok(self.lengths.len() == self.objects.len())
    }

    /// Appends the next items, until `out` has `most` bytes or the list ends.
    fn write(&mut self, most: usize, out: &mut Vec<u8>) -> ApiResult<()> {
        if !std::mem::replace(&mut self.begun, true) {
            let ListHead { api_version, kind, metadata } = &self.head;
            protobuf::write_list_head(api_version, kind, metadata, self.lengths.iter().copied(), out);
        }
        while let Some(object) = self.objects.get(self.written).cloned() {
            let length = self.lengths[self.written];
            protobuf::write_item_head(length, out);
            let start = out.len();
            self.encode(&object, out)?;
            if out.len() - start != length {
                return Err(ApiError::internal(format_args!("the length of {} changed", object.key())));
            }
            self.written += 1;
            if out.len() >= most {
                return Ok(());
            }
        }
        protobuf::write_tail(out);
        self.ended = true;
        Ok(())
    }

    /// Appends an item's message.
    fn encode(&mut self, object: &Object, out: &mut Vec<u8>) -> ApiResult<()> {
        let served = &self.served;
        if !served.is_stored_version() {
            let shown = self.registry.tables.shown(served, object)?;
            return protobuf::encode(served.of(), &shown, out).map_err(ApiError::internal);
        }
        let start = out.len();
        self.transcoder.transcode(served.of(), stored_text(object)?, out).map_err(ApiError::internal)?;
        object.keep_derived_number(u32::try_from(out.len() - start).unwrap_or(0));
        Ok(())
    }
}

/// The message before the items.
struct ListHead {
    api_version: String,
    kind: String,
    metadata: Vec<u8>,
}

impl ListHead {
    fn of(served: &Served, metadata: &Value) -> ApiResult<Option<Self>> {
        let kind = served.kind();
        let Some(list) = catalogue::kind(&kind.group, &kind.version, &served.resource.list_kind) else {
            return Ok(None);
        };
        let Some((_, field)) = list.of.field("metadata") else { return Ok(None) };
        let Shape::Struct(meta) = &field.shape else { return Ok(None) };
        if served.of().message.is_empty() || list.of.message.is_empty() {
            return Ok(None);
        }
        let mut message = Vec::new();
        protobuf::encode(meta, metadata, &mut message).map_err(ApiError::internal)?;
        let kind = served.resource.list_kind.to_string();
        Ok(Some(Self { api_version: served.api_version(), kind, metadata: message }))
    }
}
