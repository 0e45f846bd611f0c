//! Builds HTTP answers: bodies, warnings and errors, in the encoding that the client asked for.

use std::collections::HashSet;
use std::io::Write as _;

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::http::header::{
    CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, VARY, WARNING,
};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use flotilla_objects::api_version;
use flotilla_proto::schema::Kind;
use flotilla_proto::value::Value;
use flotilla_proto::{catalogue, json, protobuf, yaml};

use crate::limits;
use crate::request::{Form, Media, Representation};
use crate::status::ApiError;

/// The header that tells clients not to cache answers.
pub const CACHING: (HeaderName, HeaderValue) = (CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));

/// The group of the kinds in which any object can be shown, such as Table.
const META_GROUP: &str = "meta.k8s.io";

/// An encoded body.
pub struct Encoded {
    /// The bytes.
    pub bytes: Bytes,
    /// Their media type.
    pub content_type: &'static str,
}

/// Builds an answer with a whole body.
pub fn respond(code: u16, encoded: Encoded, warnings: &[String]) -> HttpResponse {
    let mut response = HttpResponse::build(StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR));
    response.insert_header((CONTENT_TYPE, HeaderValue::from_static(encoded.content_type)));
    response.insert_header(CACHING);
    append_warnings(&mut response, warnings);
    response.body(encoded.bytes)
}

/// A body that is compressed where that pays.
pub struct Packed {
    encoded: Encoded,
    is_compressed: bool,
}

/// Compresses a body if that pays and the client accepts it, as `gzip` says.
pub fn pack(encoded: Encoded, gzip: bool) -> Packed {
    match if gzip { compress(&encoded.bytes) } else { None } {
        Some(bytes) => Packed { encoded: Encoded { bytes, ..encoded }, is_compressed: true },
        None => Packed { encoded, is_compressed: false },
    }
}

/// Builds an answer with a whole body, compressed if the client accepts that and the body is large enough.
pub fn respond_compressed(code: u16, encoded: Encoded, gzip: bool, warnings: &[String]) -> HttpResponse {
    respond_packed(code, pack(encoded, gzip), warnings)
}

/// Answers with a body that may be compressed.
pub fn respond_packed(code: u16, packed: Packed, warnings: &[String]) -> HttpResponse {
    let mut response = respond(code, packed.encoded, warnings);
    if packed.is_compressed {
        response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        response.headers_mut().insert(VARY, HeaderValue::from_static("Accept-Encoding"));
    }
    response
}

/// Returns the compressed body. Returns `None` if the body is too small for compression to pay.
pub fn compress(bytes: &[u8]) -> Option<Bytes> {
    if bytes.len() <= limits::GZIP_BYTES_MIN {
        return None;
    }
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 4), Compression::fast());
    encoder.write_all(bytes).ok()?;
    Some(encoder.finish().ok()?.into())
}

/// Adds a `Warning` header for each text (RFC 7234, section 5.5). Drops duplicates and texts with control characters,
/// which webhooks may send. If the texts are too long together, shortens each, and drops the first that does not fit
/// and all after it.
pub fn append_warnings(response: &mut actix_web::HttpResponseBuilder, warnings: &[String]) {
    let mut seen = HashSet::with_capacity(warnings.len());
    let texts = warnings.iter().map(String::as_str);
    let mut chosen: Vec<&str> = texts.filter(|warning| is_sayable(warning) && seen.insert(*warning)).collect();
    let length = |text: &str| text.chars().count();
    if chosen.iter().map(|text| length(text)).sum::<usize>() > limits::WARNINGS_CHARACTERS {
        let mut room = limits::WARNINGS_CHARACTERS;
        chosen = chosen.into_iter().map(|text| beginning(text, limits::WARNING_CHARACTERS)).collect();
        chosen.retain(|text| {
            let fits = length(text) <= room;
            room = if fits { room - length(text) } else { 0 };
            fits
        });
    }
    for warning in chosen {
        let text = warning.replace('\\', r"\\").replace('"', "\\\"");
        if let Ok(header) = HeaderValue::from_str(&format!("299 - \"{text}\"")) {
            response.append_header((WARNING, header));
        }
    }
}

/// Returns whether a text may stand in a header.
fn is_sayable(text: &str) -> bool {
    !text.is_empty() && !text.chars().any(char::is_control)
}

/// Returns the first `characters` characters of a text.
fn beginning(text: &str, characters: usize) -> &str {
    text.char_indices().nth(characters).map_or(text, |(end, _)| &text[..end])
}

/// Builds an error answer.
pub fn respond_error(error: &ApiError, representation: Representation, warnings: &[String]) -> HttpResponse {
    let encoded = encode_status(&error.to_value(), representation);
    let mut response = respond(error.code, encoded, warnings);
    let seconds = error.retry_after_seconds();
    if seconds > 0
        && let Ok(header) = HeaderValue::from_str(&seconds.to_string())
    {
        response.headers_mut().insert(RETRY_AFTER, header);
    }
    response
}

/// Builds an answer of plain text, as for unknown paths.
pub fn respond_text(code: u16, text: &str) -> HttpResponse {
    let encoded = Encoded { bytes: Bytes::copy_from_slice(text.as_bytes()), content_type: "text/plain; charset=utf-8" };
    let mut response = respond(code, encoded, &[]);
    response.headers_mut().remove(CACHE_CONTROL);
    let sniff = HeaderName::from_static("x-content-type-options");
    response.headers_mut().insert(sniff, HeaderValue::from_static("nosniff"));
    response
}

/// Builds 429: too many requests are in progress. Clients try again after this many seconds.
pub fn too_many_requests(seconds: u64) -> HttpResponse {
    let mut response = respond_text(429, "Too many requests, please try again later.\n");
    let headers = response.headers_mut();
    headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    headers.insert(CACHE_CONTROL, CACHING.1);
    response
}

/// Builds 504: the request took too long. The text is a `Status`, though the reference does not label it as JSON. If
/// the request may have waited for other members, the answer asks clients to try again, after the time that electing a
/// leader takes.
pub fn timed_out(may_have_others: bool) -> HttpResponse {
    let text = "{\"metadata\":{},\"status\":\"Failure\",\"message\":\"Timeout: request did not complete within the \
                allotted timeout\",\"reason\":\"Timeout\",\"details\":{},\"code\":504}";
    let encoded = Encoded { bytes: Bytes::from_static(text.as_bytes()), content_type: "text/plain; charset=utf-8" };
    let mut response = respond(504, encoded, &[]);
    if may_have_others {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}

/// Encodes a `Status`, in the encoding that the client asked for.
pub fn encode_status(status: &Value, representation: Representation) -> Encoded {
    encode_value(status, Representation { form: Form::Object, ..representation })
}

/// Encodes a tree that has `kind` and `apiVersion`.
pub fn encode_value(value: &Value, representation: Representation) -> Encoded {
    let mut out = Vec::with_capacity(512);
    match representation.media {
        Media::Json if representation.pretty => json::write_pretty(value, &mut out),
        Media::Json => {
            json::write(value, &mut out);
            out.push(b'\n');
        }
        Media::Yaml => yaml::write(value, &mut out),
        Media::Protobuf => {
            let (group, version) = api_version::split(value.str_at(&["apiVersion"]));
            return encode_kind(value, (group, version, value.str_at(&["kind"])), representation);
        }
    }
    Encoded { bytes: out.into(), content_type: representation.media.name() }
}

/// Encodes a tree of the kind `of` (group, version, name). The tree need not state its kind.
pub fn encode_kind(value: &Value, of: (&str, &str, &str), representation: Representation) -> Encoded {
    if representation.media != Media::Protobuf {
        return encode_value(value, representation);
    }
    let mut out = Vec::with_capacity(512);
    // The kinds in which any object can be shown have the same protobuf messages in `v1` and in `v1beta1`.
    let version = if of.0 == META_GROUP { "v1" } else { of.1 };
    match catalogue::kind(of.0, version, of.2) {
        Some(kind) if protobuf_object(kind, value, &mut out) => {
            Encoded { bytes: out.into(), content_type: Media::Protobuf.name() }
        }
        _ => {
            json::write(value, &mut out);
            Encoded { bytes: out.into(), content_type: Media::Json.name() }
        }
    }
}

/// Encodes an object in protobuf. Returns false for kinds without protobuf messages.
fn protobuf_object(kind: &Kind, value: &Value, out: &mut Vec<u8>) -> bool {
    protobuf::encode_object(&kind.of, value.str_at(&["apiVersion"]), &kind.name, value, out).is_ok()
}
