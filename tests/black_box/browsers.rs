//! Headers for browsers: the origins whose scripts may read answers, and the demand that browsers use HTTPS.

use crate::support::{Connection, DataDir};

fn asked(client: &mut Connection, method: &str, path: &str, origin: &str) -> crate::support::Answer {
    client.call(method, path, &[("Origin", origin)], b"").expect("an answer")
}

#[test]
fn scripts_of_allowed_origins_may_read_answers_and_ask_before_they_have_a_user() {
    let directory = DataDir::new();
    let server = directory.start_with(&[
        "--cors-allowed-origins=//console\\.example(:|$),^https://x$",
        "--strict-transport-security-directives=max-age=31536000,includeSubDomains",
        "--anonymous-auth=false",
    ]);
    let (mut user, mut nobody) = (server.connect(), server.connect_anonymously());
    let origin = "https://console.example:8443";

    let answer = asked(&mut user, "GET", "/api/v1/namespaces", origin);
    assert_eq!(answer.status, 200);
    for (name, value) in [
        ("access-control-allow-origin", origin),
        ("access-control-allow-methods", "POST, GET, OPTIONS, PUT, DELETE, PATCH"),
        (
            "access-control-allow-headers",
            "Content-Type, Content-Length, Accept-Encoding, X-CSRF-Token, Authorization, X-Requested-With, \
             If-Modified-Since",
        ),
        ("access-control-expose-headers", "Date"),
        ("access-control-allow-credentials", "true"),
        ("strict-transport-security", "max-age=31536000; includeSubDomains"),
    ] {
        assert_eq!(answer.header(name), Some(value), "{name}");
    }

    let preflight = asked(&mut nobody, "OPTIONS", "/api/v1/namespaces", "https://x");
    assert_eq!((preflight.status, preflight.header("access-control-allow-origin")), (204, Some("https://x")));
    assert!(preflight.header("audit-id").is_some() && preflight.body.is_empty());
    let refused = asked(&mut nobody, "GET", "/api/v1/namespaces", "https://x");
    assert_eq!((refused.status, refused.header("access-control-allow-origin")), (401, Some("https://x")));

    for other in ["https://console.example.evil", "https://xx", ""] {
        assert_eq!(asked(&mut nobody, "OPTIONS", "/api/v1/namespaces", other).status, 401, "{other}");
        let answer = asked(&mut user, "GET", "/api/v1/namespaces", other);
        assert_eq!((answer.status, answer.header("access-control-allow-origin")), (200, None), "{other}");
        assert!(answer.header("strict-transport-security").is_some());
    }
}

#[test]
fn patterns_that_could_match_a_part_of_a_host_end_the_start() {
    let directory = DataDir::new();
    let refusal = directory.try_start_with(&["--cors-allowed-origins=console.example"]).err().expect("a refusal");
    assert!(refusal.messages.contains("does not pin to start/end of host"), "{}", refusal.messages);
}

#[test]
fn browsers_must_not_guess_the_type_of_a_refusal_of_authorization() {
    let directory = DataDir::new();
    let refused = directory.start().connect_anonymously().get("/api/v1/namespaces");
    assert_eq!((refused.status, refused.header("x-content-type-options")), (403, Some("nosniff")));
}
