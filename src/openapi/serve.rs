//! Answers to requests for OpenAPI documents.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use bytes::Bytes;
use flotilla_proto::json;
use flotilla_proto::schema::Text;
use flotilla_proto::value;
use flotilla_proto::value::{Map, Value};
use parking_lot::Mutex;

use super::custom::Custom;
use super::document::{Content, DocumentId};
use super::remote::Remote;
use super::{v2, write};
use crate::discovery::{Answer, Body, Request, hash};
use crate::enablement::Enablement;
use crate::limits;
use crate::request::query::Query;
use crate::wall_clock;

/// The documents of the built-in kinds, of one set of custom resources and of other servers.
#[derive(Debug)]
pub struct OpenApi {
    /// Documents of v3 by their path.
    documents: BTreeMap<String, Arc<Document>>,
    /// The documents of other servers.
    remote: Arc<Remote>,
    /// The documents of other servers that were converted from v2, by their path.
    converted: BTreeMap<String, Arc<Document>>,
    v2_hash: OnceLock<String>,
    kept: Mutex<EncodedDocuments>,
    since: SystemTime,
}

/// A document of v3.
#[derive(Debug)]
struct Document {
    source: DocumentSource,
    hash: OnceLock<String>,
}

/// The source of a document.
#[derive(Debug)]
enum DocumentSource {
    /// This server's resources.
    Own(Own),
    /// A document of another server, converted from v2.
    Converted(Arc<Value>),
}

/// The subject of a document of this server.
#[derive(Debug)]
struct Own {
    id: DocumentId,
    custom: Vec<Custom>,
    enablement: Arc<Enablement>,
}

impl Own {
    fn content(&self) -> Content {
        Content::new(&self.id, &self.custom.iter().collect::<Vec<_>>(), &self.enablement)
    }
}

impl Document {
    fn new(source: DocumentSource) -> Arc<Self> {
        Arc::new(Self { source, hash: OnceLock::new() })
    }

    fn of(id: DocumentId, custom: Vec<Custom>, enablement: &Arc<Enablement>) -> Arc<Self> {
        Self::new(DocumentSource::Own(Own { id, custom, enablement: Arc::clone(enablement) }))
    }

    /// Returns the subject of a document about this server's resources. Returns `None` for documents of other servers.
    fn own(&self) -> Option<&Own> {
        match &self.source {
            DocumentSource::Own(own) => Some(own),
            DocumentSource::Converted(_) => None,
        }
    }

    fn build(&self, form: DocumentEncoding) -> Vec<u8> {
        match (&self.source, form) {
            (DocumentSource::Own(own), DocumentEncoding::Json) => write::v3_json(&own.content()),
            (DocumentSource::Own(own), DocumentEncoding::Protobuf) => write::v3_protobuf(&own.content()),
            (DocumentSource::Converted(document), DocumentEncoding::Json) => json::to_vec(document),
            (DocumentSource::Converted(document), DocumentEncoding::Protobuf) => write::converted_protobuf(document),
        }
    }

    /// Returns the hash of the JSON form. The first call builds that form.
    fn hash(&self) -> &str {
        self.hash.get_or_init(|| hash(&self.build(DocumentEncoding::Json)))
    }
}

/// Encoded documents, the oldest first.
#[derive(Debug, Default)]
struct EncodedDocuments {
    documents: VecDeque<(String, DocumentEncoding, Bytes)>,
    bytes: usize,
}

/// Encodings of documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DocumentEncoding {
    Json,
    Protobuf,
}

impl Default for OpenApi {
    fn default() -> Self {
        Self::new(&Arc::default())
    }
}

impl OpenApi {
    /// Returns the documents of enabled built-in kinds, without building them yet.
    pub fn new(enablement: &Arc<Enablement>) -> Self {
        let ids = DocumentId::built_in(enablement).into_iter();
        let documents = ids.map(|id| (id.path(), Document::of(id, Vec::new(), enablement)));
        Self::of(documents.collect(), Arc::default())
    }

    fn of(documents: BTreeMap<String, Arc<Document>>, remote: Arc<Remote>) -> Self {
        let converted = remote.converted.iter();
        let document = |document: &Arc<Value>| Document::new(DocumentSource::Converted(Arc::clone(document)));
        let converted = converted.map(|(path, of)| (path.clone(), document(of))).collect();
        let (v2_hash, kept) = (OnceLock::new(), Mutex::default());
        Self { documents, remote, converted, v2_hash, kept, since: wall_clock::now() }
    }

    /// Returns the same documents with those of other servers.
    #[must_use]
    pub fn with_remote(&self, remote: Remote) -> Self {
        Self::of(self.documents.clone(), Arc::new(remote))
    }

    /// Returns the same documents of built-in kinds, with other custom resources.
    #[must_use]
    pub fn with_custom(&self, custom: Vec<Custom>) -> Self {
        let built_in = self.documents.iter();
        let built_in = built_in.filter(|(_, document)| document.own().is_some_and(|own| own.custom.is_empty()));
        let mut documents: BTreeMap<String, Arc<Document>> =
            built_in.map(|(path, document)| (path.clone(), Arc::clone(document))).collect();
        documents.extend(custom_documents(custom));
        Self::of(documents, Arc::clone(&self.remote))
    }

    /// Returns the answer to any method on an OpenAPI path. Returns `None` for other paths. Building a document that is
    /// not cached occupies this thread for up to some tens of milliseconds.
    pub fn answer(&self, request: &Request<'_>) -> Option<Answer> {
        match request.path {
            "/openapi/v2" => Some(self.answer_v2(request)),
            "/openapi/v3" => Some(self.index()),
            path => path.strip_prefix("/openapi/v3/").map(|path| self.answer_v3(path, request)),
        }
    }

    fn index(&self) -> Answer {
        let entry = |path: &str, document: &Document| value!({"serverRelativeURL": (format!("/openapi/v3/{path}?hash={}", document.hash()))});
        let is_elsewhere = |path: &str| self.remote.index.contains_key(path) || self.converted.contains_key(path);
        let own = self.documents.iter().filter(|(path, _)| !is_elsewhere(path)).chain(&self.converted);
        let own = own.map(|(path, of)| (path.as_str(), entry(path, of)));
        let remote =
            self.remote.index.iter().map(|(path, url)| (path.as_str(), value!({"serverRelativeURL": (&**url)})));
        let all: BTreeMap<&str, Value> = own.chain(remote).collect();
        let paths: Map = all.into_iter().collect();
        let modified = ("last-modified", http_date(self.since, "GMT").into());
        Answer { headers: vec![modified], ..Answer::text(200, json::to_vec(&value!({"paths": paths}))) }
    }

    fn answer_v3(&self, path: &str, request: &Request<'_>) -> Answer {
        let nothing = |status, headers| Answer { status, content_type: "".into(), headers, body: Body::empty() };
        let document = self.converted.get(path).or_else(|| self.documents.get(path));
        let Some(document) = document else { return nothing(404, Vec::new()) };
        let mut headers: Vec<(&'static str, Cow<'static, str>)> = vec![("vary", "Accept".into())];
        let Some(form) = form(request.accept, "v3") else { return nothing(406, headers) };
        let hash = document.hash();
        let tag = format!("\"{hash}\"");
        headers.push(("etag", tag.clone().into()));
        let query = Query::parse(request.query);
        match query.get("hash") {
            Some(asked) if asked == hash => {
                headers.push(("cache-control", "public, immutable".into()));
                headers.push(("expires", http_date(wall_clock::now() + limits::OPENAPI_CLIENT_LIFETIME, "UTC").into()));
            }
            Some(asked) if !asked.is_empty() => {
                headers.push(("location", format!("/openapi/v3/{path}?hash={hash}").into()));
                return Answer { content_type: content_type(form, "v3").into(), ..nothing(301, headers) };
            }
            _ => {}
        }
        if request.if_none_match.is_some_and(|header| matches_tag(header, &tag)) {
            return nothing(304, headers);
        }
        headers.push(("last-modified", http_date(self.since, "GMT").into()));
        let bytes = self.kept(path, form, || document.build(form));
        Answer { status: 200, content_type: content_type(form, "v3").into(), headers, body: Body::Encoded(bytes) }
    }

    fn answer_v2(&self, request: &Request<'_>) -> Answer {
        let nothing = |status, headers| Answer { status, content_type: "".into(), headers, body: Body::empty() };
        let mut headers: Vec<(&'static str, Cow<'static, str>)> = vec![("vary", "Accept-Encoding, Accept".into())];
        let Some(form) = form(request.accept, "v2") else { return nothing(406, headers) };
        let hash = self.v2_hash.get_or_init(|| hash(&self.v2_bytes(DocumentEncoding::Json)));
        let tag = format!("\"{hash}\"");
        headers.push(("etag", tag.clone().into()));
        if request.if_none_match.is_some_and(|header| matches_tag(header, &tag)) {
            return nothing(304, headers);
        }
        headers.push(("last-modified", http_date(self.since, "GMT").into()));
        let body = Body::Encoded(self.v2_bytes(form));
        Answer { status: 200, content_type: content_type(form, "v2").into(), headers, body }
    }

    fn v2_bytes(&self, form: DocumentEncoding) -> Bytes {
        let content = || v2::merge(self.documents.values().filter_map(|document| document.own()).map(Own::content));
        self.kept("v2", form, || match form {
            DocumentEncoding::Json => write::v2_json(&content(), &self.remote.swagger),
            DocumentEncoding::Protobuf => write::v2_protobuf(&content(), &self.remote.swagger),
        })
    }

    /// Returns a cached document, or builds it and caches it in place of the oldest ones.
    fn kept(&self, path: &str, form: DocumentEncoding, build: impl FnOnce() -> Vec<u8>) -> Bytes {
        let find = |kept: &EncodedDocuments| {
            let mut all = kept.documents.iter();
            all.find(|(own, own_form, _)| own == path && *own_form == form).map(|(.., bytes)| bytes.clone())
        };
        if let Some(bytes) = find(&self.kept.lock()) {
            return bytes;
        }
        let bytes = Bytes::from(build());
        let mut kept = self.kept.lock();
        if find(&kept).is_none() {
            kept.bytes += bytes.len();
            kept.documents.push_back((path.to_owned(), form, bytes.clone()));
            while kept.bytes > limits::OPENAPI_KEPT_BYTES {
                let Some((.., oldest)) = kept.documents.pop_front() else { break };
                kept.bytes -= oldest.len();
            }
        }
        bytes
    }
}

/// Returns one document per group version of custom resources.
fn custom_documents(custom: Vec<Custom>) -> impl Iterator<Item = (String, Arc<Document>)> {
    let mut versions: BTreeMap<(Text, Text), Vec<Custom>> = BTreeMap::new();
    for of in custom {
        versions.entry((of.resource.group.clone(), of.resource.version.clone())).or_default().push(of);
    }
    versions.into_iter().map(|((group, version), custom)| {
        let id = DocumentId::Version(group, version);
        (id.path(), Document::of(id, custom, &Arc::default()))
    })
}

/// Returns the form that an Accept header chooses. Returns `None` when it accepts none.
fn form(accept: &str, version: &str) -> Option<DocumentEncoding> {
    if accept.is_empty() {
        return Some(DocumentEncoding::Json);
    }
    let mut best: Option<(f32, DocumentEncoding)> = None;
    for clause in accept.split(',') {
        let mut parts = clause.split(';').map(str::trim);
        let form = match parts.next().unwrap_or("") {
            "*/*" | "application/*" | "application/json" => DocumentEncoding::Json,
            name => match name.strip_prefix("application/com.github.proto-openapi.spec.") {
                Some(rest) if rest == format!("{version}@v1.0+protobuf") => DocumentEncoding::Protobuf,
                Some(rest) if rest == format!("{version}.v1.0+protobuf") => DocumentEncoding::Protobuf,
                _ => continue,
            },
        };
        let quality = parts.filter_map(|part| part.strip_prefix("q=")).find_map(|q| q.parse().ok()).unwrap_or(1.0);
        if best.is_none_or(|(other, _)| quality > other) {
            best = Some((quality, form));
        }
    }
    best.map(|(_, form)| form)
}

fn content_type(form: DocumentEncoding, version: &str) -> String {
    match form {
        DocumentEncoding::Json => "application/json".into(),
        DocumentEncoding::Protobuf => format!("application/com.github.proto-openapi.spec.{version}.v1.0+protobuf"),
    }
}

/// Returns whether an If-None-Match header names the tag (RFC 9110, 13.1.2).
fn matches_tag(header: &str, tag: &str) -> bool {
    header.split(',').map(str::trim).any(|own| own == "*" || own.strip_prefix("W/").unwrap_or(own) == tag)
}

/// Returns a time as HTTP headers write it (RFC 9110, 5.6.7).
fn http_date(time: SystemTime, zone: &str) -> String {
    actix_web::http::header::HttpDate::from(time).to_string().replace("GMT", zone)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accept_headers_choose_json_or_protobuf() {
        let protobuf = "application/com.github.proto-openapi.spec.v3@v1.0+protobuf";
        assert_eq!(form("", "v3"), Some(DocumentEncoding::Json));
        assert_eq!(form(protobuf, "v3"), Some(DocumentEncoding::Protobuf));
        assert_eq!(form(protobuf, "v2"), None);
        assert_eq!(form(&format!("application/json;q=0.5, {protobuf}"), "v3"), Some(DocumentEncoding::Protobuf));
        assert_eq!(form("text/html", "v3"), None);
    }
}
