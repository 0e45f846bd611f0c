//! Restores requests as clients sent them, in place of the short ones that the HTTP server has read.

use std::sync::Arc;

use actix_http::{HttpMessage as _, Request};
use actix_web::http::header::{HeaderName, HeaderValue};
use actix_web::http::{Method, StatusCode, Version};
use actix_web::{HttpResponse, HttpResponseBuilder};

use super::head::{Refusal, RequestHead, TOO_LARGE};
use super::inbound::{CurrentRequest, Large, Question};
use crate::limits;

/// Restores a request. Returns an answer if no handler is needed.
pub(super) fn restore(request: &mut Request) -> Option<HttpResponse> {
    if request.version() < Version::HTTP_2 {
        let current = request.conn_data::<CurrentRequest>().and_then(CurrentRequest::take);
        match current {
            Some(Question::Request(head, large)) => put(request, *head, large),
            Some(Question::Refused(refusal)) => return Some(refused(refusal)),
            None => return Some(HttpResponse::InternalServerError().force_close().finish()),
        }
    } else if exceeds(request) {
        return Some(refused(TOO_LARGE));
    }
    let is_general = request.method() == Method::OPTIONS
        && match request.extensions().get::<Arc<super::RawTarget>>() {
            Some(target) => target.path == "*",
            None => request.path() == "*",
        };
    is_general.then(|| HttpResponse::Ok().finish())
}

fn put(request: &mut Request, head: RequestHead, large: Option<Large>) {
    if let Some(target) = head.target {
        request.extensions_mut().insert(target);
    }
    if let Some(large) = large {
        request.extensions_mut().insert(large);
    }
    let of = request.head_mut();
    of.method = head.method;
    of.headers = head.headers;
    if let Some(uri) = head.uri {
        of.uri = uri;
    }
}

/// Returns whether the headers of an HTTP/2 request exceed the limit, counted as HTTP/2 does (RFC 9113, section 6.5.2).
fn exceeds(request: &Request) -> bool {
    let size = |(name, value): (&HeaderName, &HeaderValue)| name.as_str().len() + value.len() + 32;
    request.head().headers.iter().map(size).sum::<usize>() > limits::HEAD_BYTES
}

fn refused(Refusal { code, text }: Refusal) -> HttpResponse {
    let mut response = HttpResponseBuilder::new(StatusCode::from_u16(code).unwrap_or(StatusCode::BAD_REQUEST));
    response.force_close();
    if text.is_empty() {
        return response.finish();
    }
    response.content_type("text/plain; charset=utf-8").body(text)
}
