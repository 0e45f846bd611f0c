//! The head of a request.

use std::sync::Arc;

use actix_web::HttpRequest;
use actix_web::http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, HeaderName, USER_AGENT};

use crate::request::negotiate::{Form, Media, Offer, Representation, negotiate, negotiate_custom, wants_pretty};
use crate::request::query::Query;
use crate::served::Served;
use crate::status::{ApiError, ApiResult};
use crate::transport::{ConnectionId, RawTarget};

/// The parts of a request's head that decide how it is answered.
pub struct Head<'r> {
    /// Method, as it was sent.
    pub method: &'r str,
    /// Path with its leading slash, not decoded.
    pub path: &'r str,
    /// Query without the question mark.
    pub query_text: &'r str,
    /// Query.
    pub query: Query<'r>,
    /// Header `Accept`.
    pub accept: &'r str,
    /// Header `Content-Type`.
    pub content_type: &'r str,
    /// Whether JSON is indented.
    pub pretty: bool,
    /// Whether the client takes gzip.
    pub gzip: bool,
    /// The connection of the request.
    pub connection: ConnectionId,
    /// Path and query, if the URI does not state them.
    pub(super) target: Option<&'r Arc<RawTarget>>,
    request: Option<&'r HttpRequest>,
}

impl<'r> Head<'r> {
    /// Returns the head of a request. `target` has path and query if the URI of the request does not state them.
    pub(super) fn of(request: &'r HttpRequest, target: Option<&'r Arc<RawTarget>>) -> Self {
        let (path, query_text) = match target {
            Some(target) => (&*target.path, &*target.query),
            None => (request.path(), request.query_string()),
        };
        let query = Query::parse(query_text);
        Self {
            method: request.method().as_str(),
            path,
            query_text,
            accept: header(request, &ACCEPT),
            content_type: header(request, &CONTENT_TYPE),
            pretty: wants_pretty(query.get("pretty"), header(request, &USER_AGENT)),
            gzip: takes_gzip(header(request, &ACCEPT_ENCODING)),
            target,
            request: Some(request),
            connection: request.conn_data().copied().unwrap_or_default(),
            query,
        }
    }

    /// Returns the request itself.
    ///
    /// # Errors
    /// 500 on a thread other than that of the connection: answers that are made there need only the head.
    pub(super) fn request(&self) -> ApiResult<&'r HttpRequest> {
        self.request.ok_or_else(|| ApiError::internal("the request is answered apart from its connection"))
    }

    /// Returns the header `User-Agent`. Empty without one.
    pub(super) fn user_agent(&self) -> &'r str {
        self.request.map_or("", |request| header(request, &USER_AGENT))
    }

    /// Returns whether the query asks for a watch.
    pub(super) fn watches(&self) -> bool {
        self.query.flag("watch").unwrap_or(false)
    }

    /// Returns the representation that the client wants, among those that a route offers.
    pub fn representation(&self, offer: Offer) -> ApiResult<Representation> {
        negotiate(self.accept, offer, self.pretty)
    }

    /// Returns the same as [`Head::representation`], for an object of this resource.
    pub fn representation_of(&self, served: &Served, offer: Offer) -> ApiResult<Representation> {
        if served.custom.is_some() {
            return negotiate_custom(self.accept, offer, self.pretty);
        }
        self.representation(offer)
    }

    /// Returns the representation of errors: the client's choice among those for bodies with only one form. JSON if the
    /// client accepts none of them.
    pub fn for_errors(&self) -> Representation {
        let fallback = Representation { media: Media::Json, form: Form::Object, pretty: self.pretty };
        self.representation(Offer::Plain).unwrap_or(fallback)
    }
}

/// A head that can be sent to another thread.
pub(super) struct MovedHead {
    method: String,
    path: String,
    query: String,
    accept: String,
    content_type: String,
    pretty: bool,
    gzip: bool,
    connection: ConnectionId,
}

impl MovedHead {
    pub(super) fn of(head: &Head<'_>) -> Self {
        Self {
            method: head.method.into(),
            path: head.path.into(),
            query: head.query_text.into(),
            accept: head.accept.into(),
            content_type: head.content_type.into(),
            pretty: head.pretty,
            gzip: head.gzip,
            connection: head.connection,
        }
    }

    pub(super) fn head(&self) -> Head<'_> {
        Head {
            method: &self.method,
            path: &self.path,
            query_text: &self.query,
            query: Query::parse(&self.query),
            accept: &self.accept,
            content_type: &self.content_type,
            pretty: self.pretty,
            gzip: self.gzip,
            connection: self.connection,
            target: None,
            request: None,
        }
    }
}

fn header<'r>(request: &'r HttpRequest, name: &HeaderName) -> &'r str {
    request.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or("")
}

fn takes_gzip(accept_encoding: &str) -> bool {
    accept_encoding.split(',').any(|coding| coding.trim() == "gzip") // the reference ignores `gzip` with a quality
}
