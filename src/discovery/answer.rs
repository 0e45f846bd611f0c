//! Requests for discovery documents, and their answers.

use std::borrow::Cow;

use bytes::Bytes;
use flotilla_proto::json;
use flotilla_proto::value::Value;

use crate::request::negotiate::{Media, Representation};

/// The parts of a request that determine the answer.
#[derive(Debug, Clone, Copy, Default)]
pub struct Request<'a> {
    /// Method in upper case.
    pub method: &'a str,
    /// Path with its leading slash, without query.
    pub path: &'a str,
    /// The query without its question mark.
    pub query: &'a str,
    /// The Accept header; empty when there is none.
    pub accept: &'a str,
    /// The If-None-Match header.
    pub if_none_match: Option<&'a str>,
    /// Whether to indent JSON.
    pub pretty: bool,
}

/// An answer to a request for a document.
#[derive(Debug, Clone)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// The Content-Type header; empty for none.
    pub content_type: Cow<'static, str>,
    /// Further headers. Each replaces a header of the same name that the gateway would set.
    pub headers: Vec<(&'static str, Cow<'static, str>)>,
    /// The body.
    pub body: Body,
}

/// The body of an [`Answer`].
#[derive(Debug, Clone)]
pub enum Body {
    /// Bytes as they are sent.
    Encoded(Bytes),
    /// An object that the gateway encodes.
    Object {
        /// The object.
        value: Value,
        /// Group, version and name of its kind in the catalogue.
        kind: (&'static str, &'static str, &'static str),
        /// The representation that the client asked for.
        representation: Representation,
    },
}

impl Body {
    /// No body.
    pub const fn empty() -> Self {
        Self::Encoded(Bytes::new())
    }

    /// Returns the body for a representation of a document whose compact JSON is already encoded.
    pub(super) fn of(
        json: &Bytes,
        kind: (&'static str, &'static str, &'static str),
        representation: Representation,
    ) -> Self {
        if representation.media == Media::Json && !representation.pretty {
            return Self::Encoded(json.clone());
        }
        match json::parse(json) {
            Ok(value) => Self::Object { value, kind, representation },
            Err(_) => Self::Encoded(json.clone()),
        }
    }
}

impl Answer {
    /// Returns a text answer with the content type that Go's server sets.
    pub(crate) fn text(status: u16, text: impl Into<Bytes>) -> Self {
        let content_type = "text/plain; charset=utf-8".into();
        Self { status, content_type, headers: Vec::new(), body: Body::Encoded(text.into()) }
    }

    /// Returns an answer with encoded JSON.
    pub(crate) fn json(text: impl Into<Bytes>) -> Self {
        Self {
            status: 200,
            content_type: "application/json".into(),
            headers: Vec::new(),
            body: Body::Encoded(text.into()),
        }
    }

    /// Returns the answer for an unknown path.
    pub fn not_found() -> Self {
        let headers = vec![("x-content-type-options", "nosniff".into())];
        Self { headers, ..Self::text(404, "404 page not found\n") }
    }
}

/// Returns the encoding for aggregated discovery that the best clause of an Accept header asks for. A clause that asks
/// for aggregated discovery wins over every clause that does not. Returns `None` if no clause asks for it.
pub(super) fn aggregated_media(accept: &str) -> Option<Media> {
    if !accept.contains("APIGroupDiscoveryList") {
        return None;
    }
    let mut best: Option<(f32, Media)> = None;
    for clause in accept.split(',') {
        let mut parts = clause.split(';').map(str::trim);
        let name = parts.next().unwrap_or("");
        let media = match name {
            "*/*" | "application/*" => Some(Media::Json),
            name => Media::ALL.into_iter().find(|media| media.name() == name),
        };
        let Some(media) = media else { continue };
        let (mut quality, mut group, mut version, mut kind) = (1.0_f32, "", "", "");
        for (key, value) in parts.filter_map(|part| part.split_once('=')) {
            match key.trim() {
                "q" => quality = value.trim().parse().unwrap_or(1.0),
                "g" => group = value.trim(),
                "v" => version = value.trim(),
                "as" => kind = value.trim(),
                _ => {}
            }
        }
        let asked = (group, version, kind) == ("apidiscovery.k8s.io", "v2", "APIGroupDiscoveryList");
        if asked && best.is_none_or(|(other, _)| quality > other) {
            best = Some((quality, media));
        }
    }
    best.map(|(_, media)| media)
}
