//! Proxies requests to servers behind nodes, pods and services.

use std::io::{Read as _, Write as _};

use actix_web::body::{BodyStream, SizedStream};
use actix_web::http::{StatusCode, Version};
use actix_web::{HttpRequest, HttpResponse, web};
use bytes::Bytes;
use flate2::Compression;
use flotilla_golang::url::Url;
use futures_util::StreamExt as _;
use http::Method;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION};
use http::response::Parts;
use http_body_util::BodyDataStream;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::{Destination, ForwardedRequest, forwarded, html, upgrade};
use crate::answer::CACHING;
use crate::limits;
use crate::outbound::{self, Answer, Body, Error, PLAIN_SERVER};
use crate::status::{ApiError, ApiResult};
use crate::tasks;

/// Headers that state which origins may use a server. This server decides that by itself.
const CORS: [&str; 4] = [
    "access-control-allow-credentials",
    "access-control-allow-headers",
    "access-control-allow-methods",
    "access-control-allow-origin",
];

/// Forwards a request to a server, and returns its answer.
///
/// # Errors
/// 400 if the address is forbidden, 503 if the server cannot be reached.
pub async fn answer(
    passing: &ForwardedRequest<'_>,
    to: &Destination,
    payload: web::Payload,
) -> ApiResult<HttpResponse> {
    let (request, path, query) = (passing.request, passing.path, passing.query);
    let mut location = to.path.clone();
    if path.ends_with('/') && !location.ends_with('/') {
        location.push('/');
    }
    if location.is_empty() && matches!(request.method().as_str(), "GET" | "HEAD") {
        let query = if query.is_empty() { String::new() } else { format!("?{query}") };
        let mut moved = HttpResponse::MovedPermanently();
        return Ok(moved.insert_header(CACHING).insert_header(("location", format!("{path}/{query}"))).finish());
    }
    let through = LinkRewriter::of(passing, to, &location);
    let mut headers = forwarded::of_request(passing)?;
    forwarded::name_host(&mut headers, request);
    let shown = if location.is_empty() { "/" } else { &location };
    if let Ok(uri) = HeaderValue::from_str(&through.forwarded_uri(shown)) {
        headers.insert("x-forwarded-uri", uri);
    }
    let answer = ask(passing, to, &with_query(&location, query), headers, payload).await?;
    let answer = answer.map_err(|error| match error {
        Error::Forbidden => ApiError::bad_request(error.to_string()),
        error => ApiError::new(503, "ServiceUnavailable", format!("error trying to reach service: {}", told(&error))),
    })?;
    let (mut head, body) = answer.into_parts();
    for name in CORS {
        head.headers.remove(name);
    }
    let redirect = head.headers.get(LOCATION).and_then(|value| value.to_str().ok()).filter(|value| !value.is_empty());
    if let Some(redirect) = redirect {
        let url = Url::parse(redirect)
            .map_err(|error| ApiError::internal(format!("error trying to parse Location header: {error}")))?;
        let rewritten = HeaderValue::from_str(&through.rewrite(url)).map_err(ApiError::internal)?;
        head.headers.insert(LOCATION, rewritten);
    } else if is_html(&head.headers) {
        return page(passing, &through, head, body).await;
    }
    respond(passing, head, body)
}

/// Returns an error in the words of Kubernetes' proxies, which make TLS handshakes apart from HTTP.
fn told(error: &Error) -> String {
    match error {
        Error::Handshake(why) if why == PLAIN_SERVER => {
            "tls: first record does not look like a TLS handshake".to_owned()
        }
        error => error.to_string(),
    }
}

/// Forwards a request with the client's body.
///
/// # Errors
/// The request cannot be represented, or the client has disconnected.
pub async fn ask(
    passing: &ForwardedRequest<'_>,
    to: &Destination,
    path: &str,
    mut headers: HeaderMap,
    payload: web::Payload,
) -> ApiResult<Result<http::Response<Answer>, Error>> {
    let method = Method::from_bytes(passing.request.method().as_str().as_bytes()).map_err(ApiError::internal)?;
    let body = match body_length(passing.request)? {
        Length::None => {
            // Go's client states the length of these requests even if it is zero.
            if matches!(method.as_str(), "POST" | "PUT" | "PATCH") {
                headers.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
            }
            outbound::empty()
        }
        Length::Bytes(length) => {
            headers.insert(CONTENT_LENGTH, length.into());
            body_of(payload)
        }
        Length::Open => body_of(payload),
    };
    let made = upgrade::request(to, path, method, headers, body)?;
    let deadline = Instant::now() + limits::STREAM_BEGIN_TIMEOUT;
    let asked = passing.meanwhile(passing.outbound.send(&to.peer, made, deadline)).await?;
    Ok(asked.and_then(|answer| match answer.status() {
        http::StatusCode::SWITCHING_PROTOCOLS => Err(Error::switched(answer.headers())),
        _ => Ok(answer),
    }))
}

/// The length of a request's body.
enum Length {
    None,
    Bytes(u64),
    /// Unknown before its end.
    Open,
}

/// Returns the length of the body that the client states. The other server gets the length in one form only.
fn body_length(request: &HttpRequest) -> ApiResult<Length> {
    let headers = request.headers();
    let is_http2 = request.version() == Version::HTTP_2;
    let mut stated = headers.get_all("content-length");
    let Some(length) = stated.next() else {
        let may_have = is_http2 && !matches!(request.method().as_str(), "GET" | "HEAD");
        return Ok(if may_have || headers.contains_key("transfer-encoding") { Length::Open } else { Length::None });
    };
    let digits = length.to_str().ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    let length = digits.and_then(|digits| digits.parse().ok()).filter(|_| stated.all(|other| other == length));
    match length.ok_or_else(|| ApiError::bad_request("the request states no unambiguous body length"))? {
        0 => Ok(Length::None),
        length => Ok(Length::Bytes(length)),
    }
}

/// Returns the body of a client's request. It is read as fast as the server receives it.
fn body_of(mut payload: web::Payload) -> Body {
    let (sender, mut receiver) = mpsc::channel::<Result<Bytes, std::io::Error>>(1);
    tasks::detached_here("body", async move {
        loop {
            let part = tokio::select! {
                part = payload.next() => part,
                () = sender.closed() => None,
            };
            let Some(part) = part else { return };
            let failed = part.is_err();
            if sender.send(part.map_err(std::io::Error::other)).await.is_err() || failed {
                return;
            }
        }
    });
    outbound::streamed(futures_util::stream::poll_fn(move |cx| receiver.poll_recv(cx)))
}

/// Returns the answer of a server as the answer to the client.
///
/// # Errors
/// The server's status code is invalid.
pub fn respond(passing: &ForwardedRequest<'_>, mut head: Parts, body: Answer) -> ApiResult<HttpResponse> {
    forwarded::drop_of_connection(&mut head.headers);
    let mut response = HttpResponse::build(StatusCode::from_u16(head.status.as_u16()).map_err(ApiError::internal)?);
    response.insert_header(CACHING);
    let length = head.headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
    let body = passing.lasting(BodyDataStream::new(body));
    let mut response = match length {
        Some(length) => response.body(SizedStream::new(length, body)),
        None => response.body(BodyStream::new(body)),
    };
    head.headers.remove(CONTENT_LENGTH);
    forwarded::copy(&head.headers, response.headers_mut());
    Ok(response)
}

fn is_html(headers: &HeaderMap) -> bool {
    let media = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    media.split(';').next().unwrap_or("").trim() == "text/html"
}

/// Answers with an HTML page whose links lead through the proxy.
async fn page(
    passing: &ForwardedRequest<'_>,
    through: &LinkRewriter<'_>,
    mut head: Parts,
    body: Answer,
) -> ApiResult<HttpResponse> {
    let encoding = head.headers.get(CONTENT_ENCODING).and_then(|value| value.to_str().ok()).unwrap_or("");
    let encoding = encoding.to_owned();
    if !matches!(&*encoding, "" | "gzip" | "deflate") || passing.request.method() == "HEAD" {
        return respond(passing, head, body);
    }
    let read = passing.meanwhile(outbound::read(body, limits::HTML_BYTES)).await?;
    let packed = read.map_err(|error| ApiError::new(502, "", error.to_string()))?;
    let link = |text: &str| Url::parse(text).ok().map(|url| through.rewrite(url));
    let page = unpacked(&packed, &encoding).map_err(ApiError::internal)?;
    let page = html::rewrite(&page, link);
    let body = packed_as(page, &encoding).map_err(ApiError::internal)?;
    forwarded::drop_of_connection(&mut head.headers);
    head.headers.remove(CONTENT_LENGTH);
    let mut response = HttpResponse::build(StatusCode::from_u16(head.status.as_u16()).map_err(ApiError::internal)?);
    let mut response = response.insert_header(CACHING).body(body);
    forwarded::copy(&head.headers, response.headers_mut());
    Ok(response.map_into_boxed_body())
}

fn unpacked(bytes: &[u8], encoding: &str) -> std::io::Result<Vec<u8>> {
    let mut page = Vec::new();
    let most = limits::HTML_BYTES as u64;
    match encoding {
        "gzip" => flate2::read::MultiGzDecoder::new(bytes).take(most).read_to_end(&mut page)?,
        "deflate" => flate2::read::DeflateDecoder::new(bytes).take(most).read_to_end(&mut page)?,
        _ => return Ok(bytes.to_vec()),
    };
    if page.len() as u64 == most {
        return Err(std::io::Error::other("the page is too large"));
    }
    Ok(page)
}

fn packed_as(page: Vec<u8>, encoding: &str) -> std::io::Result<Vec<u8>> {
    match encoding {
        "gzip" => {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), Compression::default());
            encoder.write_all(&page)?;
            encoder.finish()
        }
        "deflate" => {
            let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), Compression::best());
            encoder.write_all(&page)?;
            encoder.finish()
        }
        _ => Ok(page),
    }
}

fn with_query(path: &str, query: &str) -> String {
    if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") }
}

/// Rewrites links of a server so that they lead through the proxy.
struct LinkRewriter<'r> {
    /// The path of the proxy, which precedes paths of the server.
    prefix: String,
    /// The host of this server, as the client names it.
    client_host: &'r str,
    /// The host of the other server.
    host: String,
}

impl<'r> LinkRewriter<'r> {
    fn of(passing: &'r ForwardedRequest<'_>, to: &Destination, location: &str) -> Self {
        let decode = |text: &str| percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned();
        let path = decode(passing.path);
        let prefix = path.strip_suffix(&decode(location)).unwrap_or(&path).to_owned();
        Self { prefix, client_host: forwarded::client_host(passing.request), host: to.peer.address() }
    }

    fn forwarded_uri(&self, location: &str) -> String {
        let joined = joined(&self.prefix, location);
        if location.ends_with('/') && !joined.ends_with('/') { format!("{joined}/") } else { joined }
    }

    /// Rewrites a link to the same server so that it leads through the proxy. Returns other links unchanged.
    fn rewrite(&self, mut url: Url) -> String {
        let host = String::from_utf8_lossy(&url.host).into_owned();
        let is_elsewhere = !host.is_empty() && host != self.host && host != self.client_host;
        if is_elsewhere || !url.path.starts_with(b"/") {
            return url.to_string();
        }
        if host != self.client_host {
            url.scheme.clear();
            url.host.clear();
        }
        if url.path.starts_with(self.prefix.as_bytes()) {
            return url.to_string();
        }
        let path = String::from_utf8_lossy(&url.path).into_owned();
        let mut joined = joined(&self.prefix, &path);
        if path.ends_with('/') {
            joined.push('/');
        }
        url.path = joined.into_bytes();
        url.to_string()
    }
}

/// Joins two paths as Go does: without empty or relative parts, and without a slash at the end.
pub fn joined(first: &str, second: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in first.split('/').chain(second.split('/')) {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_through_the_proxy() {
        let prefix = "/api/v1/namespaces/a/pods/p/proxy".to_owned();
        let through = LinkRewriter { prefix, client_host: "api:443", host: "10.0.0.1:80".into() };
        let rewritten = |text: &str| through.rewrite(Url::parse(text).unwrap());
        assert_eq!(rewritten("/x/"), "/api/v1/namespaces/a/pods/p/proxy/x/");
        assert_eq!(rewritten("http://10.0.0.1:80/x?y=z#f"), "/api/v1/namespaces/a/pods/p/proxy/x?y=z#f");
        assert_eq!(rewritten("https://api:443/x"), "https://api:443/api/v1/namespaces/a/pods/p/proxy/x");
        for same in ["x/y", "https://other.example/x", "/api/v1/namespaces/a/pods/p/proxy/z", "#f"] {
            assert_eq!(rewritten(same), same);
        }
    }

    #[test]
    fn pages_keep_their_compression() {
        for encoding in ["gzip", "deflate", ""] {
            let packed = packed_as(b"<p>".to_vec(), encoding).unwrap();
            assert_eq!(unpacked(&packed, encoding).unwrap(), b"<p>");
        }
    }
}
