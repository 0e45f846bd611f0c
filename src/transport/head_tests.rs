use super::*;

fn read(head: &str) -> Result<RequestHead, Refusal> {
    parse(&Bytes::copy_from_slice(head.as_bytes()))
}

/// Returns the target of a GET, as a URI or otherwise.
fn target(target: &str) -> Result<String, Refusal> {
    let head = read(&format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n"))?;
    Ok(match (head.uri, head.target) {
        (Some(uri), _) => uri.to_string(),
        (None, target) => format!("{:?}", target.map(|target| (target.path.clone(), target.query.clone()))),
    })
}

#[test]
fn targets_are_read_in_all_their_forms() {
    for (text, want) in [
        ("/api/v1?a=b", "/api/v1?a=b"),
        ("//api/v1", "//api/v1"),
        ("/a#x", "/a%23x"),
        ("/a?limit=1#x", "/a?limit=1%23x"),
        ("/d\u{e9}\"<>`{}|^\\", "/d%C3%A9%22%3C%3E%60%7B%7D%7C%5E%5C"),
        ("/a%20b", "/a%20b"),
        ("http://x/version?y", "/version?y"),
        ("http://x", "Some((\"\", \"\"))"),
        ("http://x?a=b", "Some((\"\", \"a=b\"))"),
        ("mailto:x", "Some((\"\", \"\"))"),
        ("*", "Some((\"*\", \"\"))"),
    ] {
        assert_eq!(target(text).as_deref(), Ok(want), "{text}");
    }
    for text in ["", "api/v1", "/api\u{1}", "/api\u{7f}", "/a b", "1x:y"] {
        assert_eq!(target(text), Err(MALFORMED), "{text}");
    }
    let long = format!("/version?x={}", "x".repeat(100_000));
    let head = read(&format!("GET {long} HTTP/1.1\r\nHost: a\r\n\r\n")).unwrap();
    assert_eq!((head.uri, head.target.unwrap().query.len()), (None, 100_002));
    let long = format!("/<{}?<{}", "x".repeat(70_000), "y".repeat(70_000));
    let target = read(&format!("GET {long} HTTP/1.1\r\nHost: a\r\n\r\n")).unwrap().target.unwrap();
    assert!(target.path.starts_with("/%3Cxx") && target.query.starts_with("%3Cyy"), "escaped as in a URI");
    let head = read("CONNECT x:1 HTTP/1.1\r\n\r\n").unwrap();
    assert_eq!((head.uri, head.target.unwrap().path.as_str()), (None, ""));
    let latin = parse(&Bytes::from_static(b"GET /d\xe9 HTTP/1.1\r\nHost: a\r\n\r\n")).unwrap();
    assert_eq!(latin.uri.unwrap(), "/d%E9");
}

#[test]
fn header_lines_are_parsed_as_in_the_reference() {
    let head = read("GET / HTTP/1.2\nHost: a\nX:  b\t\r\n c\r\n\td \r\nx: e\r\nY:\r\n\r\n").unwrap();
    let values: Vec<&[u8]> = head.headers.get_all("x").map(HeaderValue::as_bytes).collect();
    assert_eq!(values, [&b"b c d"[..], b"e"]);
    assert_eq!(head.headers.get("y").unwrap(), "");
    assert!(!head.closes && !head.is_old && head.length == Length::Bytes(0));
    for (line, refusal) in [
        ("Host: a\r\nFoo Bar: x", BAD_NAME),
        ("Host: a\r\nFoo : x", BAD_NAME),
        ("Host: a\r\nFoo", MALFORMED),
        ("Host: a\r\n: x", MALFORMED),
        ("Host: a\r\nF\u{e9}: x", MALFORMED),
        ("Host: a\r\nFoo: a\u{1}b", MALFORMED),
        (" Foo: a\r\nHost: a", MALFORMED),
        ("X: a", NO_HOST),
        ("Host: a\r\nHost: a", MALFORMED),
        ("Host: a b", BAD_HOST),
        ("Host: a\r\nExpect: foo", BAD_EXPECTATION),
        ("Host: a\r\nContent-Length: 2\r\nContent-Length: 3", MALFORMED),
        ("Host: a\r\nContent-Length: +2", MALFORMED),
        ("Host: a\r\nContent-Length: x", MALFORMED),
        ("Host: a\r\nContent-Length:", MALFORMED),
        ("Host: a\r\nContent-Length: 9223372036854775808", MALFORMED),
        ("Host: a\r\nTransfer-Encoding: gzip", BAD_CODING),
        ("Host: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked", BAD_CODING),
    ] {
        assert_eq!(read(&format!("GET / HTTP/1.1\r\n{line}\r\n\r\n")).unwrap_err(), refusal, "{line}");
    }
    for (line, refusal) in [
        ("GET / HTTP/2.0", BAD_VERSION),
        ("GET / HTTP/1.10", MALFORMED),
        ("GET /", MALFORMED),
        ("GET", MALFORMED),
        ("G@T / HTTP/1.1", MALFORMED),
        ("", MALFORMED),
    ] {
        assert_eq!(read(&format!("{line}\r\nHost: a\r\n\r\n")).unwrap_err(), refusal, "{line}");
    }
}

#[test]
fn heads_state_how_the_body_and_the_connection_end() {
    let of = |version: &str, lines: &str| read(&format!("POST / HTTP/{version}\r\nHost: a\r\n{lines}\r\n")).unwrap();
    assert_eq!(of("1.1", "Content-Length: 2\r\nContent-Length: 2\r\n").length, Length::Bytes(2));
    assert_eq!(of("1.1", "Content-Length: 2\r\nTransfer-Encoding: Chunked\r\n").length, Length::Chunks);
    assert_eq!(of("1.0", "Content-Length: 2\r\nTransfer-Encoding: gzip\r\n").length, Length::Bytes(2));
    assert!(of("1.0", "").closes && !of("1.0", "Connection: Keep-Alive\r\n").closes);
    assert!(of("1.1", "Connection: x, close\r\n").closes && !of("1.1", "").closes);
    assert!(of("1.1", "Expect: foo, 100-Continue\r\nContent-Length: 1\r\n").expects);
    assert!(!of("1.1", "Expect: 100-continue\r\n").expects && !of("1.0", "Expect: 100-continue\r\n").expects);
}

#[test]
fn the_length_of_a_body_is_stated_in_one_way() {
    let of = |version: &str, lines: &str| {
        let head = read(&format!("POST / HTTP/{version}\r\nHost: a\r\n{lines}\r\n")).unwrap();
        let all = |name| {
            head.headers.get_all(name).map(|value| value.to_str().unwrap().to_owned()).collect::<Vec<_>>().join(", ")
        };
        (all(CONTENT_LENGTH), all(TRANSFER_ENCODING))
    };
    let both = "Content-Length: 2\r\nTransfer-Encoding: chunked\r\nContent-Length: 7\r\n";
    assert_eq!(of("1.1", both), (String::new(), "chunked".into()));
    assert_eq!(of("1.0", "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n"), ("2".into(), String::new()));
    assert_eq!(of("1.1", "Content-Length: 2\r\nContent-Length: 2\r\n"), ("2".into(), String::new()));
}

#[test]
fn an_upgrade_needs_both_headers_and_no_body() {
    let of = |version: &str, lines: &str| {
        let head = read(&format!("GET / HTTP/{version}\r\nHost: a\r\n{lines}\r\n")).unwrap();
        assert_eq!(head.is_upgrade, head.headers.contains_key(UPGRADE), "{lines}");
        head.is_upgrade
    };
    assert!(of("1.1", "Connection: keep-alive, UPGRADE\r\nUpgrade: SPDY/3.1\r\n"));
    assert!(of("1.1", "Connection: close\r\nConnection: upgrade\r\nUpgrade: websocket\r\nContent-Length: 0\r\n"));
    for lines in [
        "Upgrade: websocket\r\n",
        "Connection: upgraded\r\nUpgrade: websocket\r\n",
        "Connection: upgrade\r\n",
        "Connection: upgrade\r\nUpgrade:\r\n",
        "Connection: upgrade\r\nUpgrade: websocket\r\nContent-Length: 1\r\n",
        "Connection: upgrade\r\nUpgrade: websocket\r\nTransfer-Encoding: chunked\r\n",
    ] {
        assert!(!of("1.1", lines), "{lines}");
    }
    assert!(!of("1.0", "Connection: upgrade\r\nUpgrade: websocket\r\n"));
}

#[test]
fn the_longest_value_of_many_lines_is_read_once() {
    let begin = "GET / HTTP/1.1\r\nHost: a\r\nX: a\n";
    let (folds, line) = (limits::HEAD_LINES - 2, format!(" {}\n", "b".repeat(29)));
    let head = read(&format!("{begin}{}\r\n", line.repeat(folds))).unwrap();
    assert_eq!(head.headers.get("x").unwrap().len(), 1 + 30 * folds);
    assert_eq!(read(&format!("{begin}{}\r\n", line.repeat(folds + 1))).unwrap_err(), TOO_LARGE);
}

#[test]
fn lines_are_bounded() {
    let with = |lines: usize| format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "Impersonate-Group: g\r\n".repeat(lines));
    assert_eq!(read(&with(limits::HEAD_LINES - 1)).unwrap().headers.len(), limits::HEAD_LINES);
    assert_eq!(read(&with(limits::HEAD_LINES)).unwrap_err(), TOO_LARGE);
}
