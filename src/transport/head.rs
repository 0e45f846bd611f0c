//! Reads the heads of HTTP/1.1 requests as the reference does (RFC 9112, sections 3 and 5; Go, `net/http`).

use std::sync::Arc;

use actix_http::header::HeaderMap;
use actix_web::http::header::{
    CONNECTION, CONTENT_LENGTH, EXPECT, HOST, HeaderName, HeaderValue, TRANSFER_ENCODING, UPGRADE,
};
use actix_web::http::{Method, Uri};
use bytes::{Bytes, BytesMut};

use crate::limits;

/// A request target that the HTTP server's URI type cannot hold, because it is too long or has no slash.
#[derive(Debug, PartialEq, Eq)]
pub struct RawTarget {
    /// The path before decoding. Bytes that a URI cannot have are escaped.
    pub path: String,
    /// The query without the question mark, escaped like the path.
    pub query: String,
}

/// The length of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Length {
    /// This many bytes.
    Bytes(u64),
    /// Unknown: the body consists of chunks.
    Chunks,
}

/// The head of a request.
#[derive(Debug)]
pub(super) struct RequestHead {
    pub method: Method,
    /// The target as a URI. `None` if it cannot be one.
    pub uri: Option<Uri>,
    /// The target if it cannot be a URI.
    pub target: Option<Arc<RawTarget>>,
    pub headers: HeaderMap,
    pub length: Length,
    /// Whether the request has the version HTTP/1.0.
    pub is_old: bool,
    /// Whether the connection closes after the answer.
    pub closes: bool,
    /// Whether the client waits for `100 Continue` before it sends the body.
    pub expects: bool,
    /// Whether the client requests an upgrade (RFC 9110, section 7.8). In all other requests, the header `Upgrade` is
    /// removed.
    pub is_upgrade: bool,
}

/// An answer that the server gives without calling a handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    /// The status code.
    pub code: u16,
    /// The body.
    pub text: &'static str,
}

impl Refusal {
    const fn new(code: u16, text: &'static str) -> Self {
        Self { code, text }
    }
}

pub(super) const MALFORMED: Refusal = Refusal::new(400, "400 Bad Request");
pub(super) const TOO_LARGE: Refusal = Refusal::new(431, "431 Request Header Fields Too Large");
pub(super) const TOO_MANY: Refusal = Refusal::new(503, "503 Service Unavailable");
const NO_HOST: Refusal = Refusal::new(400, "400 Bad Request: missing required Host header");
const BAD_HOST: Refusal = Refusal::new(400, "400 Bad Request: malformed Host header");
const BAD_NAME: Refusal = Refusal::new(400, "400 Bad Request: invalid header name");
const BAD_VERSION: Refusal = Refusal::new(505, "505 HTTP Version Not Supported: unsupported protocol version");
const BAD_CODING: Refusal = Refusal::new(501, "Unsupported transfer encoding");
const BAD_EXPECTATION: Refusal = Refusal::new(417, "");

/// Reads a head, including the empty line at its end.
pub(super) fn parse(head: &Bytes) -> Result<RequestHead, Refusal> {
    let (line, rest) = split_line(head).ok_or(MALFORMED)?;
    let line = std::str::from_utf8(line).map_or_else(|_| latin(line), str::to_owned);
    let (method, rest_of_line) = line.split_once(' ').ok_or(MALFORMED)?;
    let (target, version) = rest_of_line.split_once(' ').ok_or(MALFORMED)?;
    let method = Method::from_bytes(method.as_bytes()).map_err(|_| MALFORMED)?;
    let (uri, target) = read_target(&method, target)?;
    let version = match version.as_bytes() {
        [b'H', b'T', b'T', b'P', b'/', major @ b'0'..=b'9', b'.', minor @ b'0'..=b'9'] => (major - b'0', minor - b'0'),
        _ => return Err(MALFORMED),
    };
    let mut headers = read_headers(head, rest)?;
    if version.0 != 1 {
        return Err(BAD_VERSION);
    }
    let is_old = version.1 == 0;
    check_host(&headers, &method, is_old)?;
    let length = body_length(&mut headers, is_old)?;
    let is_bodiless = length == Length::Bytes(0);
    let is_upgrade = upgrades(&mut headers, is_bodiless && !is_old);
    let has = |name, token| has(&headers, name, token);
    let closes = has(CONNECTION, "close") || (is_old && !has(CONNECTION, "keep-alive"));
    let expects = has(EXPECT, "100-continue");
    if !expects && headers.get(EXPECT).is_some_and(|value| !value.is_empty()) {
        return Err(BAD_EXPECTATION);
    }
    let expects = expects && !is_old && !is_bodiless;
    Ok(RequestHead { method, uri, target, headers, length, is_old, closes, expects, is_upgrade })
}

/// Returns whether a header is a list that contains this word.
fn has(headers: &HeaderMap, name: HeaderName, word: &str) -> bool {
    let values = headers.get_all(name).filter_map(|value| std::str::from_utf8(value.as_bytes()).ok());
    values.flat_map(|value| value.split(',')).any(|one| one.trim().eq_ignore_ascii_case(word))
}

/// Returns whether a request asks for an upgrade; `may` says whether it can. Removes the header `Upgrade` from all
/// other requests, so that later readers do not take them for requests for an upgrade.
fn upgrades(headers: &mut HeaderMap, may: bool) -> bool {
    let Some(protocol) = headers.get(UPGRADE) else { return false };
    let upgrades = may && !protocol.is_empty() && has(headers, CONNECTION, "upgrade");
    if !upgrades {
        headers.remove(UPGRADE);
    }
    upgrades
}

/// Splits off the first line. Returns it without its end, and the rest.
fn split_line(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = memchr::memchr(b'\n', text)?;
    let line = &text[..end];
    Some((line.strip_suffix(b"\r").unwrap_or(line), &text[end + 1..]))
}

/// Reads a request line that is not UTF-8. Bytes beyond ASCII are escaped, because a path may hold any bytes.
fn latin(line: &[u8]) -> String {
    let mut text = String::with_capacity(line.len() + 16);
    for byte in line {
        match byte {
            0x80.. => text.push_str(&format!("%{byte:02X}")),
            _ => text.push(char::from(*byte)),
        }
    }
    text
}

/// Reads a request target in any of its forms (RFC 9112, section 3.2).
fn read_target(method: &Method, target: &str) -> Result<(Option<Uri>, Option<Arc<RawTarget>>), Refusal> {
    if target.is_empty() || target.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
        return Err(MALFORMED);
    }
    let origin = match target {
        _ if target.starts_with('/') => target,
        "*" => "*",
        _ if method == Method::CONNECT => target.find(['/', '?']).map_or("", |at| &target[at..]),
        _ => {
            let (scheme, rest) = target.split_once(':').ok_or(MALFORMED)?;
            let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
                && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
            if !is_scheme {
                return Err(MALFORMED);
            }
            // URIs without an authority have no path.
            rest.strip_prefix("//").map_or("", |rest| rest.find(['/', '?']).map_or("", |at| &rest[at..]))
        }
    };
    let escaped = escape(origin);
    if escaped.starts_with('/')
        && escaped.len() <= limits::URI_BYTES
        && let Ok(uri) = Uri::try_from(&*escaped)
    {
        return Ok((Some(uri), None));
    }
    let (path, query) = escaped.split_once('?').unwrap_or((&escaped, ""));
    Ok((None, Some(Arc::new(RawTarget { path: path.to_owned(), query: query.to_owned() }))))
}

/// Escapes the bytes of a target that would end a path or that the HTTP server refuses. The meaning stays the same.
fn escape(target: &str) -> String {
    let is_plain =
        |byte: u8| matches!(byte, b'!' | b'$'..=b';' | b'=' | b'?'..=b'Z' | b'_' | b'a'..=b'z' | b'~' | b'[' | b']');
    if target.bytes().all(is_plain) {
        return target.to_owned();
    }
    let mut text = String::with_capacity(target.len() + 16);
    for byte in target.bytes() {
        match is_plain(byte) {
            true => text.push(char::from(byte)),
            false => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

/// Reads the header lines. A line that begins with a space continues the previous one; the reference still accepts
/// this.
fn read_headers(head: &Bytes, mut rest: &[u8]) -> Result<HeaderMap, Refusal> {
    let mut headers = HeaderMap::with_capacity(16);
    let mut refusal = None;
    let mut lines = 0;
    let is_space = |line: &[u8]| line.first().is_some_and(|byte| matches!(byte, b' ' | b'\t'));
    while let Some((line, after)) = split_line(rest) {
        rest = after;
        if line.is_empty() {
            break;
        }
        lines += 1;
        let colon = memchr::memchr(b':', line).ok_or(MALFORMED)?;
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        if is_space(line) || name.is_empty() {
            return Err(MALFORMED);
        }
        let mut folded = BytesMut::new();
        while is_space(rest)
            && let Some((more, after)) = split_line(rest)
        {
            if folded.is_empty() {
                folded.extend_from_slice(value);
            }
            folded.extend_from_slice(b" ");
            folded.extend_from_slice(more.trim_ascii());
            rest = after;
            lines += 1;
        }
        if lines > limits::HEAD_LINES {
            return Err(TOO_LARGE);
        }
        let value = if folded.is_empty() { head.slice_ref(value) } else { folded.freeze() };
        let value = HeaderValue::from_maybe_shared(value).map_err(|_| MALFORMED)?;
        match HeaderName::from_bytes(name) {
            Ok(name) => headers.append(name, value),
            // The reference reports these after all other errors.
            Err(_) if name.contains(&b' ') => refusal = Some(BAD_NAME),
            Err(_) => return Err(MALFORMED),
        }
    }
    refusal.map_or(Ok(headers), Err)
}

fn check_host(headers: &HeaderMap, method: &Method, is_old: bool) -> Result<(), Refusal> {
    let mut hosts = headers.get_all(HOST);
    let Some(host) = hosts.next() else {
        return if is_old || method == Method::CONNECT { Ok(()) } else { Err(NO_HOST) };
    };
    if hosts.next().is_some() {
        return Err(MALFORMED);
    }
    let is_sound = |byte: &u8| byte.is_ascii_alphanumeric() || b"!$%&'()*+,-.:;=[]_~".contains(byte);
    if host.as_bytes().iter().all(is_sound) { Ok(()) } else { Err(BAD_HOST) }
}

/// Returns the length of the body (RFC 9112, section 6.3). Removes headers that state it in another way, so that every
/// later reader of the headers finds the same length.
fn body_length(headers: &mut HeaderMap, is_old: bool) -> Result<Length, Refusal> {
    let mut codings = headers.get_all(TRANSFER_ENCODING);
    if let Some(coding) = codings.next() {
        let is_chunked = codings.next().is_none() && coding.as_bytes().eq_ignore_ascii_case(b"chunked");
        if is_old {
            headers.remove(TRANSFER_ENCODING);
        } else if is_chunked {
            headers.remove(CONTENT_LENGTH);
            return Ok(Length::Chunks);
        } else {
            return Err(BAD_CODING);
        }
    }
    let mut lengths = headers.get_all(CONTENT_LENGTH);
    let Some(first) = lengths.next() else { return Ok(Length::Bytes(0)) };
    let (mut others, first) = (lengths.peekable(), first.clone());
    let is_repeated = others.peek().is_some();
    if others.any(|other| other != first) {
        return Err(MALFORMED);
    }
    let digits = first.to_str().ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    let length = digits.and_then(|digits| digits.parse::<i64>().ok()).ok_or(MALFORMED)?;
    if is_repeated {
        headers.insert(CONTENT_LENGTH, first);
    }
    Ok(Length::Bytes(length.unsigned_abs()))
}

#[cfg(test)]
#[path = "head_tests.rs"]
mod tests;
