//! Lists in protobuf, made from stored JSON without building trees.

use flotilla_proto::catalogue;
use flotilla_proto::protobuf::{self, Transcoder};
use flotilla_proto::schema::Shape;
use flotilla_proto::value::Value;

use super::answer::Encoded;
use super::negotiate::Media;
use crate::limits;
use crate::registry::{Page, Registry, Served, stored_text};
use crate::status::{ApiError, ApiResult};

/// A list in parts that follow each other. The head states the length of all, so that items come to be before it.
pub struct Messages {
    parts: Vec<Vec<u8>>,
}

impl Messages {
    /// The rest of a page with the metadata of its list; `None` for kinds without a protobuf form.
    pub fn of(registry: &Registry, served: &Served, page: &mut Page, metadata: &Value) -> ApiResult<Option<Self>> {
        let Some(head) = ListHead::of(served, metadata)? else { return Ok(None) };
        let (mut parts, mut part) = (vec![Vec::new()], Vec::new());
        let (mut lengths, mut objects) = (Vec::new(), Vec::new());
        let (mut transcoder, mut message) = (Transcoder::default(), Vec::new());
        loop {
            let more = page.read(&mut objects)?;
            for object in objects.drain(..) {
                message.clear();
                if served.is_stored_version() {
                    transcoder.transcode(served.of(), stored_text(&object), &mut message)
                } else {
                    protobuf::encode(served.of(), &registry.shown(served, &object)?, &mut message)
                }
                .map_err(ApiError::internal)?;
                if part.len() + message.len() > limits::LIST_CHUNK_BYTES && !part.is_empty() {
                    parts.push(std::mem::take(&mut part));
                }
                if part.capacity() == 0 {
                    part.reserve(if parts.len() > 1 { limits::LIST_CHUNK_BYTES + 64 } else { message.len() + 64 });
                }
                protobuf::write_item_head(message.len(), &mut part);
                part.extend_from_slice(&message);
                lengths.push(message.len());
            }
            if !more {
                break;
            }
        }
        protobuf::write_tail(&mut part);
        parts.push(part);
        protobuf::write_list_head(&head.api_version, head.kind, &head.metadata, lengths.into_iter(), &mut parts[0]);
        Ok(Some(Self { parts }))
    }

    /// The whole list.
    pub fn whole(self) -> Encoded {
        Encoded { bytes: self.parts.concat().into(), content_type: Media::Protobuf.name() }
    }

    /// The parts, when they are too long to be put together.
    pub fn parts(self) -> Result<Vec<Vec<u8>>, Self> {
        if self.parts.len() > 2 { Ok(self.parts) } else { Err(self) }
    }
}

/// What precedes the items.
struct ListHead<'a> {
    api_version: String,
    kind: &'a str,
    metadata: Vec<u8>,
}

impl<'a> ListHead<'a> {
    fn of(served: &'a Served, metadata: &Value) -> ApiResult<Option<Self>> {
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
        Ok(Some(Self { api_version: served.api_version(), kind: &served.resource.list_kind, metadata: message }))
    }
}
