//! Headers of requests and answers that are passed on.

use actix_web::HttpRequest;
use actix_web::http::header::HeaderMap as ClientHeaders;
use http::header::{CONNECTION, HeaderMap, HeaderName, HeaderValue, TE, TRAILER, TRANSFER_ENCODING, UPGRADE};

use super::websocket;

/// Headers that concern one connection only (RFC 9110, section 7.6.1), and that Go's proxies drop.
const OF_CONNECTIONS: [&str; 9] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// The headers of a request as another server gets them: without what says who asks.
pub fn of_request(request: &HttpRequest) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in request.headers() {
        let name = name.as_str();
        if name == "authorization" || name.starts_with("impersonate-") || name == websocket::PROTOCOL {
            continue;
        }
        if let (Ok(name), Ok(value)) =
            (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_bytes(value.as_bytes()))
        {
            headers.append(name, value);
        }
    }
    let protocols = websocket::protocols(request).collect::<Vec<_>>().join(", ");
    if !protocols.is_empty()
        && let Ok(value) = HeaderValue::from_str(&protocols)
    {
        headers.insert(HeaderName::from_static(websocket::PROTOCOL), value);
    }
    add_client(&mut headers, request);
    headers
}

/// Says for whom a request is made.
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

/// Drops what concerns one connection only, and what it names as such.
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

/// Copies the headers of an answer, but for those that HTTP itself sets for each connection.
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
    use actix_web::test::TestRequest;

    use super::*;

    #[test]
    fn nobody_else_is_told_who_asks() {
        let request = TestRequest::get()
            .insert_header(("Authorization", "Bearer x"))
            .insert_header(("Impersonate-User", "y"))
            .insert_header(("X-Forwarded-For", "192.0.2.1"))
            .insert_header(("Sec-WebSocket-Protocol", "base64url.bearer.authorization.k8s.io.YWJj, x"))
            .peer_addr(([192, 0, 2, 2], 1).into());
        let headers = of_request(&request.to_http_request());
        assert_eq!((headers.len(), &headers["sec-websocket-protocol"]), (2, &HeaderValue::from_static("x")));
        assert_eq!(headers["x-forwarded-for"], "192.0.2.1, 192.0.2.2");
    }

    #[test]
    fn what_concerns_a_connection_stays_there() {
        let mut headers = HeaderMap::new();
        for (name, value) in [("connection", "x-a, close"), ("x-a", "1"), ("x-b", "2"), ("te", "trailers")] {
            headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        drop_of_connection(&mut headers);
        assert_eq!(headers.keys().map(HeaderName::as_str).collect::<Vec<_>>(), ["x-b", "te"]);
    }
}
