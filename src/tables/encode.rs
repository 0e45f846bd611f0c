//! Encodes changed objects to the bytes that are stored, and decodes stored ones.
//!
//! Clients receive the stored bytes: JSON in the stored version, ending in a newline. The digits of the revision stand
//! at a known place. The store can therefore fill them in without encoding again.

use std::cell::RefCell;

use compact_str::CompactString;
use flotilla_cluster::{Draft, Layout, Object, Revision, Terms};
use flotilla_proto::json::{self, Part};
use flotilla_proto::order;
use flotilla_proto::schema::Type;
use flotilla_proto::value::{self, Map, Value};
use memchr::memmem;

use crate::limits;
use crate::served::Served;
use crate::status::ApiResult;
use crate::unreadable;

thread_local! {
    /// The buffer in which objects are encoded before their length is known.
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Encodes an object for its table. Objects of built-in kinds must be in the stored version.
///
/// # Errors
/// 500: a webhook converts the custom resource, and did not convert this object ahead.
pub fn draft(served: &Served, object: &Value) -> ApiResult<Draft> {
    let stored = served.custom.as_ref().map(|custom| custom.store(object.clone())).transpose()?;
    Ok(draft_as_is(served, stored.as_ref().unwrap_or(object)))
}

/// Encodes an object that is already in the form that is stored.
pub fn draft_as_is(served: &Served, object: &Value) -> Draft {
    SCRATCH.with_borrow_mut(|out| {
        out.clear();
        let layout = write(served, object, out);
        // The store keeps this very buffer. A buffer that grew while it was written would leave holes in memory.
        let bytes = out.as_slice().to_vec();
        if out.capacity() > limits::SCRATCH_BYTES {
            *out = Vec::new();
        }
        debug_assert_eq!(json::check(&bytes), Ok(()), "what is written can be read");
        Draft { bytes, layout, terms: terms(served, object), is_decodable: true }
    })
}

fn write(served: &Served, object: &Value, out: &mut Vec<u8>) -> Layout {
    if served.custom.is_some() {
        return write_sorted(object, out);
    }
    let mut layout = Layout::default();
    let stated = [("kind", served.stored.name.to_string()), ("apiVersion", served.stored.api_version())];
    out.push(b'{');
    for (member, text) in &stated {
        json::write_str(member, out);
        out.push(b':');
        json::write_str(text, out);
        out.push(b',');
    }
    layout.head = out.len() as u32;
    out.extend_from_slice(b"\"metadata\":");
    layout.metadata.start = out.len() as u32;
    layout.revision_at = write_metadata(object.map_at(&["metadata"]), false, out);
    layout.metadata.end = out.len() as u32;
    for (key, member) in object.as_object().into_iter().flat_map(Map::iter) {
        if !matches!(key, "kind" | "apiVersion" | "metadata") {
            out.push(b',');
            json::write_str(key, out);
            out.push(b':');
            json::write(member, out);
        }
    }
    out.extend_from_slice(b"}\n");
    layout
}

/// Writes an object with sorted members, as Go writes maps, `kind` and `apiVersion` among them.
fn write_sorted(object: &Value, out: &mut Vec<u8>) -> Layout {
    let mut layout = Layout::default();
    let members = object.as_object().into_iter().flat_map(Map::iter);
    for (key, member) in members {
        out.push(if out.is_empty() { b'{' } else { b',' });
        let is_metadata = key == "metadata";
        if is_metadata {
            layout.head = out.len() as u32;
        }
        json::write_str(key, out);
        out.push(b':');
        if is_metadata {
            layout.metadata.start = out.len() as u32;
            layout.revision_at = write_metadata(member.as_object(), true, out);
            layout.metadata.end = out.len() as u32;
        } else {
            json::write(member, out);
        }
    }
    out.extend_from_slice(b"}\n");
    layout
}

/// Writes metadata with a placeholder for the revision, behind the members that precede it. Returns the position of the
/// digits in the placeholder.
fn write_metadata(metadata: Option<&Map>, is_sorted: bool, out: &mut Vec<u8>) -> u32 {
    const BEFORE: [&str; 5] = ["name", "generateName", "namespace", "selfLink", "uid"];
    const REVISION: &str = "resourceVersion";
    let is_before = |key: &str| if is_sorted { key < REVISION } else { BEFORE.contains(&key) };
    out.push(b'{');
    let mut at = 0;
    let place = |out: &mut Vec<u8>| {
        out.extend_from_slice(b"\"resourceVersion\":\"");
        let at = out.len() as u32;
        out.resize(out.len() + Revision::DIGITS, b'0');
        out.push(b'"');
        at
    };
    for (key, member) in metadata.into_iter().flat_map(Map::iter) {
        if key == REVISION {
            continue;
        }
        if at == 0 && !is_before(key) {
            at = place(out);
            out.push(b',');
        }
        json::write_str(key, out);
        out.push(b':');
        json::write(member, out);
        out.push(b',');
    }
    if at == 0 {
        at = place(out);
    } else {
        out.pop();
    }
    out.push(b'}');
    at
}

/// Returns the index terms of an object: labels and fields that selectors can name.
fn terms(served: &Served, object: &Value) -> Terms {
    let labels = object.map_at(&["metadata", "labels"]).into_iter().flat_map(Map::iter);
    let labels = labels.map(|(key, value)| (key.into(), value.as_str().unwrap_or("").into())).collect();
    let fields = served.strategy.selectable.iter();
    let fields = fields.map(|(name, value)| (CompactString::const_new(name), value(object).into()));
    let defined = served.custom.iter().flat_map(|custom| custom.selected(object));
    let fields = fields.chain(defined.map(|(name, value)| (name.into(), value.into())));
    Terms::new(labels, fields.filter(|(_, value): &(_, CompactString)| !value.is_empty()).collect())
}

/// Decodes a stored object, in its stored version.
pub fn stored_value(object: &Object) -> ApiResult<Value> {
    unreadable::value(object)
}

/// Decodes a stored object lazily, for callers that look at little of it or change little of it.
pub fn stored_tree(object: &Object) -> ApiResult<Value> {
    unreadable::tree(object)
}

/// Decodes one part of a stored object, in its stored version.
pub fn stored_part(object: &Object, part: Part) -> ApiResult<Value> {
    unreadable::prove(object)?;
    let metadata = &object.layout().metadata;
    let known = metadata.start as usize..metadata.end as usize;
    json::parse_part(object.bytes(), part, known).map_or_else(|| stored_value(object), Ok)
}

/// Returns whether the text of an object's metadata contains `text`. A member's name with its quotes and colon is found
/// only as a member, since quotes inside a string are escaped.
pub fn mentions(object: &Object, text: &str) -> bool {
    memmem::find(object.metadata(), text.as_bytes()).is_some()
}

/// Returns the stored bytes without the newline, to be sent as they are.
///
/// # Errors
/// 500: they cannot be decoded.
pub fn text(object: &Object) -> ApiResult<&[u8]> {
    unreadable::prove(object)?;
    Ok(object.bytes().strip_suffix(b"\n").unwrap_or(object.bytes()))
}

/// Appends the metadata as it is shown without the object: with its members in the order of their type. The metadata
/// may be readable although another part of the object is not.
///
/// # Errors
/// 500: the metadata cannot be decoded.
pub fn show_metadata(served: &Served, object: &Object, out: &mut Vec<u8>) -> ApiResult<()> {
    let is_sound = |error| json::check(object.metadata()).map_err(|_| error);
    unreadable::prove(object).or_else(is_sound)?;
    let text = object.metadata();
    let by_name = served.custom.as_ref().and_then(|_| value::read(&object.bytes().slice_ref(text)));
    let Some(mut metadata) = by_name else {
        out.extend_from_slice(text);
        return Ok(());
    };
    order::reorder_metadata(&mut metadata);
    json::write(&metadata, out);
    Ok(())
}

/// Returns an object that holds only the metadata of an object that cannot be decoded. Returns `None` if the object can
/// be decoded, or if its metadata cannot.
pub fn metadata_alone(object: &Object) -> Option<Value> {
    unreadable::prove(object).is_err().then_some(())?;
    let metadata = json::parse(object.metadata()).ok()?;
    Some(flotilla_proto::value!({"metadata": metadata}))
}

/// Sorts the members of `metadata` into the order of the catalogue, after some were added.
pub fn order_metadata(object: &mut Value, of: &Type) {
    let Some((_, field)) = of.field("metadata") else { return };
    let flotilla_proto::schema::Shape::Struct(meta) = &field.shape else { return };
    if let Some(map) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        map.sort_by_rank(|key| meta.field(key).map_or(usize::MAX, |(at, _)| at));
    }
}

/// Sorts the members of an object, and of all structs in it, into the order of the catalogue, after some were added.
pub fn order_members(object: &mut Value, of: &Type) {
    order::reorder(of, object);
}

/// Does the same as [`order_members`] for an object that conforms to the type and was made from `before`. `before` has
/// that order, or is empty.
pub fn order_changed(object: &mut Value, of: &Type, before: &Value) {
    order::order(of, object, before);
}
