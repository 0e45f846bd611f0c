//! Headers of forwarded requests and answers.

use actix_web::HttpRequest;
use actix_web::http::header::HeaderMap as ClientHeaders;
use http::header::{
    CONNECTION, CONTENT_LENGTH, COOKIE, HOST, HeaderMap, HeaderName, HeaderValue, TE, TRAILER, TRANSFER_ENCODING,
    UPGRADE,
};

use super::{ForwardedRequest, websocket};
use crate::access::{CONSOLE_COOKIE, identifies_user};
use crate::limits;
use crate::status::{ApiError, ApiResult};

/// Headers that concern a single connection (RFC 9110, section 7.6.1), and that Go's proxies drop. This server itself
/// answers `Expect`.
const OF_CONNECTIONS: [&str; 10] = [
    "connection",
    "expect",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Returns the headers of a request for another server. Leaves out headers of the client's connection, of the body's
/// framing and of the user's identity, and the cookie of the console. `X-Forwarded-For` gets the client's address.
///
/// # Errors
/// 431 if there are too many headers.
pub fn of_request(passing: &ForwardedRequest<'_>) -> ApiResult<HeaderMap> {
    let request = passing.request;
    let mut headers = HeaderMap::new();
    for (name, value) in request.headers() {
        let name = name.as_str();
        if name == websocket::PROTOCOL || name == CONTENT_LENGTH || identifies_user(name, passing.proxy) {
            continue;
        }
        if let (Ok(name), Ok(value)) =
            (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_bytes(value.as_bytes()))
        {
            add(&mut headers, name, value)?;
        }
    }
    drop_of_connection(&mut headers);
    drop_session(&mut headers);
    let protocols = websocket::protocols(request).collect::<Vec<_>>().join(", ");
    if !protocols.is_empty()
        && let Ok(value) = HeaderValue::from_str(&protocols)
    {
        headers.insert(HeaderName::from_static(websocket::PROTOCOL), value);
    }
    add_client(&mut headers, request);
    Ok(headers)
}

/// Sets `Host` to the host that the client has named, as servers behind nodes, pods and services see it in Kubernetes.
pub fn name_host(headers: &mut HeaderMap, request: &HttpRequest) {
    if let Ok(host) = HeaderValue::from_str(client_host(request)) {
        headers.insert(HOST, host);
    }
}

/// Returns the host that the client has named. Empty if it has named none.
pub fn client_host(request: &HttpRequest) -> &str {
    let host = request.headers().get("host").and_then(|value| value.to_str().ok());
    host.or_else(|| request.uri().authority().map(|authority| authority.as_str())).unwrap_or("")
}

/// Returns the headers of a request to upgrade the connection: as [`of_request`], with `Connection: Upgrade`.
///
/// # Errors
/// As for [`of_request`].
pub fn of_upgrade(passing: &ForwardedRequest<'_>) -> ApiResult<HeaderMap> {
    let mut headers = of_request(passing)?;
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    let asked = passing.request.headers().get(UPGRADE.as_str());
    if let Some(Ok(protocol)) = asked.map(|value| HeaderValue::from_bytes(value.as_bytes())) {
        headers.insert(UPGRADE, protocol);
    }
    Ok(headers)
}

/// Removes the cookie by which the console identifies a browser: another server could use it.
fn drop_session(headers: &mut HeaderMap) {
    let cookies: Vec<HeaderValue> = headers.get_all(COOKIE).iter().cloned().collect();
    headers.remove(COOKIE);
    for cookie in cookies {
        let is_own = |pair: &&[u8]| pair.trim_ascii().starts_with(CONSOLE_COOKIE.as_bytes());
        let others: Vec<&[u8]> = cookie.as_bytes().split(|byte| *byte == b';').filter(|pair| !is_own(pair)).collect();
        if let (false, Ok(value)) = (others.is_empty(), HeaderValue::from_bytes(others.join(&b';').trim_ascii())) {
            headers.append(COOKIE, value);
        }
    }
}

/// Adds a header.
///
/// # Errors
/// 431 if there are too many headers.
pub fn add(headers: &mut HeaderMap, name: HeaderName, value: HeaderValue) -> ApiResult<()> {
    if headers.keys_len() >= limits::PASSED_HEADERS && !headers.contains_key(&name) {
        return Err(ApiError::new(431, "", "the request has too many headers to be forwarded"));
    }
    headers.append(name, value);
    Ok(())
}

/// Adds the client's address to `X-Forwarded-For`.
fn add_client(headers: &mut HeaderMap, request: &HttpRequest) {
    let name = HeaderName::from_static("x-forwarded-for");
    let Some(client) = request.peer_addr() else { return };
    let before = headers.get_all(&name).iter().filter_map(|value| value.to_str().ok());
    let mut all: Vec<String> = before.map(str::to_owned).collect();
    all.push(client.ip().to_canonical().to_string());
    if let Ok(value) = HeaderValue::from_str(&all.join(", ")) {
        headers.insert(name, value);
    }
}

/// Drops the headers that concern a single connection, and those that `Connection` names.
pub fn drop_of_connection(headers: &mut HeaderMap) {
    let wants_trailers = headers.get(TE).is_some_and(|value| value.as_bytes() == b"trailers");
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named {
        headers.remove(name);
    }
    for name in OF_CONNECTIONS {
        headers.remove(name);
    }
    if wants_trailers {
        headers.insert(TE, HeaderValue::from_static("trailers"));
    }
}

/// Copies the headers of an answer, except those that HTTP sets for each connection.
pub fn copy(from: &HeaderMap, to: &mut ClientHeaders) {
    for (name, value) in from {
        if [CONNECTION, TRANSFER_ENCODING, TRAILER, UPGRADE].contains(name) {
            continue;
        }
        let name = actix_web::http::header::HeaderName::from_bytes(name.as_str().as_bytes());
        let value = actix_web::http::header::HeaderValue::from_bytes(value.as_bytes());
        if let (Ok(name), Ok(value)) = (name, value) {
            to.append(name, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use actix_web::test::TestRequest;

    use super::*;
    use crate::outbound::Outbound;

    fn passed_on(request: TestRequest, of: fn(&ForwardedRequest<'_>) -> ApiResult<HeaderMap>) -> ApiResult<HeaderMap> {
        let (request, outbound, meter) = (request.to_http_request(), Outbound::default(), Arc::default());
        let (path, query, proxy, drain) = ("/", "", None, None);
        of(&ForwardedRequest { outbound: &outbound, request: &request, meter: &meter, path, query, proxy, drain })
    }

    #[test]
    fn the_cookie_of_the_console_is_not_passed_on() {
        let request = TestRequest::get()
            .insert_header(("Cookie", "a=1; __Host-flotilla-console-6443=secret; b=2"))
            .append_header(("Cookie", "__Host-flotilla-console-6444=secret"));
        let headers = passed_on(request, of_request).unwrap();
        assert_eq!(headers.get_all(COOKIE).iter().collect::<Vec<_>>(), ["a=1; b=2"]);
    }

    #[test]
    fn the_identity_of_the_user_is_not_forwarded() {
        let request = TestRequest::get()
            .insert_header(("Authorization", "Bearer x"))
            .insert_header(("Impersonate-User", "y"))
            .insert_header(("X_Remote_User", "y"))
            .insert_header(("X-Forwarded-For", "192.0.2.1"))
            .insert_header(("Sec-WebSocket-Protocol", "base64url.bearer.authorization.k8s.io.YWJj, x"))
            .peer_addr(([192, 0, 2, 2], 1).into());
        let headers = passed_on(request, of_request).unwrap();
        assert_eq!((headers.len(), &headers["sec-websocket-protocol"]), (2, &HeaderValue::from_static("x")));
        assert_eq!(headers["x-forwarded-for"], "192.0.2.1, 192.0.2.2");
    }

    #[test]
    fn framing_headers_are_not_forwarded() {
        let request = || {
            TestRequest::post()
                .insert_header(("Connection", "upgrade, x-a, Content-Length"))
                .insert_header(("Upgrade", "SPDY/3.1"))
                .insert_header(("Content-Length", "5"))
                .insert_header(("Expect", "100-continue"))
                .insert_header(("Transfer-Encoding", "chunked"))
                .insert_header(("X-A", "1"))
                .insert_header(("X-B", "2"))
        };
        let headers = passed_on(request(), of_request).unwrap();
        assert_eq!(headers.keys().map(HeaderName::as_str).collect::<Vec<_>>(), ["x-b"]);
        let headers = passed_on(request(), of_upgrade).unwrap();
        assert_eq!(
            (&headers["connection"], &headers["upgrade"], headers.len()),
            (&HeaderValue::from_static("Upgrade"), &HeaderValue::from_static("SPDY/3.1"), 3)
        );
    }

    #[test]
    fn the_host_is_that_of_the_client() {
        let mut headers = HeaderMap::new();
        let request = TestRequest::get().uri("https://b.example:1/x").to_http_request();
        name_host(&mut headers, &request);
        assert_eq!(headers[HOST], "b.example:1");
        let request = TestRequest::get().insert_header(("Host", "a.example")).to_http_request();
        name_host(&mut headers, &request);
        assert_eq!((client_host(&request), &headers[HOST]), ("a.example", &HeaderValue::from_static("a.example")));
    }

    #[test]
    fn too_many_header_names_are_refused() {
        let mut request = TestRequest::get();
        for number in 0..limits::HEAD_LINES {
            request = request.append_header((format!("x-{number}"), "1"));
        }
        assert_eq!(passed_on(request, of_request).unwrap_err().code, 431);
    }

    #[test]
    fn headers_of_the_connection_are_not_forwarded() {
        let mut headers = HeaderMap::new();
        for (name, value) in [("connection", "x-a, close"), ("x-a", "1"), ("x-b", "2"), ("te", "trailers")] {
            headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        drop_of_connection(&mut headers);
        assert_eq!(headers.keys().map(HeaderName::as_str).collect::<Vec<_>>(), ["x-b", "te"]);
    }
}
