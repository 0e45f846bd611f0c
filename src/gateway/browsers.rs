//! Headers for browsers: they name the scripts that may read answers (CORS, as the Fetch standard defines it), and
//! demand HTTPS (RFC 6797).

use actix_web::http::Method;
use actix_web::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use actix_web::{HttpRequest, HttpResponse};
use regex::Regex;

use crate::answer::CACHING;
use crate::config::RequestOptions;

/// The headers of answers to scripts of an allowed origin, besides that origin.
const ALLOWED: [(HeaderName, &str); 4] = [
    (header::ACCESS_CONTROL_ALLOW_METHODS, "POST, GET, OPTIONS, PUT, DELETE, PATCH"),
    (
        header::ACCESS_CONTROL_ALLOW_HEADERS,
        "Content-Type, Content-Length, Accept-Encoding, X-CSRF-Token, Authorization, X-Requested-With, \
         If-Modified-Since",
    ),
    (header::ACCESS_CONTROL_EXPOSE_HEADERS, "Date"),
    (header::ACCESS_CONTROL_ALLOW_CREDENTIALS, "true"),
];

/// The settings for browsers.
#[derive(Debug)]
pub(super) struct Browsers {
    origins: Vec<Regex>,
    transport_security: Option<HeaderValue>,
}

impl Browsers {
    /// Returns the settings of a configuration, which has checked them. `None` without settings.
    pub(super) fn of(options: &RequestOptions) -> Option<Box<Self>> {
        let origins: Vec<Regex> =
            options.cors_allowed_origins.iter().filter_map(|pattern| Regex::new(pattern).ok()).collect();
        let directives = options.strict_transport_security_directives.join("; ");
        let transport_security = HeaderValue::from_maybe_shared(directives).ok().filter(|value| !value.is_empty());
        let is_set = !origins.is_empty() || transport_security.is_some();
        is_set.then(|| Box::new(Self { origins, transport_security }))
    }

    /// Returns the answer to a preflight request, in which a browser asks for the requests that a script may send. A
    /// preflight request needs no user. `None` for other requests.
    pub(super) fn preflight(&self, request: &HttpRequest) -> Option<HttpResponse> {
        let is_preflight = request.method() == Method::OPTIONS && self.allowed_origin(request).is_some();
        is_preflight.then(|| HttpResponse::NoContent().insert_header(CACHING).finish())
    }

    /// Adds the headers to an answer.
    pub(super) fn show(&self, request: &HttpRequest, headers: &mut HeaderMap) {
        if let Some(directives) = &self.transport_security {
            headers.insert(header::STRICT_TRANSPORT_SECURITY, directives.clone());
        }
        if let Some(origin) = self.allowed_origin(request) {
            headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
            for (name, value) in ALLOWED {
                headers.insert(name, HeaderValue::from_static(value));
            }
        }
    }

    /// Returns the origin of a request's script if it is allowed.
    fn allowed_origin<'r>(&self, request: &'r HttpRequest) -> Option<&'r HeaderValue> {
        let origin = request.headers().get(header::ORIGIN).filter(|_| !self.origins.is_empty())?;
        let text = origin.to_str().ok().filter(|text| !text.is_empty())?;
        self.origins.iter().any(|pattern| pattern.is_match(text)).then_some(origin)
    }
}
